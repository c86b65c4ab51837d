//! Requests: mapping, cancellation and completion; `call_driver.rs` dispatches them. Wine differs from Windows in the
//! levels, and maps a client's pages before the dispatch.

#![expect(unsafe_code, reason = "reads and writes requests, and calls routines of the driver")]

use crate::{
    kernel::{call_stack, irql, scripted_events},
    lock::lock,
    nt::{self, APC_LEVEL, DISPATCH_LEVEL, NtStatus, Pointer},
    state::machine::MACHINE,
    violation::{self, catch_panic},
};
use std::{
    mem::offset_of,
    ops::Range,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
    thread,
    time::{Duration, Instant},
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn IoAcquireCancelSpinLock(level: *mut u8);
    fn IoReleaseCancelSpinLock(level: u8);
    fn IofCompleteRequest(irp: *mut Irp, boost: i8);
}

/// STATUS_PENDING.
pub const PENDING: NtStatus = nt::status(0x103);

/// `IO_STACK_LOCATION.Control`: IoMarkIrpPending sets it.
const PENDING_RETURNED: u8 = 0x01;

/// IRP_MJ_DEVICE_CONTROL.
pub const DEVICE_CONTROL: u8 = 0x0E;

/// MDL_MAPPED_TO_SYSTEM_VA and MDL_PAGES_LOCKED of `MDL.MdlFlags`.
const MAPPED: u16 = 0x0001;
const LOCKED: u16 = 0x0002;

/// UserMode of KPROCESSOR_MODE.
const USER_MODE: i8 = 1;

/// MdlMappingNoExecute (wdm.h), beside the MM_PAGE_PRIORITY.
const NO_EXECUTE: u32 = 0x4000_0000;

pub type Dispatch = unsafe extern "system" fn(*mut Device, *mut Irp) -> NtStatus;
type Cancel = unsafe extern "system" fn(*mut Device, *mut Irp);

/// DEVICE_OBJECT, as far as it is needed here. The same applies to the other structures (wdm.h, x64).
#[repr(C)]
pub struct Device {
    head: u64,
    pub driver: *mut Driver,
}

/// DRIVER_OBJECT.
#[repr(C)]
pub struct Driver {
    head: [u64; 14],
    pub major: [Dispatch; 28],
}

/// IO_STACK_LOCATION.
#[repr(C)]
pub struct Stack {
    pub major: u8,
    minor: u8,
    flags: u8,
    control: u8,
    pub parameters: [u64; 4],
    pub device: *mut Device,
    rest: [u64; 3],
}

/// IRP.
#[repr(C)]
pub struct Irp {
    head: u64,
    pub mdl: *mut Mdl,
    flags: [u64; 4],
    status: NtStatus,
    status_high: u32,
    information: u64,
    mode: u8,
    pending_returned: u8,
    stack_count: u8,
    pub location: u8,
    cancel: u8,
    cancel_level: u8,
    flags2: [u8; 2],
    user: [u64; 4],
    cancel_routine: AtomicPtr<std::ffi::c_void>,
    tail: [u64; 9],
    pub stack: *mut Stack,
}

/// MDL.
#[repr(C)]
pub struct Mdl {
    next: *mut Self,
    size: u16,
    flags: u16,
    process: Pointer,
    mapped: Pointer,
    start: Pointer,
    count: u32,
    offset: u32,
}

const _: () = assert!(offset_of!(Device, driver) == 0x08 && offset_of!(Driver, major) == 0x70);
const _: () = assert!(size_of::<Stack>() == 0x48 && offset_of!(Stack, device) == 0x28);
const _: () = assert!(offset_of!(Irp, status) == 0x30 && offset_of!(Irp, location) == 0x43);
const _: () = assert!(offset_of!(Irp, cancel_routine) == 0x68 && offset_of!(Irp, stack) == 0xB8);
/// Offset of the cancel routine in an IRP.
pub const CANCEL_ROUTINE: usize = offset_of!(Irp, cancel_routine);

const _: () = assert!(offset_of!(Mdl, mapped) == 0x18 && offset_of!(Mdl, offset) == 0x2C);

/// Returns the number of pending requests.
pub fn waiting() -> usize {
    lock(&MACHINE.kernel.requests).waiting()
}

/// Returns whether a driver holds the request at this address.
pub fn holds(request: usize) -> bool {
    lock(&MACHINE.kernel.requests).holds(request)
}

/// Reports the requests that an unloaded driver did not complete. Windows unloads no driver with an open handle. Wine
/// may unload it while another thread still returns from the handle's last request, so this waits for that thread.
pub fn image_unloaded(addresses: &Range<usize>) {
    let is_its = |routine| addresses.contains(&routine);
    let begun = Instant::now();
    while lock(&MACHINE.kernel.requests).is_in_dispatch(is_its) && begun.elapsed() < nt::HANG_LIMIT {
        thread::sleep(Duration::from_millis(1));
    }
    let left = lock(&MACHINE.kernel.requests).forget(is_its);
    if left > 0 {
        violation::other(format!("a driver was unloaded that had not completed {left} requests"));
    }
}

impl Mdl {
    /// Unmaps the pages. Wine maps them by copying the address from the other fields.
    pub fn unmap(&mut self) {
        if self.flags & MAPPED != 0 && self.mapped == self.address() {
            (self.flags, self.mapped) = (self.flags & !MAPPED | LOCKED, ptr::null_mut());
        }
    }

    fn address(&self) -> Pointer {
        self.start.wrapping_byte_add(usize::try_from(self.offset).unwrap_or_default())
    }
}

/// Implements MmMapLockedPagesSpecifyCache, which returns null in Wine.
pub unsafe extern "system" fn map_locked_pages(
    mdl: *mut Mdl,
    mode: i8,
    _caching: i32,
    _address: Pointer,
    _bug_check: u32,
    priority: u32,
) -> Pointer {
    let function = "MmMapLockedPagesSpecifyCache";
    catch_panic(function, ptr::null_mut(), || {
        irql::check(function, if mode == USER_MODE { APC_LEVEL } else { DISPATCH_LEVEL });
        if priority & NO_EXECUTE == 0 {
            violation::other(format!("{function} maps a client's pages as executable"));
        }
        if call_stack::fails(function) {
            return ptr::null_mut();
        }
        // SAFETY: the driver must pass an MDL that it owns.
        let pages = unsafe { &mut *mdl };
        if pages.flags & (LOCKED | MAPPED) != LOCKED {
            violation::other(format!("{function} of {mdl:p}, with the flags {:#x}", pages.flags));
            return ptr::null_mut();
        }
        (pages.flags, pages.mapped) = (pages.flags | MAPPED, pages.address());
        pages.mapped
    })
}

/// NT_ERROR (ntdef.h).
const fn is_error(status: NtStatus) -> bool {
    status.cast_unsigned() >> 30 == 3
}

/// Implements IofCompleteRequest.
pub unsafe extern "system" fn complete(irp: *mut Irp, boost: i8) {
    catch_panic("IofCompleteRequest", (), || {
        irql::check("IofCompleteRequest", DISPATCH_LEVEL);
        if !holds(irp.addr()) {
            return violation::other("IofCompleteRequest of a request that the driver does not have");
        }
        // SAFETY: the driver must pass a request that it owns.
        let request = unsafe { &*irp };
        if is_error(request.status) && request.information != 0 {
            let (status, information) = (request.status, request.information);
            violation::other(format!("a request failed with {status:#x} and {information} bytes of information"));
        }
        if request.status == PENDING {
            violation::other(format!("the request {irp:p} was completed with STATUS_PENDING"));
        }
        if !request.cancel_routine.load(Ordering::SeqCst).is_null() {
            violation::other(format!("the request {irp:p} was completed and can still be cancelled"));
        }
        // SAFETY: the current stack location belongs to the driver.
        let stack = unsafe { &*request.stack };
        let marked = stack.control & PENDING_RETURNED != 0;
        if stack.major == DEVICE_CONTROL {
            // Parameters.DeviceIoControl.IoControlCode
            let [_, _, code, _] = stack.parameters;
            scripted_events::after_request((code & 0xFFFF_FFFF) as u32);
        }
        if let Some(what) = lock(&MACHINE.kernel.requests).completed(irp.addr(), marked) {
            violation::other(format!("the request {irp:p} {what}"));
        }
        // Wine calls this under a lock under which it also calls cancel routines, and those may wait for this thread's
        // level.
        // SAFETY: the arguments are the driver's own.
        irql::without_dispatch_level(|| unsafe { IofCompleteRequest(irp, boost) });
    });
}

/// Implements IoCancelIrp. The cancel routine runs at DISPATCH_LEVEL under the cancel lock, which it must release.
pub unsafe extern "system" fn cancel(irp: *mut Irp) -> u8 {
    catch_panic("IoCancelIrp", 0, || {
        irql::check("IoCancelIrp", DISPATCH_LEVEL);
        // SAFETY: the caller of IoCancelIrp guarantees that the request is not complete.
        let request = unsafe { &mut *irp };
        let before = acquire();
        request.cancel = 1;
        let routine = request.cancel_routine.swap(ptr::null_mut(), Ordering::SeqCst);
        if routine.is_null() {
            release(before);
            return 0;
        }
        request.cancel_level = before;
        // SAFETY: the current stack location belongs to the driver.
        let device = unsafe { (*request.stack).device };
        // SAFETY: a driver stores only functions of this type there.
        let routine = unsafe { std::mem::transmute::<Pointer, Cancel>(routine) };
        // SAFETY: the routine was removed from the request, so it is called once.
        unsafe { routine(device, irp) };
        expect_irql("a cancel routine", before);
        1
    })
}

/// Records a violation if a routine returned at another level than `wanted`, and restores that level.
pub fn expect_irql(routine: &str, wanted: u8) {
    let level = irql::current();
    if level != wanted {
        violation::other(format!("{routine} returned at IRQL {level}, not {wanted}"));
        irql::set(wanted);
    }
}

/// Implements IoAcquireCancelSpinLock.
pub unsafe extern "system" fn acquire_cancel_lock(before: *mut u8) {
    catch_panic("IoAcquireCancelSpinLock", (), || {
        irql::check("IoAcquireCancelSpinLock", DISPATCH_LEVEL);
        // SAFETY: the driver must pass a writable variable.
        unsafe { before.write(acquire()) };
    });
}

/// Implements IoReleaseCancelSpinLock.
pub extern "system" fn release_cancel_lock(before: u8) {
    catch_panic("IoReleaseCancelSpinLock", (), || {
        if irql::current() != DISPATCH_LEVEL {
            violation::other(format!("IoReleaseCancelSpinLock at IRQL {}", irql::current()));
        }
        release(before);
    });
}

fn acquire() -> u8 {
    let before = irql::set(DISPATCH_LEVEL);
    let mut of_wine = 0;
    // SAFETY: the variable is writable; Wine ignores the level.
    unsafe { IoAcquireCancelSpinLock(&raw mut of_wine) };
    before
}

fn release(before: u8) {
    // SAFETY: this thread holds the lock, or the driver would hang in Windows too.
    unsafe { IoReleaseCancelSpinLock(0) };
    irql::set(before);
}
