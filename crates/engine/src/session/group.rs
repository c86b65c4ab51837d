//! The counters of a session that programs read by themselves.

use pmu::{Cpu, CurrentCpu};
use protocol::MAX_GROUP;

use super::{Count, Place, Session};
use crate::event::PlannedEvent;
use crate::sampler::{Group, Sampler};

impl Session {
    /// Lets programs read the counters on the current processor, if one RDPMC each is enough: every event has a counter
    /// of its own all the time, or is one of another core type, and none is sampled.
    pub(super) fn begin_group(&self, current: CurrentCpu<'_, impl Cpu>, sampler: &Sampler) {
        let unit = sampler.hal().interface_of(current.index()).unit();
        let mut members = 0_u8;
        let is_read = |(event, place, _): (&PlannedEvent, Place, &Count)| {
            event.runs()
                && match place {
                    Place::Counter(counter) => {
                        members = members.saturating_add(1);
                        !event.sampled && !unit.has(counter)
                    }
                    Place::Elsewhere => true,
                    Place::Turn(_) | Place::Time { .. } | Place::Branches => false,
                }
        };
        let Ok(events) = u8::try_from(self.events.len()) else { return };
        if usize::from(events) > MAX_GROUP || !self.on(current.index()).all(is_read) {
            return;
        }
        let counters = (0..).zip(self.on(current.index())).filter_map(|(index, (_, place, _))| match place {
            Place::Counter(counter) => Some((counter, index)),
            _ => None,
        });
        let group = Group { session: self.number, owner: self.owner, events, members };
        sampler.begin_group(current, group, counters);
    }
}
