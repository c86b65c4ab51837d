//! The handler of the profile interrupt, and what it does at HIGH_LEVEL.

use crate::{
    kernel::{self, HalDispatchTable, Irp, NtStatus, Pointer, STATUS_SUCCESS, Shared},
    processor::{self, level, write},
    reservation,
};
use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

/// HalProfileSourceInterruptHandler.
const INTERRUPT_HANDLER: u32 = 1;

/// Enabled, interrupt, both modes, event C0.
const SELECTED: u64 = 0x53_00C0;

/// Number of events until the counter overflows.
const PERIOD: u64 = 1_000_000;

/// What the handler can do. Requests name an entry by its index.
const ACTIONS: [fn(); 10] = [
    || {},
    allocate_and_free,
    || {
        // SAFETY: `initialize` initialized the event.
        unsafe { kernel::KeSetEvent(EVENT.address(), 0, 0) };
    },
    || {
        // SAFETY: zero is a free spin lock.
        let before = unsafe { kernel::KeAcquireSpinLockRaiseToDpc(LOCK.address()) };
        // SAFETY: acquired above.
        unsafe { kernel::KeReleaseSpinLock(LOCK.address(), before) };
    },
    || {
        // SAFETY: the format takes one integer.
        unsafe { kernel::DbgPrint(c"faulty driver at IRQL %d\n".as_ptr().cast(), 15) };
    },
    || {
        let timeout = 0;
        // SAFETY: `initialize` initialized the event; the timeout is readable.
        unsafe { kernel::KeWaitForSingleObject(EVENT.address(), 0, 0, 0, &raw const timeout) };
    },
    || {
        // SAFETY: null, or a request that PEND stored, which is taken once.
        if let Some(request) = unsafe { PENDED.swap(ptr::null_mut(), Ordering::SeqCst).as_mut() } {
            request.complete(STATUS_SUCCESS, &[]);
        }
    },
    || {
        register(None);
    },
    || {
        // SAFETY: the routine has the required type.
        unsafe { kernel::KeIpiGenericCall(nothing, 0) };
    },
    || {
        // SAFETY: `initialize` initialized the mutex.
        unsafe { kernel::ExAcquireFastMutex(MUTEX.address()) };
        // SAFETY: acquired above.
        unsafe { kernel::ExReleaseFastMutex(MUTEX.address()) };
    },
];

/// The number of handler calls and the observations of the last one; then those of the DPC that it queued.
pub type Report = [u32; 9];

static DPC: Shared = Shared::new();
static EVENT: Shared = Shared::new();
static LOCK: Shared = Shared::new();
static MUTEX: Shared = Shared::new();

static ACTION: AtomicU32 = AtomicU32::new(0);
static MILLISECONDS: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicU32 = AtomicU32::new(0);
static PENDED: AtomicPtr<Irp> = AtomicPtr::new(ptr::null_mut());
static OBSERVED: [AtomicU32; 9] = [const { AtomicU32::new(0) }; 9];

/// Initializes the kernel's objects. DriverEntry calls this once.
pub fn initialize() {
    // SAFETY: there is room for a DPC in the image, which is not paged; the routine has the required type.
    unsafe { kernel::KeInitializeDpc(DPC.address(), deferred, ptr::null_mut()) };
    // SAFETY: there is room for an event.
    unsafe { kernel::KeInitializeEvent(EVENT.address(), 0, 0) };
    // ExInitializeFastMutex is inline: a count of one, and at 0x18 a synchronization event.
    // SAFETY: the offset is inside the object.
    let event = unsafe { MUTEX.address().byte_add(0x18) };
    // SAFETY: there is room for the count, and no other code uses it yet.
    unsafe { MUTEX.address().cast::<i32>().write(1) };
    // SAFETY: there is room for an event.
    unsafe { kernel::KeInitializeEvent(event, 1, 0) };
}

fn allocate_and_free() {
    // SAFETY: the flags and the size are valid.
    let memory = unsafe { kernel::ExAllocatePool2(0x40, 16, 1) };
    // SAFETY: allocated above.
    unsafe { kernel::ExFreePool(memory) };
}

/// Registers the handler with its action and its duration, and starts the counter of each processor.
pub fn begin(action: u32, milliseconds: u32) -> NtStatus {
    ACTION.store(action, Ordering::SeqCst);
    MILLISECONDS.store(milliseconds, Ordering::SeqCst);
    let status = register(Some(interrupt));
    if status >= 0 {
        reservation::reserve();
        // SAFETY: the routine has the required type.
        unsafe { kernel::KeIpiGenericCall(start_counter, 0) };
    }
    status
}

/// Waits until no processor runs an unregistered handler.
pub fn wait() {
    // SAFETY: the routine has the required type.
    unsafe { kernel::KeIpiGenericCall(nothing, 0) };
}

/// Unregisters the handler, waits until no processor runs it, and stops the counters. If `early`, frees memory before
/// waiting. Returns the number of processors in the handler before and after the wait.
pub fn end(early: bool) -> [u32; 2] {
    register(None);
    if early {
        allocate_and_free();
    }
    let before = RUNNING.load(Ordering::SeqCst);
    wait();
    let after = RUNNING.load(Ordering::SeqCst);
    // SAFETY: the routine has the required type.
    unsafe { kernel::KeIpiGenericCall(stop_counter, 0) };
    // SAFETY: called at PASSIVE_LEVEL.
    unsafe { kernel::KeFlushQueuedDpcs() };
    reservation::free();
    [before, after]
}

pub fn report() -> Report {
    let mut report = [0; 9];
    for (number, seen) in report.iter_mut().zip(&OBSERVED) {
        *number = seen.load(Ordering::SeqCst);
    }
    report
}

/// Keeps a request for the handler to complete.
pub fn pend(irp: *mut Irp) {
    PENDED.store(irp, Ordering::SeqCst);
}

pub type Handler = unsafe extern "system" fn(*const [u64; 50]);

pub fn register(handler: Option<Handler>) -> NtStatus {
    let mut handler = handler;
    // SAFETY: the table lives as long as the kernel.
    let set = unsafe { (&raw const HalDispatchTable.set).read() };
    // SAFETY: the class takes the address of a handler, or null, in 8 bytes.
    unsafe { set(INTERRUPT_HANDLER, 8, (&raw mut handler).cast()) }
}

unsafe extern "system" fn nothing(_argument: usize) -> usize {
    0
}

unsafe extern "system" fn start_counter(_argument: usize) -> usize {
    load_counter();
    write(processor::counter().select, SELECTED);
    0
}

unsafe extern "system" fn stop_counter(_argument: usize) -> usize {
    write(processor::counter().select, 0);
    0
}

fn load_counter() {
    write(processor::counter().counter, PERIOD.wrapping_neg() & 0xFFFF_FFFF_FFFF);
}

/// Registers of KTRAP_FRAME that are valid in a handler, by their indexes.
const RIP: usize = 0x168 / 8;
const CS: usize = 0x170 / 8;

pub unsafe extern "system" fn interrupt(frame: *const [u64; 50]) {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the HAL passes a frame that is valid during the call.
    let frame = unsafe { &*frame };
    let low = |number: u64| u32::try_from(number & 0xFFFF_FFFF).unwrap_or_default();
    let at = |place: usize| frame.get(place).map_or(0, |value| low(*value));
    // SAFETY: the function has no preconditions.
    let process = unsafe { kernel::PsGetCurrentProcessId() };
    // SAFETY: the function has no preconditions.
    let thread = unsafe { kernel::PsGetCurrentThreadId() };
    let number = |id: Pointer| u32::try_from(id.addr()).unwrap_or(u32::MAX);
    let [calls, seen @ ..] = &OBSERVED;
    calls.fetch_add(1, Ordering::SeqCst);
    let values = [at(RIP), at(CS) & 0xFFFF, number(process), number(thread), processor::current(), level()];
    for (seen, value) in seen.iter().zip(values) {
        seen.store(value, Ordering::SeqCst);
    }
    // SAFETY: `initialize` initialized the DPC.
    unsafe { kernel::KeInsertQueueDpc(DPC.address(), ptr::null_mut(), ptr::null_mut()) };
    let action = usize::try_from(ACTION.load(Ordering::SeqCst)).unwrap_or_default();
    if let Some(action) = ACTIONS.get(action) {
        action();
    }
    load_counter();
    spin_for(MILLISECONDS.load(Ordering::SeqCst).into());
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "system" fn deferred(_dpc: Pointer, _context: Pointer, _first: Pointer, _second: Pointer) {
    let [.., on, at] = &OBSERVED;
    on.store(processor::current(), Ordering::SeqCst);
    at.store(level(), Ordering::SeqCst);
}

pub fn spin_for(milliseconds: i64) {
    let mut frequency = 0;
    // SAFETY: `frequency` is writable.
    let begin = unsafe { kernel::KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: the pointer is optional.
    while (unsafe { kernel::KeQueryPerformanceCounter(ptr::null_mut()) } - begin) * 1_000 < milliseconds * frequency {
        core::hint::spin_loop();
    }
}
