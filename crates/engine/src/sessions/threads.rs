//! Windows' thread profiling with the counters of a session: configured after they run, ended before they stop.

use pmu::ProcessorIndex;
use protocol::{ErrorCode, NtStatus};

use super::Sessions;
use super::addressed::Addressed;
use crate::event::EventFilter;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::set_of_all;
use crate::reply::{Refusal, Reply};
use crate::session::{Session, ThreadProfiling};

/// A session that Windows keeps from being stopped: a thread still profiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// Number of the session.
    pub number: u64,
    /// Windows' refusal to end its thread profiling.
    pub status: NtStatus,
}

impl Sessions {
    /// Configures thread profiling with the counters of a session that wants it, which run. Stops the session if
    /// Windows refuses.
    pub(super) fn configure_threads<M: Platform>(
        &mut self,
        number: u64,
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        let wants =
            |session: &&mut Session| session.number == number && session.thread_profiling == ThreadProfiling::Wanted;
        let Some(session) = self.all.iter_mut().find(wants) else { return Ok(()) };
        match context.platform.configure_thread_profiling(session.thread_counters()) {
            Ok(()) => {
                session.thread_profiling = ThreadProfiling::Configured;
                Ok(())
            }
            Err(status) => {
                self.stop_quietly(number, context);
                Err(thread_profiling_taken(status))
            }
        }
    }

    /// Ends thread profiling with the counters of the addressed session that has it configured, before a counter of it
    /// stops. Returns the session if Windows refuses: then its counters must go on.
    pub(super) fn release_threads<M: Platform>(
        &mut self,
        meant: impl Fn(&Session) -> bool,
        platform: &M,
    ) -> Option<Kept> {
        let is_configured =
            |session: &&mut Session| meant(session) && session.thread_profiling == ThreadProfiling::Configured;
        let session = self.all.iter_mut().find(is_configured)?;
        match platform.release_thread_profiling() {
            Ok(()) => {
                session.thread_profiling = ThreadProfiling::No;
                None
            }
            Err(status) => Some(Kept { number: session.number, status }),
        }
    }

    /// Takes a session that Windows keeps from its handle. It is stopped as soon as Windows allows it: before the next
    /// session starts, when the counts are updated, or by a stop of all detached sessions.
    pub(super) fn disown(&mut self, number: u64) {
        for session in self.all.iter_mut().filter(|session| session.number == number) {
            session.owner = None;
        }
    }

    /// Stops the session that should have ended, if Windows now ends its thread profiling.
    pub(super) fn end_kept<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        if let Some(session) = self.all.iter().find(|session| session.is_kept_by_windows()) {
            self.stop_quietly(session.number, context);
        }
    }

    /// Ends the session for threads if a processor that was added cannot count its events: threads that run there would
    /// be counted wrongly. If Windows refuses to end its thread profiling, the session loses its handle, and programs
    /// can no longer read its counters on their processor.
    pub(super) fn end_incomplete<M: Platform>(&mut self, processor: ProcessorIndex, context: EngineContext<'_, M>) {
        let is_incomplete = |session: &&Session| {
            session.thread_profiling == ThreadProfiling::Configured
                && session.processors.binary_search(&processor).is_err()
        };
        let Some(session) = self.all.iter().find(is_incomplete) else { return };
        let (number, sampler) = (session.number, context.sampler);
        context.platform.on_processors(&set_of_all(&session.processors), &|current| {
            sampler.end_group(current, number);
        });
        self.stop_quietly(number, context);
        self.disown(number);
    }

    /// Stops a session without a reply.
    fn stop_quietly<M: Platform>(&mut self, number: u64, context: EngineContext<'_, M>) {
        let reply = &mut Reply::over(&mut []);
        self.stop_those(Addressed::Numbered(number), EventFilter::ALL, context, reply);
    }
}

/// Returns the refusal for thread profiling that Windows does not configure, or does not end.
pub(super) fn thread_profiling_taken(status: NtStatus) -> Refusal {
    Refusal::new(status, ErrorCode::ThreadProfilingTaken).detail(status.into(), 0)
}
