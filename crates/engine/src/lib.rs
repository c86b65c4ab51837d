//! Clients, sessions and policy: requests in, [`pmu`] out.
//!
//! | module | what it holds |
//! |---|---|
//! | `platform` | what the engine needs of the system it runs on |
//! | [`sampler`](Sampler) | what runs in the interrupt: from an overflow to a sample in a ring |
//! | `rings` | the other ends of the rings: from there to the client |
//! | `session` | events on processors, from their start to their final counts |
//! | `plan` | what can be refused about a session, before a register is touched |
//! | `sessions` | starting, reading and stopping, on every processor at once |
//! | `resources` | what of the machine sessions need together |
//! | `areas` | the control areas of processors: who has one, and whose it is |
//! | `trace` | what of a session processors record themselves |
//! | `sleep` | how long the machine slept |
//! | `clients` | who has the device open |
//! | `requests` | one function for each request of [`protocol`] |
//! | `reply` | answers: header and records |
//! | `room`, `boxed` | memory that can be refused |
//!
//! An [`Engine`] belongs to one lock: its functions take it exclusively, at an IRQL at which memory can be had
//! (DISPATCH_LEVEL at most) and all processors can be called (below IPI_LEVEL). What runs elsewhere is what it hands to
//! [`Platform::on_each_processor`], and its [`Sampler`], which [`Platform::begin_sampling`] lends to the interrupt. Nothing
//! panics, and memory that can not be had is refused.

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

/// The counters of the processor that has most: they are not the same where there are two kinds of processors.
fn most_counters(platform: &impl Platform) -> u8 {
    let kind = platform.on_boot_processor(|cpu| Selection::of_boot_processor(cpu).interface);
    let most = AtomicU8::new(0);
    platform.on_each_processor(&|current| {
        most.fetch_max(Interface::new(kind, current.cpu()).counters(), Ordering::Relaxed);
    });
    most.into_inner()
}

/// Everything that stands between a request and the processors.
#[derive(Debug)]
pub struct Engine<M: Platform> {
    /// First, so that it is dropped first: it may still have lent the sampler.
    platform: M,
    version: Version,
    /// In memory of its own, so that it stays where it is when the engine moves.
    sampler: Boxed<Sampler>,
    identity: Identity,
    clients: Clients,
    sessions: Sessions,
}

impl<M: Platform> Engine<M> {
    /// Chooses the profile interface of the boot processor and makes its state. PASSIVE_LEVEL.
    ///
    /// # Errors
    /// [`HalError::NoMemory`].
    pub fn new(platform: M, version: Version) -> Result<Self, HalError> {
        let processors = platform.maximum_processors();
        let most = most_counters(&platform);
        let (hal, identity) = platform.on_boot_processor(|cpu| {
            let hal = Hal::with_states(cpu, processors, most, pmu::state::allocate)?;
            Ok((hal, Identity::of(cpu)))
        })?;
        platform.on_each_processor(&|current| hal.probe(current));
        let sampler = Sampler::new(hal, processors, platform.clock_frequency()).and_then(Boxed::new);
        let sampler = sampler.ok_or(HalError::NoMemory)?;
        Ok(Self { platform, version, sampler, identity, clients: Clients::default(), sessions: Sessions::default() })
    }

    /// What serves the interrupts, for who delivers them.
    #[must_use]
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// A client opened the device. Answers an NTSTATUS.
    pub fn open(&mut self, client: ClientId, process: u32) -> u32 {
        self.clients.open(client, process).map_or_else(|refusal| refusal.status, |()| STATUS_SUCCESS)
    }

    /// A client's handle is gone: its sessions stop, its counters are free. Again changes nothing.
    pub fn close(&mut self, client: ClientId) {
        self.sessions.stop_all_of(client, EngineContext::new(&self.platform, &self.sampler));
        self.clients.close(client);
    }

    /// A processor was added, and is active: sessions that are on every processor go there as well. Where something of
    /// a session can not be had on it, the session stays where it is.
    pub fn add_processor(&mut self, processor: ProcessorIndex) {
        let (sampler, now) = (&self.sampler, self.platform.clock());
        self.platform.on_each_processor(&|current| {
            if current.index() == processor {
                sampler.hal().probe(current);
                // It was not there when the others fell asleep.
                if sampler.sleeps().is_sleeping() {
                    sampler.fall_asleep(current, now);
                }
            }
        });
        self.sessions.add_processor(processor, EngineContext::new(&self.platform, &self.sampler));
    }

    /// Brings all counts up to date, so that no counter wraps unseen. Has to be called more often than a counter can
    /// wrap.
    pub fn accumulate_counts(&mut self) {
        self.sessions.accumulate_counts(EngineContext::new(&self.platform, &self.sampler));
    }

    /// Stops every session, detached ones as well, before the driver goes.
    pub fn shut_down(&mut self) {
        self.sessions.stop_every(EngineContext::new(&self.platform, &self.sampler));
    }
}
