//! The profile interrupt: one thread for each processor, which calls the registered handler there.

#![expect(unsafe_code, reason = "calls a function of the driver")]

use crate::{
    cpu::{
        affinity,
        processor::{self, Core},
    },
    kernel::{current_ids, hal, irql},
    lock, nt,
    nt::HIGH_LEVEL,
    violation::{self, caught},
};
use bench_protocol::Place;
use std::{
    ptr,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Vector 7:0 and delivery mode 10:8 of the LVT entry: where an interrupt goes.
const LVT_TARGET: u32 = 0x7FF;

/// How long a test may wait for an interrupt that is held back.
const PATIENCE: Duration = Duration::from_secs(5);

/// Wakes the thread that delivers the interrupts of a processor.
#[derive(Default)]
pub struct Bell {
    calls: Mutex<Calls>,
    answered: Condvar,
    /// Another value after each call. The thread waits for that, since condition variables count milliseconds, and
    /// overflows come sooner.
    sound: AtomicU32,
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
        self.call(|calls| calls.rung += 1);
    }

    /// Rings, and waits until what is pending now is delivered; false if that takes too long.
    pub fn settle(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mine = self.call(|calls| {
            calls.rung += 1;
            calls.rung
        });
        let mut calls = lock(&self.calls);
        while calls.answered < mine {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            calls = self.answered.wait_timeout(calls, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub fn stop(&self) {
        self.call(|calls| calls.stop = true);
    }

    fn call<T>(&self, change: impl FnOnce(&mut Calls) -> T) -> T {
        let result = change(&mut lock(&self.calls));
        self.sound.fetch_add(1, Ordering::SeqCst);
        nt::wake(&self.sound);
        result
    }

    /// Waits for a call, at most so long; None when the thread is to end.
    fn wait(&self, most: Duration) -> Option<u64> {
        let sound = self.sound.load(Ordering::SeqCst);
        let Calls { rung, answered, stop } = *lock(&self.calls);
        if rung == answered && !stop {
            nt::wait_for_change(&self.sound, sound, most);
        }
        let Calls { rung, stop, .. } = *lock(&self.calls);
        (!stop).then_some(rung)
    }

    fn answer(&self, call: u64) {
        lock(&self.calls).answered = call;
        self.answered.notify_all();
    }
}

/// Starts the thread of a processor.
pub fn start(core: &'static Core) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        affinity::restrict(1 << core.number);
        while let Some(call) = core.bell.wait(core.until_interrupt()) {
            caught("an interrupt", (), || deliver(core));
            core.bell.answer(call);
        }
    })
}

pub fn stop() {
    for core in processor::possible() {
        core.bell.stop();
    }
}

/// Delivers the pending interrupt, if there is one and it is not masked, when the processor's interrupts are not.
fn deliver(core: &Core) {
    if !core.with(|state| state.processor.interrupt_due()) {
        return;
    }
    let thread = nt::current_thread();
    core.high_level.acquire(thread);
    let taken = core.with(|state| {
        let taken = state.processor.take_interrupt();
        state.interrupted = taken;
        taken.then(|| state.processor.lvt() & LVT_TARGET)
    });
    if let Some(target) = taken {
        if target == hal::LVT {
            hal::handle(core, |routine| call(core, routine));
        } else {
            violation::other(format!("an interrupt comes by the LVT entry {target:#x}, where nobody expects it"));
        }
        core.with(|state| state.interrupted = false);
    }
    core.high_level.release(thread);
}

/// Calls the handler, at the next place of the scene.
fn call(core: &Core, routine: hal::Routine) {
    let (place, skid) = core.with(|state| {
        state.delivered += 1;
        (state.sites.interrupt(), state.skid())
    });
    let Some(place) = place else { return };
    let mut frame = TrapFrame::interrupted(Place { ip: place.ip.wrapping_add(skid), ..place });
    let frame = if hal::hides_frames() { ptr::null_mut() } else { &raw mut frame };
    // SAFETY: the driver registered this function for this frame or null, and stays loaded while it runs.
    current_ids::with_interrupted(place, || irql::run_at(HIGH_LEVEL, || unsafe { routine(frame) }));
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
    /// With the selectors that Windows has on x64, and with interrupts enabled. Above the selectors, which are words, the
    /// processor or the kernel leave what they like.
    fn interrupted(place: Place) -> Self {
        const KERNEL_STACK: u64 = 0xFFFF_F800_0010_0000;
        const USER_STACK: u64 = 0x0000_0010_0000_0000;
        const UNDEFINED: u64 = 0xA5A5_A5A5_A5A5_0000;
        let (cs, ss, rsp) = if place.user { (0x33, 0x2B, USER_STACK) } else { (0x10, 0x18, KERNEL_STACK) };
        Self { registers: [0; 45], rip: place.ip, cs: UNDEFINED | cs, flags: 0x202, rsp, ss: UNDEFINED | ss }
    }
}
