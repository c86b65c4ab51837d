//! Resources of slots and of the metrics of the top-down method: fixed counter 3 and MSR_PERF_METRICS, which no session
//! without such an event touches.

use pmu::ProcessorIndex;
use pmu::first_access::{Phase, RegisterGroup};
use protocol::status::STATUS_DEVICE_BUSY;
use protocol::{ErrorCode, RegisterInUse};

use crate::event::Service;
use crate::first_failure::FirstFailure;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::set_of_all;
use crate::reply::Refusal;
use crate::session::Session;
use crate::try_vec::try_collect;

/// Acquires the registers on those of `processors` that count such an event of the session. They are read, found unused
/// by other programs unless `force` is set, and written. A processor can turn out to have no metrics only then.
pub fn take_metrics<M: Platform>(
    session: &Session,
    processors: &[ProcessorIndex],
    force: bool,
    context: EngineContext<'_, M>,
) -> Result<(), Refusal> {
    let EngineContext { platform, hal, .. } = context;
    let states = |processor: ProcessorIndex| {
        let here = session.events.iter().filter(move |event| event.runs() && event.is_on(hal.core_type(processor)));
        here.filter_map(move |event| match event.service {
            Service::Counter { state, .. } => Some(state).filter(|state| hal.is_metric(processor, *state)),
            Service::Time { .. } | Service::Branches { .. } => None,
        })
    };
    let counts = |processor: &&ProcessorIndex| {
        let unit = hal.interface_of(**processor).unit();
        !unit.is_empty() && states(**processor).next().is_some()
    };
    if !processors.iter().any(|processor| counts(&processor)) {
        return Ok(()); // most sessions, without memory
    }
    let found = processors.iter().filter(counts).map(|processor| (*processor, states(*processor).next()));
    let found = try_collect(found, processors.len())?;
    let processors = try_collect(found.iter().map(|(processor, _)| *processor), found.len())?;
    context.access_first(&processors, RegisterGroup::Metrics, Phase::Read)?;
    for (processor, state) in found {
        if let Some(state) = state {
            hal.check_on(processor, state).map_err(|error| Refusal::from(error).on_processor_alone(processor))?;
        }
    }
    if !force {
        let in_use = FirstFailure::none();
        platform.on_processors(&set_of_all(&processors), &|current| {
            if let Some(enabled) = hal.metrics_in_use_elsewhere(current) {
                let (number, interface) = (enabled.register.address(), hal.interface().kind() as u8);
                let detail = RegisterInUse { number, counter: enabled.counter, interface }.to_detail();
                in_use.set(current.index(), detail, enabled.value);
            }
        });
        in_use.refuse(STATUS_DEVICE_BUSY, ErrorCode::ForeignUse)?;
    }
    context.access_first(&processors, RegisterGroup::Metrics, Phase::Write)
}
