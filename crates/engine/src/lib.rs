//! Clients, sessions and policy between the requests of clients and [`pmu`].
//!
//! | module | contents |
//! |---|---|
//! | `platform` | what the engine needs of the system it runs on |
//! | [`sampler`](Sampler) | the interrupt: from an overflow to a sample in a ring |
//! | `rings` | the reading ends of the rings: from there to the client |
//! | `session` | events on processors, from their start to their final counts |
//! | `plan` | the checks of a session before a register is touched |
//! | `sessions` | start, read and stop, on every processor at once |
//! | `resources` | counters, timers and the interrupt, which sessions share |
//! | `areas` | the control areas of processors |
//! | `hardware_recording` | events that processors record themselves |
//! | `suspend_time` | how long the machine slept |
//! | `clients` | open handles of the device |
//! | `requests` | one function for each request of [`protocol`] |
//! | `reply` | replies: header and records |
//! | `try_vec`, `boxed` | allocations that can fail |
//!
//! An [`Engine`] is protected by one lock: its functions take it exclusively, at an IRQL at which memory can be allocated
//! (DISPATCH_LEVEL at most) and all processors can be called (below IPI_LEVEL). Two parts run elsewhere: the closures
//! for [`Platform::on_each_processor`], and the [`Sampler`], which [`Platform::begin_sampling`] lends to the interrupt.
//! Nothing panics, and a request is refused if memory is short.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod areas;
mod boxed;
mod clients;
mod hardware_recording;
mod identity;
mod plan;
mod platform;
mod reply;
mod requests;
mod resources;
mod rings;
mod sampler;
mod session;
mod sessions;
mod suspend_time;
mod try_vec;

use core::sync::atomic::{AtomicU8, Ordering};

use pmu::{Hal, HalError, Interface, ProcessorIndex, ProfileInterface, Selection};
use protocol::status::STATUS_SUCCESS;

pub use clients::ClientId;
pub use platform::{AreaAllocator, AreaRefused, ControlArea, Platform};
pub use requests::{Completion, Request, Samples};
pub use sampler::{CpuSampleStats, Interrupted, MAX_SAMPLERS, SampleProducer, Sampler, Subscriber, TICKS_PER_SECOND};
pub use suspend_time::SuspendTime;

use boxed::Boxed;
use clients::Clients;
use identity::Identity;
use platform::EngineContext;
use sessions::Sessions;

/// Version of the driver: major, minor, patch, zero.
pub type Version = [u16; 4];

/// Returns the number of counters of the processor that has most. Processors of a hybrid machine differ.
fn most_counters(platform: &impl Platform) -> u8 {
    let kind = platform.on_boot_processor(|cpu| Selection::of_boot_processor(cpu).interface);
    let most = AtomicU8::new(0);
    platform.on_each_processor(&|current| {
        most.fetch_max(Interface::new(kind, current.cpu()).counters(), Ordering::Relaxed);
    });
    most.into_inner()
}

/// All state between a request and the processors.
#[derive(Debug)]
pub struct Engine<M: Platform> {
    /// First, so that it is dropped first: it may still lend the sampler.
    platform: M,
    version: Version,
    /// In its own allocation, so that it stays in place when the engine moves.
    sampler: Boxed<Sampler>,
    identity: Identity,
    clients: Clients,
    sessions: Sessions,
}

impl<M: Platform> Engine<M> {
    /// Chooses the profile interface of the boot processor and allocates its state.
    ///
    /// # Errors
    /// [`HalError::NoMemory`].
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn new(platform: M, version: Version) -> Result<Self, HalError> {
        let processors = platform.maximum_processors();
        let most = most_counters(&platform);
        let (hal, identity) = platform.on_boot_processor(|cpu| {
            let hal = Hal::with_states(cpu, platform.options(), processors, most, pmu::state::allocate)?;
            Ok((hal, Identity::of(cpu)))
        })?;
        platform.on_each_processor(&|current| hal.probe(current));
        let sampler = Sampler::new(hal, processors, platform.clock_frequency()).and_then(Boxed::new);
        let sampler = sampler.ok_or(HalError::NoMemory)?;
        Ok(Self { platform, version, sampler, identity, clients: Clients::default(), sessions: Sessions::default() })
    }

    /// Returns the sampler, which serves the interrupts.
    #[must_use]
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Notes that a client opened the device. Returns an NTSTATUS.
    pub fn open(&mut self, client: ClientId, process: u32) -> u32 {
        self.clients.open(client, process).map_or_else(|refusal| refusal.status, |()| STATUS_SUCCESS)
    }

    /// Stops the sessions of a handle that was closed, and frees their counters. Repeated calls change nothing.
    pub fn close(&mut self, client: ClientId) {
        self.sessions.stop_all_of(client, EngineContext::new(&self.platform, &self.sampler));
        self.clients.close(client);
    }

    /// Extends the sessions on all processors to a processor that was added and is active. A session stays where it is
    /// if a resource is unavailable on the new processor.
    pub fn add_processor(&mut self, processor: ProcessorIndex) {
        let (sampler, now) = (&self.sampler, self.platform.clock());
        self.platform.on_each_processor(&|current| {
            if current.index() == processor {
                sampler.hal().probe(current);
                // It was not active when the others fell asleep.
                if sampler.sleeps().is_sleeping() {
                    sampler.fall_asleep(current, now);
                }
            }
        });
        self.sessions.add_processor(processor, EngineContext::new(&self.platform, &self.sampler));
    }

    /// Updates all counts, so that no counter wraps unnoticed. The caller repeats it more often than a counter can
    /// wrap.
    pub fn accumulate_counts(&mut self) {
        self.sessions.accumulate_counts(EngineContext::new(&self.platform, &self.sampler));
    }

    /// Stops every session, including detached ones, before the driver is unloaded.
    pub fn shut_down(&mut self) {
        self.sessions.stop_every(EngineContext::new(&self.platform, &self.sampler));
    }
}
