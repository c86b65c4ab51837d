//! The driver's options: values of the key `Parameters` below the service's key in the registry.

use core::ptr;

use wdk_sys::ntddk::{ZwClose, ZwOpenKey, ZwQueryValueKey};
use wdk_sys::{HANDLE, OBJ_CASE_INSENSITIVE, OBJ_KERNEL_HANDLE, OBJECT_ATTRIBUTES, PCUNICODE_STRING, UNICODE_STRING};

use super::irp::check;
use super::text::Text;

#[expect(clippy::cast_possible_truncation, reason = "48 bytes")]
const ATTRIBUTES_LENGTH: u32 = size_of::<OBJECT_ATTRIBUTES>() as u32;

/// KEY_READ (winnt.h).
const KEY_READ: u32 = 0x2_0019;

/// KeyValuePartialInformation of KEY_VALUE_INFORMATION_CLASS (wdm.h).
const PARTIAL_INFORMATION: i32 = 2;

/// REG_DWORD (winnt.h).
const REG_DWORD: u32 = 4;

static PARAMETERS: Text<10> = Text::new("Parameters");

/// An open key, closed when it is dropped.
struct Key(HANDLE);

impl Key {
    /// Opens a key below another one, or by its full path. Returns `None` if it does not exist or cannot be read.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    fn open(parent: Option<&Self>, name: PCUNICODE_STRING) -> Option<Self> {
        let mut attributes = OBJECT_ATTRIBUTES {
            Length: ATTRIBUTES_LENGTH,
            RootDirectory: parent.map_or(ptr::null_mut(), |key| key.0),
            ObjectName: name.cast_mut(),
            Attributes: OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
            SecurityDescriptor: ptr::null_mut(),
            SecurityQualityOfService: ptr::null_mut(),
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the attributes and the name outlive the call, and the kernel only reads them
        check(unsafe { ZwOpenKey(&raw mut handle, KEY_READ, &raw mut attributes) }).ok()?;
        Some(Self(handle))
    }

    /// Returns a REG_DWORD, or `None` if there is no such value.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    fn number(&self, name: &UNICODE_STRING) -> Option<u32> {
        // KEY_VALUE_PARTIAL_INFORMATION: TitleIndex, Type, DataLength, and the data.
        let mut value = [0_u32; 4];
        #[expect(clippy::cast_possible_truncation, reason = "16 bytes")]
        let (mut used, length) = (0, size_of_val(&value) as u32);
        let buffer = value.as_mut_ptr().cast();
        let name = ptr::from_ref(name).cast_mut();
        // SAFETY: the kernel writes at most `length` bytes, and only reads the name
        check(unsafe { ZwQueryValueKey(self.0, name, PARTIAL_INFORMATION, buffer, length, &raw mut used) }).ok()?;
        match value {
            [_, REG_DWORD, 4, number] => Some(number),
            _ => None,
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: opened in `open`, closed once
        let _ = unsafe { ZwClose(self.0) };
    }
}

/// Returns the option with this name: a REG_DWORD in the key `Parameters` of the service. `service` is the path that
/// DriverEntry gets. Returns `None` if the option is not set.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn option(service: PCUNICODE_STRING, name: &UNICODE_STRING) -> Option<u32> {
    let subkey = PARAMETERS.counted();
    let parameters = Key::open(Some(&Key::open(None, service)?), &raw const subkey)?;
    parameters.number(name)
}
