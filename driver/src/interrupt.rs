//! The performance monitor interrupt, the ticks that go with it, and sleep: from the kernel to the [`Sampler`].

#![expect(unsafe_code, reason = "the HAL and the kernel's timers call with nothing but an address")]

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicPtr, Ordering};

use engine::{Interrupted, Sampler, TICKS_PER_SECOND};
use pmu::ProcessorIndex;
use protocol::modes;
use wdk_sys::{NTSTATUS, STATUS_INSUFFICIENT_RESOURCES};

use crate::cpu;
use crate::nt::dpc::{self, Dpc};
use crate::nt::power::Change;
use crate::nt::system_process::Worker;
use crate::nt::timers::Timers;
use crate::nt::trap_frame::TrapFrame;
use crate::nt::{clock, device_object, hal, irp, processors};

/// Units of 100 ns between two ticks.
const TICK: u32 = 10_000_000 / TICKS_PER_SECOND;

/// The engine's, while it lives.
static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(core::ptr::null_mut());

/// Wakes who fetches samples.
static WAKE: Dpc = Dpc::new(crate::wake);

/// Called once, by DriverEntry.
pub fn initialize() {
    WAKE.initialize();
}

/// What serves interrupts, ticks and sleeps from now on. It has to stay where it is until [`withdraw`].
pub fn publish(sampler: &Sampler) {
    SAMPLER.store(core::ptr::from_ref(sampler).cast_mut(), Ordering::Release);
}

/// Nobody comes any more.
pub fn withdraw() {
    SAMPLER.store(core::ptr::null_mut(), Ordering::Release);
}

fn sampler() -> Option<&'static Sampler> {
    // SAFETY: who published it withdraws it when nothing of the kernel calls this module any more, and drops it then
    unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
}

/// The machine sleeps, or is awake again. DISPATCH_LEVEL at most.
pub fn power_changed(change: Change) {
    let Some(sampler) = sampler() else { return };
    let now = clock::ticks();
    match change {
        Change::Sleep => {
            sampler.sleeps().begin(now);
            cpu::on_each_processor(&|current| sampler.fall_asleep(current, now));
        }
        Change::Wake => {
            let slept = sampler.sleeps().end(now);
            cpu::on_each_processor(&|current| {
                if sampler.wake(current, now, slept) {
                    WAKE.queue();
                }
            });
        }
    }
}

/// The interrupt is ours while this lives.
pub struct Sampling {
    worker: Worker,
    timers: Option<Timers>,
}

impl Sampling {
    /// Registers the handler and starts the ticks; answers the handler's address as well. APC_LEVEL at most.
    ///
    /// # Errors
    /// The NTSTATUS of what refused; nothing is left behind.
    pub fn begin() -> Result<(Self, NonZeroU64), NTSTATUS> {
        let timers = Timers::new(tick).ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        let mut registered = Err(STATUS_INSUFFICIENT_RESOURCES);
        worker.run(&mut || registered = hal::set_interrupt_handler(Some(performance_interrupt)));
        let sampling = Self { worker, timers: Some(timers) };
        if let Err(status) = registered {
            sampling.end(false);
            return Err(status);
        }
        if let Some(timers) = &sampling.timers {
            timers.start(TICK);
        }
        let address = performance_interrupt as *const ();
        let address = NonZeroU64::new(address.expose_provenance() as u64).unwrap_or(NonZeroU64::MIN);
        Ok((sampling, address))
    }

    /// Ticks on one processor more. DISPATCH_LEVEL at most.
    pub fn adopt(&self, processor: ProcessorIndex) -> bool {
        self.timers.as_ref().is_none_or(|timers| timers.adopt(processor))
    }

    /// Gives the interrupt back (if it was `registered`), and comes back when no processor is in the sampler or will
    /// come into it. APC_LEVEL at most.
    pub fn end(self, registered: bool) {
        let Self { worker, mut timers } = self;
        let mut given_back = Ok(());
        worker.run(&mut || {
            if registered {
                given_back = hal::set_interrupt_handler(None);
                processors::wait_for_interrupts();
            }
            timers = None; // which waits for the ticks
            dpc::flush();
        });
        if registered {
            // Not given back, the HAL goes on calling what must stay; until a later session has better luck.
            device_object::set_unload(if given_back.is_ok() { Some(crate::unload) } else { None });
        }
    }
}

/// What the HAL calls on a performance monitor interrupt, on the processor concerned at PROFILE_LEVEL; it writes the end
/// of interrupt itself. Its name is for the test that follows it through the image.
#[unsafe(export_name = "PerformanceInterrupt")]
unsafe extern "C" fn performance_interrupt(frame: *mut TrapFrame) {
    let Some(sampler) = sampler() else { return };
    // SAFETY: null, or the trap frame that the HAL lends for the duration of the call
    let frame = unsafe { frame.as_ref() };
    // Without a frame the counters are served all the same, or they would stop; the sample is at address 0 of the kernel.
    let (ip, is_user) = frame.map_or((0, false), |frame| (frame.instruction_pointer(), frame.is_user()));
    let interrupted = Interrupted {
        ip,
        process: irp::current_process(),
        thread: irp::current_thread(),
        modes: if is_user { modes::USER } else { modes::KERNEL },
    };
    // SAFETY: the HAL calls the handler at PROFILE_LEVEL
    if unsafe { cpu::with_current(|current| sampler.interrupt(current, clock::ticks, &interrupted)) } {
        WAKE.queue();
    }
}

/// A tick of the current processor, at DISPATCH_LEVEL.
fn tick() {
    let Some(sampler) = sampler() else { return };
    cpu::at_high_level(|current| {
        if sampler.tick(current, clock::ticks()) {
            WAKE.queue();
        }
    });
}
