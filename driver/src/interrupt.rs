//! The performance monitor interrupt, and the ticks that go with it: from the kernel to the [`Sampler`].

#![expect(unsafe_code, reason = "the HAL and the kernel's timers call with nothing but an address")]

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicPtr, Ordering};

use engine::{Interrupted, Sampler, TICKS_PER_SECOND};
use protocol::modes;
use wdk_sys::{NTSTATUS, STATUS_INSUFFICIENT_RESOURCES};

use crate::cpu::Processor;
use crate::nt::dpc::{self, Dpc};
use crate::nt::system_process::Worker;
use crate::nt::timers::Timers;
use crate::nt::trap_frame::TrapFrame;
use crate::nt::{clock, device_object, hal, irp, processors};

/// Units of 100 ns between two ticks.
const TICK: u32 = 10_000_000 / TICKS_PER_SECOND;

/// The engine's, while something is sampled.
static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(core::ptr::null_mut());

/// Wakes who fetches samples.
static WAKE: Dpc = Dpc::new(crate::wake);

/// Called once, by DriverEntry.
pub fn initialize() {
    WAKE.initialize();
}

/// The interrupt is ours while this lives.
pub struct Sampling {
    worker: Worker,
    timers: Option<Timers>,
}

impl Sampling {
    /// Registers the handler and starts the ticks; answers the handler's address as well. APC_LEVEL at most. The sampler
    /// has to stay where it is until [`end`](Self::end) has come back.
    ///
    /// # Errors
    /// The NTSTATUS of what refused; nothing is left behind.
    pub fn begin(sampler: &Sampler) -> Result<(Self, NonZeroU64), NTSTATUS> {
        let timers = Timers::new(processors::active(), tick).ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        SAMPLER.store(core::ptr::from_ref(sampler).cast_mut(), Ordering::Release);
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
        SAMPLER.store(core::ptr::null_mut(), Ordering::Release);
        if given_back.is_err() {
            // The HAL would go on calling what is no more.
            device_object::forbid_unload();
        }
    }
}

/// What the HAL calls on a performance monitor interrupt, on the processor concerned at PROFILE_LEVEL; it writes the end
/// of interrupt itself. Its name is for the test that follows it through the image.
#[unsafe(export_name = "PerformanceInterrupt")]
unsafe extern "C" fn performance_interrupt(frame: *mut TrapFrame) {
    // SAFETY: the engine's sampler stays until `end` has seen that no processor is here
    let Some(sampler) = (unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }) else { return };
    // SAFETY: the HAL lends its trap frame for the time of the call
    let frame = unsafe { &*frame };
    let interrupted = Interrupted {
        ip: frame.instruction_pointer(),
        process: irp::current_process(),
        thread: irp::current_thread(),
        modes: if frame.is_user() { modes::USER } else { modes::KERNEL },
    };
    if sampler.interrupt(&Processor::current(), processors::current(), clock::ticks, &interrupted) {
        WAKE.queue();
    }
}

/// A tick of the current processor, at DISPATCH_LEVEL.
fn tick() {
    // SAFETY: the engine's sampler stays until `end` has waited for the ticks
    let Some(sampler) = (unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }) else { return };
    processors::at_high_level(|| {
        if sampler.tick(&Processor::current(), processors::current(), clock::ticks()) {
            WAKE.queue();
        }
    });
}
