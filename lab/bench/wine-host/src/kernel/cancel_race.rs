//! Cancels a request at the worst moments: just before and just after a driver exchanges the request's cancel routine
//! while it holds a spin lock.
//!
//! The exchange is inline in the driver, so no function of the lab is called. While a moment is armed, the trap flag
//! makes each instruction between KeAcquireSpinLockRaiseToDpc and KeReleaseSpinLock trap. At the armed moment, a thread
//! on another processor cancels the request. The driver continues when that thread has finished or waits for a spin
//! lock, so the order is always the same.

#![expect(unsafe_code, reason = "sets the trap flag, and reads the instructions of the driver")]

use crate::{
    cpu::{affinity, xchg},
    kernel::{loaded_images, requests},
    nt,
    state::machine::MACHINE,
    violation,
};
use bench_protocol::CancelMoment;
use std::{
    arch::asm,
    cell::{Cell, RefCell},
    convert::Infallible,
    ptr,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
};
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// EFLAGS.TF (SDM Vol. 1, 3.4.3.3).
const TRAP_FLAG: u32 = 0x100;

thread_local! {
    /// Whether this thread holds a spin lock and single-steps.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread expects one more single-step trap.
    static STEPPING: Cell<bool> = const { Cell::new(false) };
    /// The request to cancel after the exchange that this thread executes.
    static CANCEL_AFTER: Cell<Option<usize>> = const { Cell::new(None) };
    /// Set on a thread that cancels; dropped when the thread reaches a lock.
    static REACHED_LOCK: RefCell<Option<Sender<Infallible>>> = const { RefCell::new(None) };
}

/// Arms a moment: the next request that reaches it is cancelled. Returns false if there is only one processor, because
/// then nothing happens concurrently.
pub fn arm(moment: Option<CancelMoment>) -> bool {
    MACHINE.kernel.armed_moment.set(moment);
    MACHINE.topology.active() > 1
}

fn armed() -> Option<CancelMoment> {
    MACHINE.kernel.armed_moment.get()
}

/// Reports that this thread is about to wait for a spin lock.
pub fn before_lock() {
    REACHED_LOCK.with_borrow_mut(Option::take);
}

/// Reports that this thread holds a spin lock.
pub fn after_lock() {
    if armed().is_some() {
        LOCKED.set(true);
        STEPPING.set(true);
        // SAFETY: the stack is unchanged afterwards, and `on_single_step` handles each trap.
        unsafe { asm!("pushfq", "or qword ptr [rsp], {flag}", "popfq", flag = const TRAP_FLAG) };
    }
}

/// Reports that this thread is about to release a spin lock.
pub fn before_unlock() {
    LOCKED.set(false);
}

/// Handles a single-step trap. Returns whether the lab caused it.
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

/// Cancels the request if the next instruction is the armed exchange.
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
            MACHINE.kernel.armed_moment.set(None);
            CANCEL_AFTER.set(Some(request));
        }
        _ => {}
    }
}

/// Returns a general register of the thread, by its number in instruction encodings.
fn register(context: &CONTEXT, number: usize) -> Option<u64> {
    let CONTEXT { Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15, .. } = *context;
    [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15].get(number).copied()
}

/// Cancels the request on another thread and processor. Returns when that thread reaches a lock or ends.
fn cancel(request: usize) {
    MACHINE.kernel.armed_moment.set(None);
    let here = affinity::current_processor();
    let there = (0..MACHINE.topology.active()).find(|number| *number != here).unwrap_or(here);
    let (sender, reached) = mpsc::channel::<Infallible>();
    thread::spawn(move || {
        affinity::restrict(1 << there);
        REACHED_LOCK.set(Some(sender));
        // SAFETY: a driver holds the request, and cannot complete it before this thread has reached a lock or has
        // ended.
        unsafe { requests::cancel(ptr::with_exposed_provenance_mut(request)) };
        before_lock();
    });
    if reached.recv_timeout(nt::HANG_LIMIT) == Err(RecvTimeoutError::Timeout) {
        violation::other("the lab itself failed: a cancel neither reached a lock nor ended");
    }
}
