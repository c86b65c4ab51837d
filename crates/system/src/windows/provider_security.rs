//! The security descriptor of the GUID of the driver's events, in the registry.
//!
//! EventAccessControl is the documented function for it. It adds one entry with each call, so a crash between two calls
//! would leave half of the restriction, and no document says which bytes it stores. A value is written in one step, and
//! its bytes tell an uninstallation whether the descriptor is that of the installation.

use std::io;

use protocol::trace::security::{REGISTRY_KEY, VALUE_NAME, rights};
use windows_sys::Win32::Storage::FileSystem::{READ_CONTROL, SYNCHRONIZE};
use windows_sys::Win32::System::Diagnostics::Etw::{
    TRACELOG_ACCESS_KERNEL_LOGGER, TRACELOG_ACCESS_REALTIME, TRACELOG_CREATE_ONDISK, TRACELOG_CREATE_REALTIME,
    TRACELOG_GUID_ENABLE, TRACELOG_LOG_EVENT, TRACELOG_REGISTER_GUIDS, WMIGUID_EXECUTE, WMIGUID_NOTIFICATION,
    WMIGUID_QUERY, WMIGUID_READ_DESCRIPTION, WMIGUID_SET,
};

use super::registry;

/// The rights by their names in Microsoft's bindings.
const RIGHTS: [(u32, u32); 14] = [
    (rights::WMIGUID_QUERY, WMIGUID_QUERY),
    (rights::WMIGUID_SET, WMIGUID_SET),
    (rights::WMIGUID_NOTIFICATION, WMIGUID_NOTIFICATION),
    (rights::WMIGUID_READ_DESCRIPTION, WMIGUID_READ_DESCRIPTION),
    (rights::WMIGUID_EXECUTE, WMIGUID_EXECUTE),
    (rights::TRACELOG_CREATE_REALTIME, TRACELOG_CREATE_REALTIME),
    (rights::TRACELOG_CREATE_ONDISK, TRACELOG_CREATE_ONDISK),
    (rights::TRACELOG_GUID_ENABLE, TRACELOG_GUID_ENABLE),
    (rights::TRACELOG_ACCESS_KERNEL_LOGGER, TRACELOG_ACCESS_KERNEL_LOGGER),
    (rights::TRACELOG_LOG_EVENT, TRACELOG_LOG_EVENT),
    (rights::TRACELOG_ACCESS_REALTIME, TRACELOG_ACCESS_REALTIME),
    (rights::TRACELOG_REGISTER_GUIDS, TRACELOG_REGISTER_GUIDS),
    (rights::READ_CONTROL, READ_CONTROL),
    (rights::SYNCHRONIZE, SYNCHRONIZE),
];

const _: () = {
    let (mut rest, mut all): (&[(u32, u32)], u32) = (&RIGHTS, 0);
    while let [(ours, bindings), others @ ..] = rest {
        assert!(*ours == *bindings);
        (rest, all) = (others, all | *bindings);
    }
    assert!(all == rights::ALL);
};

/// Returns the descriptor; `None` if there is none.
pub fn read() -> io::Result<Option<Vec<u8>>> {
    halprof::windows::registry::bytes(REGISTRY_KEY, VALUE_NAME)
}

/// Sets the descriptor.
pub fn write(descriptor: &[u8]) -> io::Result<()> {
    registry::write_bytes(REGISTRY_KEY, VALUE_NAME, descriptor)
}

/// Removes the descriptor.
pub fn remove() -> io::Result<()> {
    registry::remove(REGISTRY_KEY, VALUE_NAME)
}
