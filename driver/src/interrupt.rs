//! Forwards performance monitor interrupts, ticks, power changes and reads of one processor from the kernel to the
//! [`Sampler`].

#![expect(unsafe_code, reason = "the HAL and the kernel's timers call with nothing but an address")]

use core::num::NonZeroU64;

use driver_core::SamplingParts;
use engine::{ClientId, Interrupted, Sampler, Subscribers, TICKS_PER_SECOND, Ticks};
use interrupt_path::clock::ticks;
use interrupt_path::waker::wake_reader;
use interrupt_path::{cpu_dpcs, current_process, current_thread, dpc, performance_interrupt, sampler};
use pmu::ProcessorIndex;
use protocol::{GroupReply, GroupRequest, Mode, ProcessorSet};
use wdk_sys::{NTSTATUS, STATUS_INSUFFICIENT_RESOURCES};

use crate::cpu;
use crate::nt::device_object::{self, Keep};
use crate::nt::power::Change;
use crate::nt::system_process::Worker;
use crate::nt::timers::{FineClock, Timers};
use crate::nt::unwind::Scratch;
use crate::nt::{clock, hal, processors};
use crate::tracing;

/// Units of 100 ns between two ticks.
const TICK: u32 = 10_000_000 / TICKS_PER_SECOND;

/// The lowest address of the kernel: the canonical addresses with bit 63.
const KERNEL_SPACE: u64 = 1 << 63;

/// Longest wait for a thread that accesses registers below PROFILE_LEVEL, as a part of a second. It takes microseconds,
/// unless the callback interrupted it on this processor: then it cannot go on before the callback returns.
const ACCESS_LIMIT: u64 = 2;

/// Handles a transition to sleep or back. Before the machine sleeps, waits until no thread accesses registers.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn power_changed(change: Change) {
    let Some(sampler) = sampler::get() else { return };
    let now = ticks();
    match change {
        Change::Sleep => {
            sampler.sleeps().begin(now);
            let limit = Ticks(clock::frequency() / ACCESS_LIMIT);
            while sampler.sleeps().is_accessed() && ticks().since(now) < limit {
                core::hint::spin_loop();
            }
            cpu::on_each_processor(&|current| sampler.fall_asleep(current, now));
        }
        Change::Wake => {
            let slept = sampler.sleeps().end(now);
            cpu::on_each_processor(&|current| {
                if sampler.wake(current, now, slept) {
                    wake_reader();
                }
            });
        }
    }
}

/// Reads the counters of a session on the current processor into `reply`, without the engine and its lock. Returns
/// `None` if the engine has to serve the request.
///
/// # IRQL
/// PASSIVE_LEVEL, for a request.
pub fn read_group(wanted: GroupRequest, client: ClientId, reply: &mut GroupReply) -> Option<()> {
    let sampler = sampler::get()?;
    let mut read = None;
    cpu::at_high_level(|current| read = sampler.read_group(current, &ticks, client, wanted, reply));
    read
}

/// Guard: the performance monitor interrupt belongs to the driver while the value lives.
pub struct Sampling {
    worker: Worker,
    timers: Option<Timers<()>>,
}

impl Sampling {
    /// Registers the handler. Returns the guard and the address of the handler.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; everything is undone.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
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
        let address = performance_interrupt as *const ();
        let address = NonZeroU64::new(address.expose_provenance() as u64).unwrap_or(NonZeroU64::MIN);
        Ok((sampling, address))
    }

    /// Lets exactly these processors tick. Returns false if that is impossible, and nothing has changed.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn run_ticks(&self, processors: &ProcessorSet) -> bool {
        self.timers.as_ref().is_some_and(|timers| timers.run(processors, TICK))
    }

    /// Prepares the ticks of a processor that was added. Returns false if that is impossible.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn adopt(&self, processor: ProcessorIndex) -> bool {
        self.timers.as_ref().is_none_or(|timers| timers.adopt(processor))
    }

    /// Unregisters the handler if it was `registered`, and stops the ticks. When it returns, no processor runs in the
    /// sampler or will enter it.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn end(self, registered: bool) {
        let Self { worker, timers } = self;
        let mut ending = Ending { timers, given_back: Ok(()) };
        worker.run(&mut || driver_core::end_sampling(&mut ending, registered));
        if registered {
            // If unregistering failed, the HAL still calls the handler. The next session retries.
            device_object::keep_loaded(Keep::InterruptHandler, ending.given_back.is_err());
        }
    }
}

/// What is left of [`Sampling`] while it ends.
struct Ending {
    timers: Option<Timers<()>>,
    given_back: Result<(), NTSTATUS>,
}

impl SamplingParts for Ending {
    fn unregister_handler(&mut self) {
        self.given_back = hal::set_interrupt_handler(None);
    }

    fn wait_for_interrupts(&mut self) {
        processors::wait_for_interrupts();
    }

    fn stop_timers(&mut self) {
        self.timers = None; // waits for ticks in progress
    }

    fn flush_dpcs(&mut self) {
        dpc::flush();
    }
}

/// Writes the events of the current processor, and charges the time to its budget.
///
/// # IRQL
/// DISPATCH_LEVEL.
pub fn write_events() {
    let Some(sampler) = sampler::get() else { return };
    let begin = ticks();
    loop {
        let mut event = None;
        cpu::at_high_level(|current| event = sampler.take_event(current));
        match event {
            Some(event) => tracing::write(&event),
            None => break,
        }
    }
    cpu::at_high_level(|current| {
        if sampler.charge(current, begin, ticks()) {
            wake_reader();
        }
    });
}

/// Handles a tick of the current processor.
///
/// # IRQL
/// DISPATCH_LEVEL.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the timers pass the memory of each, which is empty here")]
fn tick(_memory: &()) {
    let Some(sampler) = sampler::get() else { return };
    cpu::at_high_level(|current| {
        let deferred = sampler.tick(current, ticks());
        if deferred.reader {
            wake_reader();
        }
        if deferred.events {
            cpu_dpcs::queue(current.index());
        }
    });
}

/// Guard: the timers by which sessions sample run while the value lives.
pub struct SamplingByTime {
    worker: Worker,
    timers: Option<Timers<Scratch>>,
    /// A clock that is fine enough for the timers.
    _clock: FineClock,
}

impl SamplingByTime {
    /// Starts the timers of these processors with an interval that comes from
    /// [`timers::interval`](crate::nt::timers::interval). Returns `None` if memory is low or a timer is unavailable.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn begin(processors: &ProcessorSet, interval: u32) -> Option<Self> {
        let worker = Worker::new()?;
        let sampling = Self { worker, timers: None, _clock: FineClock::ask() };
        let sampling = Self { timers: Some(Timers::new(time_expired)?), ..sampling };
        if sampling.run(processors, interval) {
            return Some(sampling);
        }
        sampling.end();
        None
    }

    /// Lets exactly these timers run, with this interval. Returns false if that is impossible, and nothing has changed.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn run(&self, processors: &ProcessorSet, interval: u32) -> bool {
        self.timers.as_ref().is_some_and(|timers| timers.run(processors, interval))
    }

    /// Prepares the timer of a processor that was added. Returns false if that is impossible.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn adopt(&self, processor: ProcessorIndex) -> bool {
        self.timers.as_ref().is_none_or(|timers| timers.adopt(processor))
    }

    /// Stops the timers. When it returns, no processor runs in [`time_expired`] or will enter it.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn end(self) {
        let Self { worker, mut timers, _clock } = self;
        worker.run(&mut || timers = None);
    }
}

/// Samples what the clock interrupt found on the current processor. The search for it needs DISPATCH_LEVEL, and the
/// sampler PROFILE_LEVEL.
///
/// # IRQL
/// DISPATCH_LEVEL.
fn time_expired(scratch: &Scratch) {
    let Some(sampler) = sampler::get() else { return };
    let begin = ticks();
    cpu::at_high_level(|current| sampler.rotate(current, ticks));
    sample_by_time(sampler, scratch, begin);
}

/// Takes the samples that are due at this expiry, which began at `begin`.
///
/// # IRQL
/// DISPATCH_LEVEL.
// Never inlined: its stack must not be in use while events take turns.
#[inline(never)]
fn sample_by_time(sampler: &Sampler, scratch: &Scratch, begin: Ticks) {
    let (mut due, mut watermark_hit) = (Subscribers::default(), false);
    cpu::at_high_level(|current| (due, watermark_hit) = sampler.expire(current, begin));
    if !due.is_empty() {
        // SAFETY: this is the DPC of the timer that has the memory
        let ip = unsafe { scratch.interrupted_address() }.unwrap_or_default();
        let interrupted = Interrupted {
            ip,
            process: current_process(),
            thread: current_thread(),
            mode: if ip == 0 || ip >= KERNEL_SPACE { Mode::Kernel } else { Mode::User },
        };
        cpu::at_high_level(|current| {
            let deferred = sampler.sample_time(current, due, begin, ticks, &interrupted);
            watermark_hit |= deferred.reader;
            if deferred.events {
                cpu_dpcs::queue(current.index());
            }
        });
    }
    if watermark_hit {
        wake_reader();
    }
}
