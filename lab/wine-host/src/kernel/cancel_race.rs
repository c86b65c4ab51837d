//! The worst moments for a cancel: just before and just after a driver exchanges the cancel routine of a request, while it
//! has a spin lock.
//!
//! The exchange is inline in the driver, so nothing is called there. While a moment is wanted, each instruction that a
//! thread executes between KeAcquireSpinLockRaiseToDpc and KeReleaseSpinLock traps, by the trap flag. At the moment,
//! another thread on another processor cancels the request. The driver goes on when that thread is through or waits for
//! a spin lock: so it is always the same order, and not luck.

#![expect(unsafe_code, reason = "sets the trap flag, and reads the instructions of the driver")]

use crate::{
    cpu::{affinity, topology, xchg},
    kernel::{loaded_images, requests},
    violation,
};
use bench_protocol::CancelMoment;
use std::{
    arch::asm,
    cell::{Cell, RefCell},
    convert::Infallible,
    ptr,
    sync::{
        atomic::{AtomicU8, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// EFLAGS.TF (SDM Vol. 1, 3.4.3.3).
const TRAP_FLAG: u32 = 0x100;

/// How long a cancel may take to come to its lock or to its end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The moment that is wanted, by its place here, or [`NONE`]. An exception handler reads it, which must not wait.
const MOMENTS: [CancelMoment; 4] =
    [CancelMoment::BeforeSet, CancelMoment::AfterSet, CancelMoment::BeforeTake, CancelMoment::AfterTake];
const NONE: u8 = u8::MAX;
static ARMED: AtomicU8 = AtomicU8::new(NONE);

thread_local! {
    /// Whether this thread has a spin lock and every instruction of it traps.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
    /// Whether one more trap may reached.
    static STEPPING: Cell<bool> = const { Cell::new(false) };
    /// The request whose exchange this thread is executing, which is cancelled after it.
    static CANCEL_AFTER: Cell<Option<usize>> = const { Cell::new(None) };
    /// Of a thread that cancels: what it drops when it has come to a lock.
    static REACHED_LOCK: RefCell<Option<Sender<Infallible>>> = const { RefCell::new(None) };
}

/// The next request with which a driver comes to this moment is cancelled then. False where there is one processor only:
/// nothing happens at the same time there.
pub fn arm(moment: Option<CancelMoment>) -> bool {
    let place = MOMENTS.iter().position(|known| Some(*known) == moment);
    ARMED.store(place.and_then(|place| u8::try_from(place).ok()).unwrap_or(NONE), Ordering::SeqCst);
    topology::active() > 1
}

fn armed() -> Option<CancelMoment> {
    MOMENTS.get(usize::from(ARMED.load(Ordering::SeqCst))).copied()
}

/// This thread is about to wait for a spin lock.
pub fn before_lock() {
    REACHED_LOCK.with_borrow_mut(Option::take);
}

/// This thread has a spin lock.
pub fn after_lock() {
    if armed().is_some() {
        LOCKED.set(true);
        STEPPING.set(true);
        // SAFETY: the stack is as before; each trap is answered by `stepped`.
        unsafe { asm!("pushfq", "or qword ptr [rsp], {flag}", "popfq", flag = const TRAP_FLAG) };
    }
}

/// This thread is about to release a spin lock.
pub fn before_unlock() {
    LOCKED.set(false);
}

/// An instruction has trapped: whether that was for the lab.
pub fn on_single_step(context: &mut CONTEXT) -> bool {
    if !STEPPING.get() {
        return false;
    }
    if let Some(request) = CANCEL_AFTER.take() {
        cancel(request);
    }
    if let Some(moment) = armed().filter(|_| LOCKED.get()) {
        cancel_at_exchange(moment, context);
    }
    let goes_on = LOCKED.get() && (armed().is_some() || CANCEL_AFTER.get().is_some());
    if goes_on {
        context.EFlags |= TRAP_FLAG;
    }
    STEPPING.set(goes_on);
    true
}

/// Cancels the request if the next instruction is the one that is wanted.
fn cancel_at_exchange(moment: CancelMoment, context: &CONTEXT) {
    let Some(code) = usize::try_from(context.Rip).ok().and_then(loaded_images::code_at) else { return };
    let Some(found) = xchg::decode(code, context.Rip, |number| register(context, number)) else { return };
    let field = usize::try_from(found.address).unwrap_or_default();
    let request = field.wrapping_sub(requests::CANCEL_ROUTINE);
    if !requests::holds(request) {
        return;
    }
    match (moment, found.value == 0) {
        (CancelMoment::BeforeSet, false) | (CancelMoment::BeforeTake, true) => cancel(request),
        (CancelMoment::AfterSet, false) | (CancelMoment::AfterTake, true) => {
            ARMED.store(NONE, Ordering::SeqCst);
            CANCEL_AFTER.set(Some(request));
        }
        _ => {}
    }
}

/// A general register of the thread, by the number that it has in instructions.
fn register(context: &CONTEXT, number: usize) -> Option<u64> {
    let CONTEXT { Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15, .. } = *context;
    [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15].get(number).copied()
}

/// Cancels the request on another thread and processor, up to the first lock that it may have to wait for.
fn cancel(request: usize) {
    ARMED.store(NONE, Ordering::SeqCst);
    let here = affinity::current_processor();
    let there = (0..topology::active()).find(|number| *number != here).unwrap_or(here);
    let (sender, reached) = mpsc::channel::<Infallible>();
    thread::spawn(move || {
        affinity::restrict(1 << there);
        REACHED_LOCK.set(Some(sender));
        // SAFETY: a driver has the request, and cannot complete it before this thread has come to a lock or is through.
        unsafe { requests::cancel(ptr::with_exposed_provenance_mut(request)) };
        before_lock();
    });
    if reached.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        violation::other("the lab itself failed: a cancel came neither to a lock nor to its end");
    }
}
