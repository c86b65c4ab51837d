//! Event Tracing for Windows for drivers, which Wine lacks. A test takes the events.

#![expect(unsafe_code, reason = "reads and writes what the driver points to, and calls functions of the driver")]

use crate::{
    cpu::processors,
    kernel::{call_stack, irql, loaded_images, pool, time},
    nt::{self, APC_LEVEL, DISPATCH_LEVEL, NtStatus, PASSIVE_LEVEL},
    state::{
        machine::MACHINE,
        registry::RemoveError,
        tracing::{EnableCallback, ProviderRegistration, Tracing, Wanted},
    },
    violation::{self, catch_panic},
};
use bench_protocol::{ProviderId, WrittenEvent};
use std::{ops::Range, slice};

/// EVENT_CONTROL_CODE_DISABLE_PROVIDER and EVENT_CONTROL_CODE_ENABLE_PROVIDER.
const DISABLE: u32 = 0;
const ENABLE: u32 = 1;

/// EventProviderSetTraits of EVENT_INFO_CLASS.
const SET_TRAITS: u32 = 2;

/// Types of a data descriptor: payload, metadata of the event, metadata of the provider.
const PAYLOAD: u32 = 0;
const EVENT_METADATA: u32 = 1;
const PROVIDER_METADATA: u32 = 2;

/// EVENT_DATA_DESCRIPTOR.
#[repr(C)]
pub struct DataDescriptor {
    address: u64,
    size: u32,
    kind: u32,
}

/// EVENT_DESCRIPTOR.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EventDescriptor {
    id: u16,
    version: u8,
    channel: u8,
    level: u8,
    opcode: u8,
    task: u16,
    keyword: u64,
}

fn tracing() -> &'static Tracing {
    &MACHINE.kernel.tracing
}

/// Implements EtwRegister.
pub unsafe extern "system" fn register(
    provider: *const ProviderId,
    callback: Option<EnableCallback>,
    context: usize,
    handle: *mut u64,
) -> NtStatus {
    catch_panic("EtwRegister", nt::UNSUCCESSFUL, || {
        irql::check("EtwRegister", PASSIVE_LEVEL);
        if call_stack::fails("EtwRegister") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the driver must pass a GUID that can be read.
        let provider = unsafe { provider.read() };
        // A registration belongs to the driver that has the callback.
        let driver = callback.map_or(0, |callback| (callback as *const ()).addr());
        let registration = ProviderRegistration { provider, callback, context, driver };
        let number = tracing().register(registration);
        // SAFETY: the driver must pass a writable variable.
        unsafe { handle.write(u64::try_from(number).unwrap_or_default()) };
        if let Some(wanted) = tracing().wanted(provider) {
            call(registration, Some(wanted));
        }
        nt::SUCCESS
    })
}

/// Implements EtwUnregister. Waits until no thread is in the callback.
pub extern "system" fn unregister(handle: u64) -> NtStatus {
    catch_panic("EtwUnregister", nt::UNSUCCESSFUL, || {
        irql::check("EtwUnregister", PASSIVE_LEVEL);
        let number = usize::try_from(handle).unwrap_or_default();
        match tracing().registry.remove(number, nt::current_thread()) {
            Ok(_) => {
                tracing().forget(number);
                nt::SUCCESS
            }
            Err(RemoveError::Unknown) => {
                violation::other(format!("EtwUnregister of {handle:#x}, which is not registered"));
                nt::INVALID_PARAMETER
            }
            Err(RemoveError::Reentrant) => {
                violation::other("EtwUnregister inside the enable callback, which would wait for itself");
                nt::UNSUCCESSFUL
            }
        }
    })
}

/// Implements EtwSetInformation, for the traits of a provider.
pub unsafe extern "system" fn set_information(
    handle: u64,
    class: u32,
    information: *const u8,
    length: u32,
) -> NtStatus {
    catch_panic("EtwSetInformation", nt::UNSUCCESSFUL, || {
        irql::check("EtwSetInformation", PASSIVE_LEVEL);
        if call_stack::fails("EtwSetInformation") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        if class != SET_TRAITS {
            return nt::INVALID_PARAMETER;
        }
        // SAFETY: the driver must pass that many bytes that can be read.
        let traits = unsafe { slice::from_raw_parts(information, usize::try_from(length).unwrap_or_default()) };
        if tracing().set_traits(usize::try_from(handle).unwrap_or_default(), traits) {
            return nt::SUCCESS;
        }
        violation::other(format!("EtwSetInformation of {handle:#x} with the traits {traits:?}"));
        nt::INVALID_PARAMETER
    })
}

/// Implements EtwWriteTransfer.
pub unsafe extern "system" fn write_transfer(
    handle: u64,
    descriptor: *const EventDescriptor,
    _activity: *const ProviderId,
    _related: *const ProviderId,
    count: u32,
    data: *const DataDescriptor,
) -> NtStatus {
    catch_panic("EtwWriteTransfer", nt::UNSUCCESSFUL, || {
        let Some((provider, has_traits)) = tracing().provider(usize::try_from(handle).unwrap_or_default()) else {
            violation::other(format!("EtwWriteTransfer with {handle:#x}, which is not registered"));
            return nt::INVALID_PARAMETER;
        };
        // SAFETY: the driver must pass a descriptor that can be read.
        let descriptor = unsafe { descriptor.read() };
        // SAFETY: the driver must pass that many descriptors that can be read.
        let data = unsafe { slice::from_raw_parts(data, usize::try_from(count).unwrap_or_default()) };
        let wanted = tracing().wanted(provider);
        if !wanted.is_some_and(|wanted| wanted.includes(descriptor.level, descriptor.keyword)) {
            return nt::SUCCESS;
        }
        let (mut metadata, mut payload) = (Vec::new(), Vec::new());
        for part in data {
            // SAFETY: the driver must describe memory that can be read.
            let bytes = unsafe { bytes(part) };
            match part.kind {
                PAYLOAD => payload.extend(bytes),
                _ if !has_traits => violation::other("EtwWriteTransfer with metadata, before EventProviderSetTraits"),
                EVENT_METADATA => metadata.extend(bytes),
                PROVIDER_METADATA => {}
                other => violation::other(format!("EtwWriteTransfer with a data descriptor of type {other}")),
            }
        }
        tracing().add(event(provider, descriptor, metadata, payload));
        nt::SUCCESS
    })
}

/// Returns the bytes of a part. Above APC_LEVEL they must be resident.
///
/// # Safety
/// The memory can be read.
unsafe fn bytes(part: &DataDescriptor) -> Vec<u8> {
    let start = usize::try_from(part.address).unwrap_or_default();
    let length = usize::try_from(part.size).unwrap_or_default();
    if irql::current() > APC_LEVEL && !is_resident(&(start..start + length)) {
        violation::other(format!("EtwWriteTransfer at IRQL {} of pageable memory at {start:#x}", irql::current()));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { slice::from_raw_parts(std::ptr::with_exposed_provenance(start), length) }.to_vec()
}

/// Returns whether memory is never paged out: on the stack of this thread, in a driver's image, or in nonpaged pool.
fn is_resident(range: &Range<usize>) -> bool {
    /// Size of a kernel stack, beyond which the caller's data cannot be.
    const STACK: usize = 24 << 10;
    let here = std::ptr::from_ref(&range).addr();
    (here..here + STACK).contains(&range.start) || loaded_images::is_resident(range) || pool::is_resident(range)
}

/// Returns the event with the stack of the code that writes it: after an interrupt, the DPC and what was interrupted.
fn event(provider: ProviderId, descriptor: EventDescriptor, metadata: Vec<u8>, payload: Vec<u8>) -> WrittenEvent {
    let EventDescriptor { id, version, channel, level, keyword, .. } = descriptor;
    let (mut processor, mut site) = (0, None);
    processors::with_current(|core| (processor, site) = (core.number, core.with(|state| state.dpc_site)));
    let site = site.filter(|_| irql::current() >= DISPATCH_LEVEL);
    let (kernel, user, is_there) =
        site.map_or_else(Default::default, |site| tracing().frames(site.ip, site.process, site.user));
    let site = site.filter(|_| is_there);
    WrittenEvent {
        provider,
        id,
        version,
        channel,
        level,
        keyword,
        processor,
        process: site.map_or(0, |site| site.process),
        thread: site.map_or(0, |site| site.thread),
        time: time::counter(),
        metadata,
        payload,
        kernel,
        user,
    }
}

/// Enables or disables a provider, and calls the callbacks of its registrations.
pub fn enable(provider: ProviderId, wanted: Option<Wanted>) {
    tracing().enable(provider, wanted);
    tracing().registry.call(nt::current_thread(), |registration| {
        if registration.provider == provider {
            call(registration, wanted);
        }
    });
}

/// Calls the callback of a registration, at PASSIVE_LEVEL.
fn call(ProviderRegistration { callback, context, .. }: ProviderRegistration, wanted: Option<Wanted>) {
    let Some(callback) = callback else { return };
    let source: ProviderId = Default::default();
    let control = if wanted.is_some() { ENABLE } else { DISABLE };
    let (level, keywords) = wanted.map_or((0, 0), |wanted| (wanted.level, wanted.keywords));
    // SAFETY: the driver registered this function with this context, and stays loaded while it runs.
    irql::run_at(PASSIVE_LEVEL, || unsafe { callback(&raw const source, control, level, keywords, 0, 0, context) });
}

/// Reports and removes what an unloaded driver left behind.
pub fn image_unloaded(addresses: &Range<usize>) {
    if tracing().registry.remove_where(|registration| registration.is_in(addresses)) > 0 {
        violation::other("a driver was unloaded that had registered a provider, with EtwRegister");
    }
}
