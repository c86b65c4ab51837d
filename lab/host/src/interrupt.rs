//! The profile interrupt: one thread for each processor, which calls the registered handler there.

#![expect(unsafe_code, reason = "calls a function of the driver")]

use crate::{
    hal, level, lock, nt,
    nt::HIGH_LEVEL,
    processor::{self, Core},
    violation::caught,
};
use std::{
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// In live time a processor does its work at least so often.
const TICK: Duration = Duration::from_millis(10);

/// The LVT performance entry as the HAL wants it: vector FE, fixed, not masked.
const LVT_OF_THE_HAL: u32 = 0xFE;

/// How long a test may wait for an interrupt that is held back.
const PATIENCE: Duration = Duration::from_secs(5);

/// Wakes the thread that delivers the interrupts of a processor.
#[derive(Default)]
pub struct Bell {
    calls: Mutex<Calls>,
    rung: Condvar,
    answered: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Calls {
    /// How often it was rung, and which of these the thread has answered.
    rung: u64,
    answered: u64,
    stop: bool,
}

impl Bell {
    /// An interrupt may be pending.
    pub fn ring(&self) {
        lock(&self.calls).rung += 1;
        self.rung.notify_one();
    }

    /// Rings, and waits until what is pending now is delivered; false if that takes too long.
    pub fn settle(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut calls = lock(&self.calls);
        calls.rung += 1;
        let mine = calls.rung;
        self.rung.notify_one();
        while calls.answered < mine {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            calls = self.answered.wait_timeout(calls, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub fn stop(&self) {
        lock(&self.calls).stop = true;
        self.rung.notify_one();
    }

    /// Waits for a ring, at most a tick; None when the thread is to end.
    fn wait(&self) -> Option<u64> {
        let calls = lock(&self.calls);
        let nothing = |calls: &mut Calls| !calls.stop && calls.rung == calls.answered;
        let (calls, _) = self.rung.wait_timeout_while(calls, TICK, nothing).unwrap_or_else(PoisonError::into_inner);
        (!calls.stop).then_some(calls.rung)
    }

    fn answer(&self, call: u64) {
        lock(&self.calls).answered = call;
        self.answered.notify_all();
    }
}

/// Starts the thread of a processor.
pub fn start(core: &'static Core) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        nt::set_affinity(1 << core.number);
        while let Some(call) = core.bell.wait() {
            while caught("an interrupt", false, || deliver(core)) {}
            core.bell.answer(call);
        }
    })
}

pub fn stop() {
    for core in processor::all() {
        core.bell.stop();
    }
}

/// Delivers the pending interrupt, if there is one and it is not masked, when the processor's interrupts are not.
fn deliver(core: &Core) -> bool {
    if !core.with(|state| state.processor.interrupt_pending()) {
        return false;
    }
    let thread = nt::current_thread();
    // Held while the handler runs: so unregistering waits for it.
    let handler = hal::handler();
    core.gate.enter(thread);
    let number = core.with(|state| {
        let taken = state.processor.take_interrupt();
        if taken {
            // Intel masks the entry on delivery. The HAL, since Windows 10 1803, unmasks it before it calls the handler.
            state.processor.set_lvt(LVT_OF_THE_HAL);
        }
        state.delivered += u64::from(taken && handler.is_some());
        taken.then_some(state.delivered)
    });
    if let (Some(number), Some(registered)) = (number, &*handler) {
        let mut frame = TrapFrame::interrupted(number);
        let routine = registered.routine;
        // SAFETY: the driver registered this function for this frame, and unregistering waits until it has returned.
        level::at(HIGH_LEVEL, || unsafe { routine(&raw mut frame) });
    }
    core.gate.leave(thread);
    number.is_some()
}

/// KTRAP_FRAME of x64, as far as a handler reads it.
#[repr(C, align(16))]
pub struct TrapFrame {
    registers: [u64; 45],
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

const _: () = assert!(size_of::<TrapFrame>() == 0x190 && std::mem::offset_of!(TrapFrame, rip) == 0x168);

impl TrapFrame {
    /// The n-th interruption of kernel code: sixteen addresses in turn, each in an instruction of sixteen bytes.
    fn interrupted(number: u64) -> Self {
        const CODE: u64 = 0xFFFF_F800_0000_0000;
        const STACK: u64 = 0xFFFF_F800_0010_0000;
        let rip = CODE + number % 16 * 16;
        Self { registers: [0; 45], rip, cs: 0x10, flags: 0x202, rsp: STACK, ss: 0x18 }
    }
}
