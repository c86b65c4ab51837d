//! Makes each call that can fail, in a fixed order, and releases what it obtained.

use crate::{
    apic, configuration, handler,
    kernel::{self, Irp, Pointer, STATUS_SUCCESS, Shared, Text, wide},
    power, processor_change, reservation,
};
use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

static NAME: [u16; 16] = wide(b"\\Device\\another\0");
static LINK: [u16; 20] = wide(b"\\DosDevices\\another\0");
static TABLE: [u16; 17] = wide(b"HalDispatchTable\0");

/// WRITE_DAC, SYNCHRONIZE and THREAD_ALL_ACCESS; OBJ_KERNEL_HANDLE; DACL_SECURITY_INFORMATION.
const WRITE_DAC: u32 = 0x0004_0000;
const SYNCHRONIZE: u32 = 0x0010_0000;
const THREAD_ALL_ACCESS: u32 = 0x001F_FFFF;
const KERNEL_HANDLE: u32 = 0x200;
/// FILE_DEVICE_SECURE_OPEN; NormalPagePriority and its flag MdlMappingNoExecute.
pub const SECURE_OPEN: u32 = 0x100;
const PRIORITY: u32 = 16;
const NO_EXECUTE: u32 = 0x4000_0000;
const DACL: u32 = 4;

/// A self-relative security descriptor with a null DACL, which grants everyone full access.
static NULL_DACL_DESCRIPTOR: [u16; 10] = [1, 0x8004, 0, 0, 0, 0, 0, 0, 0, 0];

static DPC: Shared = Shared::new();

/// A bit for each call that failed last time, in the order of the calls.
static FAILED: AtomicU32 = AtomicU32::new(0);

pub fn failed() -> u32 {
    FAILED.load(Ordering::SeqCst)
}

/// Counts calls and records which of them fail.
#[derive(Default)]
struct CallResults {
    calls: u32,
    failed: u32,
}

impl CallResults {
    /// Records a call and returns whether it succeeded.
    fn record(&mut self, succeeded: bool) -> bool {
        self.failed |= u32::from(!succeeded) << self.calls;
        self.calls += 1;
        succeeded
    }

    /// Makes and records a call that depends on an earlier one. If `possible` is false, the call is not made and does
    /// not count as failed.
    fn record_if(&mut self, possible: bool, call: impl FnOnce() -> bool) -> bool {
        self.record(!possible || call()) && possible
    }
}

/// Makes all the calls. The request must have direct output. An insecure driver maps pages as executable and creates
/// its device without FILE_DEVICE_SECURE_OPEN, so that the I/O manager does not check access to names below it.
pub fn make(driver: Pointer, device: Pointer, request: &Irp, insecure: bool) {
    let mut results = CallResults::default();
    memory(&mut results, request, if insecure { PRIORITY } else { PRIORITY | NO_EXECUTE });
    objects(&mut results, driver, device, if insecure { 0 } else { SECURE_OPEN });
    thread(&mut results);
    // SAFETY: this is the driver's device.
    let item = unsafe { kernel::IoAllocateWorkItem(device) };
    if results.record(!item.is_null()) {
        // SAFETY: allocated above, and not queued.
        unsafe { kernel::IoFreeWorkItem(item) };
    }
    hal_calls(&mut results);
    callbacks(&mut results);
    numbers(&mut results);
    FAILED.store(results.failed, Ordering::SeqCst);
}

fn memory(results: &mut CallResults, request: &Irp, priority: u32) {
    // SAFETY: NonPagedPool of 16 bytes.
    let memory = unsafe { kernel::ExAllocatePool2(0x40, 16, 1) };
    if results.record(!memory.is_null()) {
        // SAFETY: allocated above.
        unsafe { kernel::ExFreePool(memory) };
    }
    // SAFETY: the request has direct output and belongs to this driver, so its pages are locked.
    let pages = unsafe { kernel::MmMapLockedPagesSpecifyCache(request.pages, 0, 1, ptr::null_mut(), 0, priority) };
    results.record(!pages.is_null());
}

fn objects(results: &mut CallResults, driver: Pointer, device: Pointer, characteristics: u32) {
    let (mut another, mut handle) = (ptr::null_mut(), ptr::null_mut());
    let name = Text::new(&NAME);
    // SAFETY: the name is a counted string and only read; `another` is writable.
    let status =
        unsafe { kernel::IoCreateDevice(driver, 0, &raw const name, 0x8000, characteristics, 0, &raw mut another) };
    if results.record(status >= 0) {
        // SAFETY: created above.
        unsafe { kernel::IoDeleteDevice(another) };
    }
    let (link, name) = (Text::new(&LINK), Text::new(&super::NAME));
    // SAFETY: both names are counted strings and only read.
    if results.record(unsafe { kernel::IoCreateSymbolicLink(&raw const link, &raw const name) } >= 0) {
        // SAFETY: the name is a counted string and only read.
        unsafe { kernel::IoDeleteSymbolicLink(&raw const link) };
    }
    let none = ptr::null_mut();
    // SAFETY: this is the driver's device; `handle` is writable.
    let status =
        unsafe { kernel::ObOpenObjectByPointer(device, KERNEL_HANDLE, none, WRITE_DAC, none, 0, &raw mut handle) };
    let opened = results.record(status >= 0);
    // SAFETY: the handle was opened above; the descriptor is complete and only read.
    let protect = || unsafe { kernel::ZwSetSecurityObject(handle, DACL, (&raw const NULL_DACL_DESCRIPTOR).cast()) };
    results.record_if(opened, || protect() >= 0);
    if opened {
        // SAFETY: opened above, and closed once.
        unsafe { kernel::ZwClose(handle) };
    }
}

fn thread(results: &mut CallResults) {
    let (mut handle, mut thread, none) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: `handle` is writable, and the routine has the required type.
    let status =
        unsafe { kernel::PsCreateSystemThread(&raw mut handle, THREAD_ALL_ACCESS, none, none, none, ended, none) };
    let created = results.record(status >= 0);
    // SAFETY: the handle was created above; `thread` is writable.
    let mut reference =
        || unsafe { kernel::ObReferenceObjectByHandle(handle, SYNCHRONIZE, none, 0, &raw mut thread, none) };
    if results.record_if(created, || reference() >= 0) {
        // SAFETY: referenced above.
        unsafe { kernel::KeWaitForSingleObject(thread, 0, 0, 0, ptr::null()) };
        // SAFETY: referenced above.
        unsafe { kernel::ObfDereferenceObject(thread) };
    }
    if created {
        // SAFETY: created above; a null timeout waits without limit.
        unsafe { kernel::ZwWaitForSingleObject(handle, 0, ptr::null()) };
        // SAFETY: created above, and closed once.
        unsafe { kernel::ZwClose(handle) };
    }
}

/// Creates a thread that ends immediately, and does not wait for its end.
pub fn leave_thread() {
    let (mut handle, mut thread, none) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: `handle` is writable, and the routine has the required type.
    unsafe { kernel::PsCreateSystemThread(&raw mut handle, THREAD_ALL_ACCESS, none, none, none, ended, none) };
    // SAFETY: the handle was created above; `thread` is writable.
    let referenced = unsafe { kernel::ObReferenceObjectByHandle(handle, SYNCHRONIZE, none, 0, &raw mut thread, none) };
    if referenced >= 0 {
        // SAFETY: referenced above.
        unsafe { kernel::ObfDereferenceObject(thread) };
    }
    // SAFETY: created above.
    unsafe { kernel::ZwClose(handle) };
}

unsafe extern "system" fn ended(_context: Pointer) {
    // SAFETY: a system thread runs this.
    unsafe { kernel::PsTerminateSystemThread(STATUS_SUCCESS) };
}

fn hal_calls(results: &mut CallResults) {
    let table = Text::new(&TABLE);
    // SAFETY: the name is a counted string and only read.
    results.record(!unsafe { kernel::MmGetSystemRoutineAddress(&raw const table) }.is_null());
    results.record(handler::register(Some(handler::interrupt)) >= 0);
    if !results.record(handler::register(None) >= 0) {
        handler::register(None);
    }
    handler::wait();
    let reserved = results.record(reservation::reserve() >= 0);
    results.record_if(reserved, || reservation::free() >= 0);
    reservation::free();
    results.record(configuration::set(1) >= 0);
    configuration::set(0);
    if results.record(apic::map()) {
        apic::unmap();
    }
}

fn callbacks(results: &mut CallResults) {
    let found = results.record(power::find(false) >= 0);
    results.record_if(found, || power::register() >= 0);
    power::unregister();
    if results.record(processor_change::register(0, None) >= 0) {
        processor_change::unregister();
    }
}

fn numbers(results: &mut CallResults) {
    let mut number = [0; 4];
    // SAFETY: `number` is writable.
    let found = results.record(unsafe { kernel::KeGetProcessorNumberFromIndex(0, &raw mut number) } >= 0);
    // SAFETY: there is room for a DPC, which is not queued.
    unsafe { kernel::KeInitializeDpc(DPC.address(), nothing, ptr::null_mut()) };
    // SAFETY: initialized above; the number is only read.
    results.record_if(found, || unsafe { kernel::KeSetTargetProcessorDpcEx(DPC.address(), &raw const number) } >= 0);
}

unsafe extern "system" fn nothing(_dpc: Pointer, _context: Pointer, _first: Pointer, _second: Pointer) {}
