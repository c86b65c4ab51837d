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

/// Events until the counter overflows.
const PERIOD: u64 = 1_000_000;

/// What the handler does; the number of a deed is its place.
const DEEDS: [fn(); 10] = [
    || {},
    allocate_and_free,
    || {
        // SAFETY: `initialize` made it an event.
        unsafe { kernel::KeSetEvent(EVENT.address(), 0, 0) };
    },
    || {
        // SAFETY: zero is a lock that nobody has.
        let before = unsafe { kernel::KeAcquireSpinLockRaiseToDpc(LOCK.address()) };
        // SAFETY: acquired above.
        unsafe { kernel::KeReleaseSpinLock(LOCK.address(), before) };
    },
    || {
        // SAFETY: a format that takes a number, and one.
        unsafe { kernel::DbgPrint(c"specimen at IRQL %d\n".as_ptr().cast(), 15) };
    },
    || {
        let timeout = 0;
        // SAFETY: `initialize` made it an event; the time can be read.
        unsafe { kernel::KeWaitForSingleObject(EVENT.address(), 0, 0, 0, &raw const timeout) };
    },
    || {
        // SAFETY: null, or a request that HOLD left here, and that is taken once.
        if let Some(request) = unsafe { HELD.swap(ptr::null_mut(), Ordering::SeqCst).as_mut() } {
            request.complete(STATUS_SUCCESS, &[]);
        }
    },
    || {
        register(None);
    },
    || {
        // SAFETY: a routine of this type.
        unsafe { kernel::KeIpiGenericCall(nothing, 0) };
    },
    || {
        // SAFETY: `initialize` made it a mutex.
        unsafe { kernel::ExAcquireFastMutex(MUTEX.address()) };
        // SAFETY: acquired above.
        unsafe { kernel::ExReleaseFastMutex(MUTEX.address()) };
    },
];

/// What the handler saw when it was called last, and how often it was; then what the DPC saw that it queued.
pub type Report = [u32; 9];

static DPC: Shared = Shared::new();
static EVENT: Shared = Shared::new();
static LOCK: Shared = Shared::new();
static MUTEX: Shared = Shared::new();

static DEED: AtomicU32 = AtomicU32::new(0);
static MILLISECONDS: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicU32 = AtomicU32::new(0);
static HELD: AtomicPtr<Irp> = AtomicPtr::new(ptr::null_mut());
static SEEN: [AtomicU32; 9] = [const { AtomicU32::new(0) }; 9];

/// Called once, by DriverEntry.
pub fn initialize() {
    // SAFETY: room for a DPC, in the image, which is not paged; the routine is of the right type.
    unsafe { kernel::KeInitializeDpc(DPC.address(), deferred, ptr::null_mut()) };
    // SAFETY: room for an event: a notification event, not set.
    unsafe { kernel::KeInitializeEvent(EVENT.address(), 0, 0) };
    // ExInitializeFastMutex, which is inline: a count of one, and at 0x18 an event, of the other kind.
    // SAFETY: inside the object.
    let event = unsafe { MUTEX.address().byte_add(0x18) };
    // SAFETY: room for the count, which nobody uses yet.
    unsafe { MUTEX.address().cast::<i32>().write(1) };
    // SAFETY: room for an event.
    unsafe { kernel::KeInitializeEvent(event, 1, 0) };
}

fn allocate_and_free() {
    // SAFETY: NonPagedPool of 16 bytes.
    let memory = unsafe { kernel::ExAllocatePool2(0x40, 16, 1) };
    // SAFETY: allocated above.
    unsafe { kernel::ExFreePool(memory) };
}

/// Registers the handler, which will do this deed and take so long, and starts the counters.
pub fn begin(deed: u32, milliseconds: u32) -> NtStatus {
    DEED.store(deed, Ordering::SeqCst);
    MILLISECONDS.store(milliseconds, Ordering::SeqCst);
    let status = register(Some(interrupt));
    if status >= 0 {
        reservation::reserve();
        // SAFETY: a routine of this type.
        unsafe { kernel::KeIpiGenericCall(start_counter, 0) };
    }
    status
}

/// Comes back when no processor is in the handler that was.
pub fn wait() {
    // SAFETY: a routine of this type.
    unsafe { kernel::KeIpiGenericCall(nothing, 0) };
}

/// Takes the handler away, and then stops the counters; in between it calls KeIpiGenericCall with a routine that has
/// nothing to wait for. If `early`, it gives memory back before that.
pub fn end(early: bool) -> [u32; 2] {
    register(None);
    if early {
        allocate_and_free();
    }
    let before = RUNNING.load(Ordering::SeqCst);
    wait();
    let after = RUNNING.load(Ordering::SeqCst);
    // SAFETY: a routine of this type.
    unsafe { kernel::KeIpiGenericCall(stop_counter, 0) };
    // SAFETY: PASSIVE_LEVEL.
    unsafe { kernel::KeFlushQueuedDpcs() };
    reservation::free();
    [before, after]
}

pub fn report() -> Report {
    let mut report = [0; 9];
    for (number, seen) in report.iter_mut().zip(&SEEN) {
        *number = seen.load(Ordering::SeqCst);
    }
    report
}

/// Keeps a request for the handler.
pub fn hold(irp: *mut Irp) {
    HELD.store(irp, Ordering::SeqCst);
}

pub type Handler = unsafe extern "system" fn(*const [u64; 50]);

pub fn register(handler: Option<Handler>) -> NtStatus {
    let mut handler = handler;
    // SAFETY: the kernel's table, which lives as long as it.
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

/// The registers of KTRAP_FRAME that a handler may believe, by their places.
const RIP: usize = 0x168 / 8;
const CS: usize = 0x170 / 8;

pub unsafe extern "system" fn interrupt(frame: *const [u64; 50]) {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the HAL lends its frame.
    let frame = unsafe { &*frame };
    let low = |number: u64| u32::try_from(number & 0xFFFF_FFFF).unwrap_or_default();
    let at = |place: usize| frame.get(place).map_or(0, |value| low(*value));
    // SAFETY: no requirement.
    let process = unsafe { kernel::PsGetCurrentProcessId() };
    // SAFETY: no requirement.
    let thread = unsafe { kernel::PsGetCurrentThreadId() };
    let number = |id: Pointer| u32::try_from(id.addr()).unwrap_or(u32::MAX);
    let [calls, seen @ ..] = &SEEN;
    calls.fetch_add(1, Ordering::SeqCst);
    let values = [at(RIP), at(CS) & 0xFFFF, number(process), number(thread), processor::current(), level()];
    for (seen, value) in seen.iter().zip(values) {
        seen.store(value, Ordering::SeqCst);
    }
    // SAFETY: `initialize` made it a DPC.
    unsafe { kernel::KeInsertQueueDpc(DPC.address(), ptr::null_mut(), ptr::null_mut()) };
    let deed = usize::try_from(DEED.load(Ordering::SeqCst)).unwrap_or_default();
    if let Some(deed) = DEEDS.get(deed) {
        deed();
    }
    load_counter();
    take_time(MILLISECONDS.load(Ordering::SeqCst).into());
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "system" fn deferred(_dpc: Pointer, _context: Pointer, _first: Pointer, _second: Pointer) {
    let [.., on, at] = &SEEN;
    on.store(processor::current(), Ordering::SeqCst);
    at.store(level(), Ordering::SeqCst);
}

pub fn take_time(milliseconds: i64) {
    let mut frequency = 0;
    // SAFETY: the variable may be written.
    let begin = unsafe { kernel::KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: the pointer is optional.
    while (unsafe { kernel::KeQueryPerformanceCounter(ptr::null_mut()) } - begin) * 1_000 < milliseconds * frequency {
        core::hint::spin_loop();
    }
}
