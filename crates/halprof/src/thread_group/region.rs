//! The readings at both ends of a part of a region, and what they prove.
//!
//! The order of the readings is what makes the proofs valid:
//!
//! | begin | end | |
//! |---|---|---|
//! | time asleep | time asleep | first and last: a sleep anywhere between is seen |
//! | account of Windows | account of Windows | no context switch between these: one CPU, and no other thread |
//! | group reading | group reading | the counters of that CPU, and whether they were interrupted |
//! | values of Windows | values of Windows | the measured part of a virtualized group; no other has this row |
//!
//! The end has the rows from the last to the first.

use std::time::Duration;

use protocol::{CountRecord, GroupReply};

use super::ThreadGroup;
use crate::counts::Counts;
use crate::error::Error;
use crate::group_error::{GroupError, in_one_line};
use crate::guards::Profiling;
use crate::quality::{Accounting, AllCpus, Disturbance, Ends, Grade, Observation, Quality};
use crate::system::ProfilingData;
use crate::truncation::{self, Limits, Unproven};

/// The readings at the begin of a part.
pub(super) struct Part {
    observation: Observation,
    group: GroupReply,
    /// Values of a virtualized group.
    values: Option<ProfilingData>,
    time: Duration,
}

/// What all CPUs had counted at some time before a part.
pub(super) struct Base {
    /// Sum over the CPUs, for each event of the request.
    sums: Vec<u64>,
    time: Duration,
}

/// The count of an event, or why it is not proven.
struct Proven {
    values: Vec<u64>,
    disturbance: Option<Disturbance>,
}

impl ThreadGroup {
    /// Begins a part: reads from the outside to the inside.
    pub(super) fn begin_part(&mut self) -> Result<Part, Error> {
        let is_virtualized = self.availability.grade() == Grade::Virtualized;
        let is_old = |base: &Base| self.system.now().saturating_sub(base.time) > self.base_age;
        if is_virtualized && self.base.as_ref().is_none_or(is_old) {
            self.base = Some(Base { sums: self.sums(&self.session.read()?), time: self.system.now() });
        }
        let asleep = self.system.time_asleep();
        let accounting = self.accounting()?;
        let time = self.system.now();
        let group = self.session.read_group()?;
        let observation = Observation { accounting, cpu: group.header.processor, generation: group.generation, asleep };
        let values = if is_virtualized { self.values()? } else { None };
        Ok(Part { observation, group, values, time })
    }

    /// Ends a part: reads from the inside to the outside.
    pub(super) fn end_part(&self, begin: &Part) -> Result<Counts, Error> {
        if let Some(values_at_begin) = &begin.values {
            let values = self.values()?.ok_or(GroupError::NotBegun)?;
            return Ok(self.end_virtualized(begin, values_at_begin, &values));
        }
        let group = match self.session.read_group() {
            Ok(group) => group,
            Err(error) => return self.end_elsewhere(begin, error),
        };
        let accounting = self.accounting()?;
        let ends = self.ends(begin, &group, accounting);
        let counts_kernel = self.events.iter().any(|event| event.counts_kernel);
        let quality = match ends.prove_undisturbed(counts_kernel) {
            Ok(()) => Quality::Undisturbed,
            Err(disturbance) => Quality::Disturbed(disturbance),
        };
        let values = self.of_requests(|index| difference(&begin.group, &group, index));
        Ok(self.counts(begin, Some(&ends), values, quality))
    }

    /// Ends a part whose end the driver cannot read on this CPU, because the thread was moved away from the CPU of
    /// the session: the counts of that CPU are read from here.
    fn end_elsewhere(&self, begin: &Part, error: Error) -> Result<Counts, Error> {
        let (from, to) = (begin.observation.cpu, self.system.current_cpu());
        if from == to {
            return Err(error);
        }
        let records = self.session.read()?;
        let counted = |index| {
            let is_it = |record: &&CountRecord| record.processor == from && record.index as usize == index;
            let now = records.iter().find(is_it).map_or(0, |record| record.count);
            now.saturating_sub(begin.group.counts.get(index).copied().unwrap_or_default())
        };
        let quality = Quality::Disturbed(Disturbance::Migrated { from, to });
        Ok(self.counts(begin, None, self.of_requests(counted), quality))
    }

    fn end_virtualized(&self, begin: &Part, at_begin: &ProfilingData, at_end: &ProfilingData) -> Counts {
        let checked = self.session.read_group().and_then(|group| Ok((group, self.accounting()?)));
        let (group, accounting) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                let quality = Quality::Disturbed(Disturbance::NotChecked { reason: in_one_line(&error) });
                let values = self.of_counters(|counter| difference_of_windows(at_begin, at_end, counter));
                return self.counts(begin, None, values, quality);
            }
        };
        let ends = self.ends(begin, &group, accounting);
        let mut counted = None;
        let proof = ends.prove_virtualized(|| match self.session.read() {
            Ok(records) => {
                counted = Some(self.sums(&records));
                let changed = records.iter().find(|record| record.disturbed_register != 0);
                changed.map_or(AllCpus::Unchanged, |record| AllCpus::Changed(record.processor))
            }
            Err(error) => AllCpus::Failed(in_one_line(&error)),
        });
        let cycles = at_end.cycle_time.saturating_sub(at_begin.cycle_time);
        let switches = at_end.context_switches.wrapping_sub(at_begin.context_switches);
        let limits = Limits { cycles: Some((cycles, switches)), counted: None, alone: None };
        let Proven { values, disturbance } = self.prove(at_begin, at_end, |requests, counts_kernel| {
            let of_group = || requests.iter().map(|index| difference(&begin.group, &group, *index)).sum();
            let since_base = |sums: &Vec<u64>| {
                let base = self.base.as_ref()?;
                let of = |index: &usize| Some(sums.get(*index)?.saturating_sub(*base.sums.get(*index)?));
                requests.iter().map(of).sum()
            };
            // Interrupts count in kernel mode, and Windows may leave them out.
            let alone = (ends.is_one_slice() && !counts_kernel).then(of_group);
            Limits { counted: counted.as_ref().and_then(since_base), alone, ..limits }
        });
        let quality = match proof.err().or(disturbance) {
            None => Quality::Virtualized { verified: self.availability.is_verified() },
            Some(disturbance) => Quality::Disturbed(disturbance),
        };
        self.counts(begin, Some(&ends), values, quality)
    }

    /// Returns the number of events of each event of the group. If one is not proven, its value is what Windows
    /// reported.
    fn prove(
        &self,
        at_begin: &ProfilingData,
        at_end: &ProfilingData,
        limits: impl Fn(&[usize], bool) -> Limits,
    ) -> Proven {
        let mut disturbance = None;
        let mut value_of = |name: &String, event: &super::ThreadEvent| {
            let of_slot = |slot: &super::Slot| {
                let at = |data: &ProfilingData| data.counters.get(slot.counter).copied().unwrap_or_default();
                let limits = limits(&slot.requests, event.counts_kernel);
                truncation::events(at(at_begin), at(at_end), self.modulus, &limits).unwrap_or_else(|unproven| {
                    disturbance.get_or_insert_with(|| match unproven {
                        Unproven::Ambiguous => Disturbance::MayHaveTruncated { event: name.clone() },
                        Unproven::Contradiction => Disturbance::Contradiction { event: name.clone() },
                    });
                    difference_of_windows(at_begin, at_end, slot.counter)
                })
            };
            event.slots.iter().map(of_slot).fold(0, u64::saturating_add)
        };
        let values = self.names.iter().zip(&self.events).map(|(name, event)| value_of(name, event)).collect();
        Proven { values, disturbance }
    }

    /// Reads Windows' account of the thread.
    fn accounting(&self) -> Result<Option<Accounting>, Error> {
        let account = |ProfilingData { context_switches, cycle_time, .. }| Accounting { context_switches, cycle_time };
        Ok(self.values()?.map(account))
    }

    fn values(&self) -> Result<Option<ProfilingData>, Error> {
        let values = self.profiling.as_ref().map(Profiling::read).transpose();
        Ok(values.map_err(|cause| GroupError::Profiling { cause })?)
    }

    fn ends(&self, begin: &Part, group: &GroupReply, accounting: Option<Accounting>) -> Ends {
        let asleep = self.system.time_asleep();
        let end = Observation { accounting, cpu: group.header.processor, generation: group.generation, asleep };
        Ends { begin: begin.observation, end }
    }

    /// Returns the sum over all CPUs for each event of the request.
    fn sums(&self, records: &[CountRecord]) -> Vec<u64> {
        let requests = self.events.iter().flat_map(|event| &event.slots).flat_map(|slot| &slot.requests);
        let mut sums = vec![0_u64; requests.max().map_or(0, |last| last + 1)];
        for record in records {
            if let Some(sum) = sums.get_mut(record.index as usize) {
                *sum = sum.saturating_add(record.count);
            }
        }
        sums
    }

    /// Returns a value for each event of the group, given that of an event of the request.
    fn of_requests(&self, value: impl Fn(usize) -> u64) -> Vec<u64> {
        let of_event = |event: &super::ThreadEvent| {
            let requests = event.slots.iter().flat_map(|slot| &slot.requests);
            requests.map(|index| value(*index)).fold(0, u64::saturating_add)
        };
        self.events.iter().map(of_event).collect()
    }

    /// Returns a value for each event of the group, given that of a counter.
    fn of_counters(&self, value: impl Fn(usize) -> u64) -> Vec<u64> {
        let of_event = |event: &super::ThreadEvent| {
            event.slots.iter().map(|slot| value(slot.counter)).fold(0, u64::saturating_add)
        };
        self.events.iter().map(of_event).collect()
    }

    fn counts(&self, begin: &Part, ends: Option<&Ends>, mut values: Vec<u64>, quality: Quality) -> Counts {
        if let Some(overhead) = &self.overhead {
            values.iter_mut().enumerate().for_each(|(index, value)| *value = overhead.net(index, *value));
        }
        let time = self.system.now().saturating_sub(begin.time);
        let accounts = ends.and_then(|ends| ends.begin.accounting.zip(ends.end.accounting));
        Counts {
            time_enabled: time,
            time_running: time,
            quality,
            names: self.names.clone(),
            values,
            context_switches: ends.and_then(Ends::context_switches),
            cycle_time: accounts.map(|(begin, end)| end.cycle_time.saturating_sub(begin.cycle_time)),
        }
    }
}

/// Returns what the driver counted of an event of the request.
fn difference(begin: &GroupReply, end: &GroupReply, index: usize) -> u64 {
    let at = |group: &GroupReply| group.counts.get(index).copied().unwrap_or_default();
    at(end).saturating_sub(at(begin))
}

/// Returns what Windows reported for a counter, which is no proof.
fn difference_of_windows(begin: &ProfilingData, end: &ProfilingData, counter: usize) -> u64 {
    let at = |data: &ProfilingData| data.counters.get(counter).copied().unwrap_or_default();
    at(end).saturating_sub(at(begin))
}
