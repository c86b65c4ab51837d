//! The conditions of the events of a session.

use pmu::ProcessorIndex;

use super::{Place, Session};
use crate::event::{Condition, EventFilter, PlannedEvent};
use crate::sampler::{Hal, SampleProducer};

impl Session {
    /// Sets the conditions of the events that are sampled by counters of a processor, except those on which the
    /// counters themselves decide.
    #[inline(never)] // for the stack of its caller
    pub(super) fn set_conditions(&self, processor: ProcessorIndex, producer: &SampleProducer, hal: &Hal) {
        for (event, place, _) in self.on(processor) {
            if let (Some(condition), Place::Counter(counter)) = (event.condition, place)
                && let Some(ratio) = self.ratio_counters(processor, condition)
                && !hal.cpu_counters(processor).get(counter).reloaded()
            {
                producer.side().set_condition(counter, condition, ratio);
            }
        }
    }

    /// Returns the counters of a processor that count the events of a condition. `None` unless both have one all the
    /// time.
    pub fn ratio_counters(&self, processor: ProcessorIndex, condition: Condition) -> Option<[u8; 2]> {
        let counter = |index: u16| match self.on(processor).nth(index.into())? {
            (event, Place::Counter(counter), _) if event.runs() => Some(counter),
            _ => None,
        };
        let [first, second] = condition.ratio.map(counter);
        Some([first?, second?])
    }

    /// Returns a running event whose condition needs one of the addressed events, if it is not addressed itself.
    pub fn needs(&self, events: EventFilter) -> Option<&PlannedEvent> {
        let is_left = |event: &&PlannedEvent| event.runs() && !event.is_running(events);
        self.events.iter().filter(is_left).find(|event| {
            let ratio = event.condition.map(|condition| condition.ratio).into_iter().flatten();
            ratio.filter_map(|index| self.events.get(usize::from(index))).any(|other| other.is_running(events))
        })
    }
}
