//! A processor that was added while sessions run.

use pmu::{CoreType, ProcessorIndex};

use super::movement::try_on;
use crate::ibs::IbsRecording;
use crate::perf_metrics::take_metrics;
use crate::plan::Planner;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::set_of;
use crate::reply::Reply;
use crate::resources::{Resources, access_extra, try_events};
use crate::session::Session;

/// The processor, and what is available there.
#[derive(Debug)]
pub(super) struct AddedProcessor {
    pub processor: ProcessorIndex,
    pub core_type: Option<CoreType>,
    /// Its timers.
    pub timed: bool,
    /// Its counters.
    pub counts: bool,
    /// Its interrupt.
    pub samples: bool,
}

impl AddedProcessor {
    /// Extends a session on all processors to the processor. It stays where it is if something that it needs is
    /// unavailable there.
    pub fn extend<M: Platform>(&self, session: &mut Session, resources: &mut Resources, planner: &Planner<'_, M>) {
        let Self { processor, core_type, timed, counts, samples } = *self;
        let context = planner.context;
        let EngineContext { platform, sampler, .. } = context;
        let is_fit = (timed || session.timer_interval().is_none())
            && (counts || !session.uses_counters())
            && session.hardware_recording.is_none()
            && session.last_branches.is_none()
            && (samples || !session.uses_interrupt())
            && access_extra(session, &[processor], context).is_ok()
            && take_metrics(session, &[processor], false, context).is_ok();
        let is_new = session.processors.binary_search(&processor).is_err();
        let is_wanted = session.everywhere && session.is_on(core_type) && is_new && is_fit;
        let before = session.processors.len();
        if !is_wanted || planner.extend(session, processor, &mut Reply::over(&mut [])).is_err() {
            return;
        }
        let acquire_ibs = |recording: &IbsRecording| recording.acquire(&[processor], false, context);
        let is_taken = try_events(session, processor, context).is_ok()
            && session.ibs_recording.as_ref().is_none_or(|recording| acquire_ibs(recording).is_ok())
            && resources.take_timers(session, platform);
        if !is_taken {
            return planner.retract(session, processor, before);
        }
        let clock = platform.shared_clock();
        platform.on_processors(&set_of([processor]), &|current| {
            let now = clock();
            sampler.repair(current, now);
            session.save_extra(current, sampler.hal());
            try_on(session, current, sampler.hal());
            session.mark_movement_on(processor, sampler.hal());
            session.begin(current, sampler, now);
        });
    }
}
