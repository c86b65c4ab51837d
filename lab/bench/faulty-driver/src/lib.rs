//! faulty-driver.sys: a driver that breaks the rules for drivers on request, so that tests can check that the lab
//! notices. It also makes permitted calls, which the lab must allow.
//!
//! `code` lists its requests, which the other modules serve.
//!
//! It uses one counter: the first of AMD's legacy counters or of Intel's general counters.

#![cfg(windows)]
#![no_std]
#![expect(unsafe_code, reason = "a driver")]

mod apic;
mod calls;
mod configuration;
mod handler;
mod kernel;
mod power;
mod processor;
mod processor_change;
mod reservation;

use core::{
    panic::PanicInfo,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};
use kernel::{Irp, NtStatus, Pointer, STATUS_PENDING, STATUS_SUCCESS, STATUS_UNSUCCESSFUL, Shared, Text, wide};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Control codes: METHOD_BUFFERED except for one, FILE_ANY_ACCESS.
mod code {
    const fn of(function: u32) -> u32 {
        0x8000 << 16 | function << 2
    }

    /// Input: what the handler does, as an index of `handler::ACTIONS`, and how long it runs, in milliseconds.
    pub const BEGIN: u32 = of(0x800);
    /// Output: a `handler::Report`.
    pub const REPORT: u32 = of(0x801);
    /// Input: 1 to free memory before KeIpiGenericCall. Output: the number of processors in the handler before and
    /// after that call.
    pub const END: u32 = of(0x802);
    /// Pends the request until the handler completes it.
    pub const PEND: u32 = of(0x803);
    /// Input: the rule of completion to break, as a number that `break_completion` takes.
    pub const BREAK_COMPLETION: u32 = of(0x804);
    /// Input: 0 to open the callback object and register, 1 to unregister and release it, 2 to open it only, 3 to open
    /// another object. Output: the status.
    pub const POWER: u32 = of(0x805);
    /// Output: the result of `power::report`.
    pub const POWER_REPORT: u32 = of(0x806);
    /// Input: flags, or all ones to unregister; the processor to reject plus 1, or 0 for none. Output: the status.
    pub const PROCESSOR_CHANGE: u32 = of(0x807);
    /// Output: a `processor_change::Report`.
    pub const PROCESSOR_CHANGE_REPORT: u32 = of(0x808);
    /// Input: a function of `apic`, as a number that `serve_apic` takes, and its argument. Output: its result.
    pub const APIC: u32 = of(0x809);
    /// Input: an MSR, and the lower half of the value to write to it on the current processor.
    pub const WRITE: u32 = of(0x80A);
    /// Input: an MSR. Output: the two halves of its value.
    pub const READ: u32 = of(0x80B);
    /// Input: 0 to reserve the counters, 1 to free them. Output: the status.
    pub const RESERVE: u32 = of(0x80C);
    /// Output: the result of `processor::time`, the numbers of active and of possible processors, and a bit for each
    /// processor on which KeIpiGenericCall ran its routine.
    pub const MACHINE: u32 = of(0x80D);
    /// METHOD_OUT_DIRECT: makes the calls of `calls`. Input: 1 to make some of them insecurely; see `calls::make`.
    pub const CALLS: u32 = of(0x80E) | 2;
    /// Output: a bit for each of these calls that failed.
    pub const CALLS_REPORT: u32 = of(0x80F);
    /// Input: 0 to leak a work item, 1 to leave a thread running, 2 to queue a work item after its device is deleted.
    pub const LEAK: u32 = of(0x810);
    /// Input: a number of hardware counters to configure for thread profiling. Output: the status.
    pub const CONFIGURE: u32 = of(0x811);
    /// Input: the number of hardware counters that there is room for. Output: the result of `configuration::query`.
    pub const CONFIGURATION: u32 = of(0x812);
}

static NAME: [u16; 21] = wide(b"\\Device\\faultydriver\0");
static LINK: [u16; 25] = wide(b"\\DosDevices\\faultydriver\0");

/// Creates the device and its link.
///
/// # Safety
/// `driver` must be a DRIVER_OBJECT.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DriverEntry(driver: Pointer, _registry_path: Pointer) -> NtStatus {
    // SAFETY: the function has no preconditions. The lab must notice this import.
    unsafe { kernel::IoGetCurrentProcess() };
    let mut device = ptr::null_mut();
    let (name, link) = (Text::new(&NAME), Text::new(&LINK));
    // SAFETY: the name is a counted string and only read; `device` is writable.
    let status =
        unsafe { kernel::IoCreateDevice(driver, 0, &raw const name, 0x8000, calls::SECURE_OPEN, 0, &raw mut device) };
    if status < 0 {
        return status;
    }
    // SAFETY: both names are counted strings and only read.
    let status = unsafe { kernel::IoCreateSymbolicLink(&raw const link, &raw const name) };
    if status < 0 {
        // SAFETY: created above.
        unsafe { kernel::IoDeleteDevice(device) };
        return status;
    }
    handler::initialize();
    // SAFETY: `driver` is the DRIVER_OBJECT that the I/O manager passed.
    unsafe { kernel::set_routines(driver, dispatch, unload) };
    STATUS_SUCCESS
}

unsafe extern "system" fn unload(driver: Pointer) {
    let link = Text::new(&LINK);
    // SAFETY: the name is a counted string and only read.
    unsafe { kernel::IoDeleteSymbolicLink(&raw const link) };
    // SAFETY: `driver` is the DRIVER_OBJECT that the I/O manager passed.
    let device = unsafe { kernel::device_of(driver) };
    // SAFETY: DriverEntry created it.
    unsafe { kernel::IoDeleteDevice(device) };
}

unsafe extern "system" fn dispatch(device: Pointer, irp: *mut Irp) -> NtStatus {
    // SAFETY: the I/O manager passed the request, which this driver owns now.
    let request = unsafe { &mut *irp };
    let Some((code, input)) = request.control() else { return request.complete(STATUS_SUCCESS, &[]) };
    let [first, second] = input;
    match code {
        code::BEGIN => {
            let status = handler::begin(first, second);
            request.complete(status, &[])
        }
        code::REPORT => request.complete(STATUS_SUCCESS, &handler::report()),
        code::END => request.complete(STATUS_SUCCESS, &handler::end(first == 1)),
        code::PEND => {
            request.mark_pending();
            handler::pend(irp);
            STATUS_PENDING
        }
        code::BREAK_COMPLETION => break_completion(request, first),
        code::POWER => request.complete(STATUS_SUCCESS, &[serve_power(first).cast_unsigned()]),
        code::POWER_REPORT => request.complete(STATUS_SUCCESS, &power::report()),
        code::PROCESSOR_CHANGE => {
            request.complete(STATUS_SUCCESS, &[serve_processor_change(first, second).cast_unsigned()])
        }
        code::PROCESSOR_CHANGE_REPORT => request.complete(STATUS_SUCCESS, &processor_change::report()),
        code::APIC => request.complete(STATUS_SUCCESS, &serve_apic(first, second)),
        code::WRITE => {
            processor::write(first, second.into());
            request.complete(STATUS_SUCCESS, &[])
        }
        code::READ => request.complete(STATUS_SUCCESS, &processor::read(first)),
        code::RESERVE => request.complete(STATUS_SUCCESS, &[reservation(first).cast_unsigned()]),
        code::MACHINE => request.complete(STATUS_SUCCESS, &machine()),
        code::CALLS => {
            // SAFETY: this is the driver's device.
            let driver = unsafe { kernel::driver_of(device) };
            calls::make(driver, device, request, first == 1);
            request.complete(STATUS_SUCCESS, &[])
        }
        code::CALLS_REPORT => request.complete(STATUS_SUCCESS, &[calls::failed()]),
        code::LEAK => {
            leak(device, first);
            request.complete(STATUS_SUCCESS, &[])
        }
        code::CONFIGURE => request.complete(STATUS_SUCCESS, &[configuration::set(first).cast_unsigned()]),
        code::CONFIGURATION => request.complete(STATUS_SUCCESS, &configuration::query(first)),
        _ => request.complete(STATUS_UNSUCCESSFUL, &[]),
    }
}

fn serve_power(what: u32) -> NtStatus {
    match what {
        0 => match power::find(false) {
            STATUS_SUCCESS => power::register(),
            refused => refused,
        },
        1 => {
            power::unregister();
            STATUS_SUCCESS
        }
        what => power::find(what == 3),
    }
}

fn serve_processor_change(flags: u32, rejected: u32) -> NtStatus {
    if flags == u32::MAX {
        processor_change::unregister();
        return STATUS_SUCCESS;
    }
    processor_change::register(flags, rejected.checked_sub(1))
}

fn serve_apic(what: u32, value: u32) -> [u32; 8] {
    let result = match what {
        0 => u32::from(apic::map()),
        1 => return apic::entries(),
        2 => {
            apic::set_entries(value);
            0
        }
        3 => {
            apic::unmap();
            0
        }
        4 => {
            apic::end_of_interrupt();
            0
        }
        5 => apic::read_wide(),
        _ => apic::map_wrongly(),
    };
    [result, 0, 0, 0, 0, 0, 0, 0]
}

fn reservation(what: u32) -> NtStatus {
    if what == 0 {
        return reservation::reserve();
    }
    reservation::free();
    STATUS_SUCCESS
}

fn machine() -> [u32; 5] {
    static RAN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "system" fn run(_argument: usize) -> usize {
        RAN.fetch_or(1 << processor::current(), Ordering::SeqCst);
        0
    }
    RAN.store(0, Ordering::SeqCst);
    // SAFETY: the routine has the required type.
    unsafe { kernel::KeIpiGenericCall(run, 0) };
    let [counter, time] = processor::time();
    // SAFETY: the function has no preconditions.
    let active = unsafe { kernel::KeQueryActiveProcessorCountEx(0xFFFF) };
    // SAFETY: the function has no preconditions.
    let maximum = unsafe { kernel::KeQueryMaximumProcessorCountEx(0xFFFF) };
    [counter, time, active, maximum, RAN.load(Ordering::SeqCst)]
}

/// Leaks a work item or a thread, or queues a work item too late.
fn leak(device: Pointer, what: u32) {
    match what {
        0 => {
            // SAFETY: this is the driver's device.
            unsafe { kernel::IoAllocateWorkItem(device) };
        }
        1 => calls::leave_thread(),
        _ => queue_too_late(device),
    }
}

/// Queues a work item of a deleted device, and waits until its routine has freed it.
fn queue_too_late(device: Pointer) {
    static FREED: Shared = Shared::new();
    unsafe extern "system" fn run(_device: Pointer, item: Pointer) {
        // SAFETY: allocated below, and no longer queued.
        unsafe { kernel::IoFreeWorkItem(item) };
        // SAFETY: initialized below.
        unsafe { kernel::KeSetEvent(FREED.address(), 0, 0) };
    }
    // SAFETY: there is room for an event.
    unsafe { kernel::KeInitializeEvent(FREED.address(), 0, 0) };
    let mut another = ptr::null_mut();
    // SAFETY: this is the driver's device.
    let driver = unsafe { kernel::driver_of(device) };
    // SAFETY: the device has no name, and `another` is writable.
    unsafe { kernel::IoCreateDevice(driver, 0, ptr::null(), 0x8000, 0, 0, &raw mut another) };
    // SAFETY: created above.
    let item = unsafe { kernel::IoAllocateWorkItem(another) };
    // SAFETY: created above.
    unsafe { kernel::IoDeleteDevice(another) };
    // SAFETY: a deliberate violation. The lab does not free the device.
    unsafe { kernel::IoQueueWorkItem(item, run, 1, item) };
    // SAFETY: initialized above.
    unsafe { kernel::KeWaitForSingleObject(FREED.address(), 0, 0, 0, ptr::null()) };
}

fn break_completion(request: &mut Irp, which: u32) -> NtStatus {
    match which {
        0 => {
            request.complete(STATUS_SUCCESS, &[]);
            STATUS_PENDING
        }
        1 => {
            request.mark_pending();
            request.complete(STATUS_SUCCESS, &[])
        }
        2 => {
            request.leave_cancel_routine();
            request.complete(STATUS_SUCCESS, &[])
        }
        3 => request.complete(STATUS_UNSUCCESSFUL, &[0]),
        4 => {
            let irp = ptr::from_mut(request);
            request.complete(STATUS_SUCCESS, &[]);
            // SAFETY: a deliberate violation. The lab does not access the request again.
            unsafe { kernel::IofCompleteRequest(irp, 0) };
            STATUS_SUCCESS
        }
        _ => request.complete(STATUS_PENDING, &[]),
    }
}
