//! The engine: all state between a request and the processors.

use core::sync::atomic::{AtomicU8, Ordering};

use pmu::{HalError, Interface, ProcessorIndex, Selection};
use protocol::status::STATUS_SUCCESS;
use protocol::{NtStatus, ProcessorSet};

use crate::boxed::Boxed;
use crate::clients::{ClientId, Clients};
use crate::identity::BootIdentity;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::set_of;
use crate::sampler::{Hal, Sampler};
use crate::sessions::Sessions;

/// Version of the driver: major, minor, patch, zero.
pub type Version = [u16; 4];

/// Returns the set of active processors.
fn active(platform: &impl Platform) -> ProcessorSet {
    set_of(ProcessorIndex::first(platform.processors()))
}

/// Returns the number of counters of the processor that has most. Processors of a hybrid machine differ.
fn most_counters(platform: &impl Platform) -> u8 {
    let kind = platform.on_boot_processor(|cpu| Selection::of_boot_processor(cpu).interface);
    let most = AtomicU8::new(0);
    platform.on_processors(&active(platform), &|current| {
        most.fetch_max(Interface::new(kind, current.cpu()).indexes(), Ordering::Relaxed);
    });
    most.into_inner()
}

/// All state between a request and the processors.
#[derive(Debug)]
pub struct Engine<M: Platform> {
    /// First, so that it is dropped first: it may still lend the sampler.
    pub(crate) platform: M,
    pub(crate) version: Version,
    /// In its own allocation, so that it stays in place when the engine moves.
    pub(crate) sampler: Boxed<Sampler>,
    pub(crate) identity: BootIdentity,
    pub(crate) clients: Clients,
    pub(crate) sessions: Sessions,
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
            Ok((hal, BootIdentity::of(cpu)))
        })?;
        platform.on_processors(&active(&platform), &|current| hal.probe(current));
        let sampler = Boxed::new(Sampler::new(hal, platform.clock_frequency()));
        let sampler = sampler.ok_or(HalError::NoMemory)?;
        Ok(Self { platform, version, sampler, identity, clients: Clients::default(), sessions: Sessions::default() })
    }

    /// Returns the sampler, which serves the interrupts.
    #[must_use]
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Notes that a client opened the device. Returns an NTSTATUS.
    pub fn open(&mut self, client: ClientId, process: u32) -> NtStatus {
        self.clients.open(client, process).map_or_else(|refusal| refusal.status, |()| STATUS_SUCCESS)
    }

    /// Stops the sessions of a handle that was closed, and frees their counters. Repeated calls change nothing.
    pub fn close(&mut self, client: ClientId) {
        self.sessions.stop_all_of(client, EngineContext::new(&self.platform, &self.sampler));
        self.clients.close(client);
    }

    /// Prepares for a processor that is about to become active. Afterwards the caller must call
    /// [`add_processor`](Self::add_processor) or, if it does not become active,
    /// [`add_no_processor`](Self::add_no_processor).
    pub fn before_processor(&mut self) {
        self.sessions.before_processor(&self.platform);
    }

    /// Undoes [`before_processor`](Self::before_processor).
    pub fn add_no_processor(&mut self) {
        self.sessions.after_processor(&self.platform);
    }

    /// Extends the sessions on all processors to a processor that was added and is active. A session stays where it is
    /// if a resource is unavailable on the new processor.
    pub fn add_processor(&mut self, processor: ProcessorIndex) {
        let (sampler, now) = (&self.sampler, self.platform.clock());
        self.platform.on_processors(&set_of([processor]), &|current| {
            sampler.hal().probe(current);
            // It was not active when the others fell asleep.
            if sampler.sleeps().is_sleeping() {
                sampler.fall_asleep(current, now);
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
