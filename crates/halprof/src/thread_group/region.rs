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
//! The end has the rows from the last to the first. Where programs cannot execute RDPMC, a group reading between two
//! readings of the thread's memory is both of the last rows.

use std::time::Duration;

use protocol::{CountRecord, GroupReply, group_state};

use super::ThreadGroup;
use crate::counts::Counts;
use crate::error::Error;
use crate::group_error::{GroupError, in_one_line};
use crate::guards::Profiling;
use crate::quality::{Accounting, AllCpus, Disturbance, Ends, Grade, Observation, Quality};
use crate::system::{MAX_THREAD_COUNTERS, ProfilingData};
use crate::thread_memory::{ThreadMemory, value_of_driver};
use crate::truncation::{self, Limits, Unproven};
use crate::verification::ThreadReading;

/// The readings at the begin of a part.
pub(super) struct Part {
    observation: Observation,
    group: GroupReply,
    /// Values of a virtualized group.
    values: Option<Values>,
    time: Duration,
}

/// What Windows keeps of the counters for the thread.
struct Values {
    counters: [u64; MAX_THREAD_COUNTERS],
    /// Whether the thread is known not to have been switched while they were read. Otherwise they are what was counted
    /// until some switch.
    is_consistent: bool,
}

impl Values {
    fn of(&self, counter: usize) -> u64 {
        self.counters.get(counter).copied().unwrap_or_default()
    }
}

/// Attempts to read the thread's memory and the counters without a context switch in between. They take a few
/// microseconds each.
const MEMORY_ATTEMPTS: u32 = 32;

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
        let (group, values) = self.read_inwards()?;
        let observation = Observation { accounting, cpu: group.header.processor, generation: group.generation, asleep };
        Ok(Part { observation, group, values, time })
    }

    /// Ends a part: reads from the inside to the outside.
    pub(super) fn end_part(&self, begin: &Part) -> Result<Counts, Error> {
        if let Some(values_at_begin) = &begin.values {
            let (values, group) = match self.availability.reading() {
                Some(ThreadReading::Memory) => {
                    let (group, values) = self.read_memory()?;
                    (values, Ok(group))
                }
                _ => (self.read_counters()?, self.session.read_group()),
            };
            return Ok(self.end_virtualized(begin, values_at_begin, &values, group));
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

    fn end_virtualized(
        &self,
        begin: &Part,
        at_begin: &Values,
        at_end: &Values,
        group: Result<GroupReply, Error>,
    ) -> Counts {
        let checked = group.and_then(|group| Ok((group, self.accounting()?)));
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
        let limits = Limits { cycles: ends.cycles().zip(ends.context_switches()), counted: None, alone: None };
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
        let torn = (!at_begin.is_consistent || !at_end.is_consistent).then_some(Disturbance::SwitchedWhileRead);
        let quality = match proof.err().or(torn).or(disturbance) {
            None => Quality::Virtualized { verified: self.availability.is_verified() },
            Some(disturbance) => Quality::Disturbed(disturbance),
        };
        self.counts(begin, Some(&ends), values, quality)
    }

    /// Returns the number of events of each event of the group. If one is not proven, its value is what Windows
    /// reported.
    fn prove(&self, at_begin: &Values, at_end: &Values, limits: impl Fn(&[usize], bool) -> Limits) -> Proven {
        let mut disturbance = None;
        let mut value_of = |name: &String, event: &super::ThreadEvent| {
            let of_slot = |slot: &super::Slot| {
                let limits = limits(&slot.requests, event.counts_kernel);
                let [begin, end] = [at_begin, at_end].map(|values| values.of(slot.counter));
                truncation::events(begin, end, self.modulus, &limits).unwrap_or_else(|unproven| {
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

    /// Reads the counters of the CPU, and then those of the thread.
    fn read_inwards(&self) -> Result<(GroupReply, Option<Values>), Error> {
        let Some(reading) = self.availability.reading() else { return Ok((self.session.read_group()?, None)) };
        let (group, values) = match reading {
            ThreadReading::Memory => self.read_memory()?,
            ThreadReading::Function => {
                let group = self.session.read_group()?;
                if group.state & group_state::USER_RDPMC == 0 {
                    return Err(GroupError::NoUserRdpmc { cpu: group.header.processor }.into());
                }
                (group, self.read_counters()?)
            }
        };
        Ok((group, Some(values)))
    }

    /// Reads the counters of the thread by ReadThreadProfilingData, which executes RDPMC in user mode.
    fn read_counters(&self) -> Result<Values, Error> {
        let values = self.profiling()?.read_counters().map_err(|cause| GroupError::Profiling { cause })?;
        Ok(Values { counters: values.values, is_consistent: true })
    }

    /// Reads the counters of the CPU, and those of the thread from its memory, without a context switch in between.
    fn read_memory(&self) -> Result<(GroupReply, Values), Error> {
        let profiling = self.profiling()?;
        let memory = || profiling.read_memory().map_err(|cause| GroupError::Profiling { cause });
        let mut attempts = 0..MEMORY_ATTEMPTS;
        loop {
            let before = memory()?;
            let group = self.session.read_group()?;
            let after = memory()?;
            let is_consistent = before == after;
            if is_consistent || attempts.next().is_none() {
                let counters = self.values_in(&after, is_consistent.then_some(&group));
                return Ok((group, Values { counters, is_consistent }));
            }
        }
    }

    /// Returns the value of each counter of the group, until the driver read it or until the last switch.
    fn values_in(&self, memory: &ThreadMemory, group: Option<&GroupReply>) -> [u64; MAX_THREAD_COUNTERS] {
        let mut values = [0; MAX_THREAD_COUNTERS];
        for slot in self.events.iter().flat_map(|event| &event.slots) {
            let driver = group.and_then(|group| value_of_driver(group, &slot.requests));
            if let Some(value) = values.get_mut(slot.counter) {
                *value = driver.map_or_else(
                    || memory.until_switch(slot.counter),
                    |driver| memory.value(slot.counter, driver, self.width),
                );
            }
        }
        values
    }

    fn profiling(&self) -> Result<&Profiling, GroupError> {
        self.profiling.as_ref().ok_or(GroupError::NotBegun)
    }

    /// Reads Windows' account of the thread.
    fn accounting(&self) -> Result<Option<Accounting>, Error> {
        let account = |ProfilingData { context_switches, cycle_time }| Accounting { context_switches, cycle_time };
        let data = self.profiling.as_ref().map(Profiling::read).transpose();
        Ok(data.map_err(|cause| GroupError::Profiling { cause })?.map(account))
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
        let quality = match self.does_not_count {
            Some(cpu) if quality.is_exact() => Quality::Disturbed(Disturbance::DoesNotCount { cpu }),
            Some(_) | None => quality,
        };
        let time = self.system.now().saturating_sub(begin.time);
        Counts {
            time_enabled: time,
            time_running: time,
            quality,
            names: self.names.clone(),
            values,
            context_switches: ends.and_then(Ends::context_switches),
            cycle_time: ends.and_then(Ends::cycles),
        }
    }
}

/// Returns what the driver counted of an event of the request.
fn difference(begin: &GroupReply, end: &GroupReply, index: usize) -> u64 {
    let at = |group: &GroupReply| group.counts.get(index).copied().unwrap_or_default();
    at(end).saturating_sub(at(begin))
}

/// Returns what Windows reported for a counter, which is no proof.
fn difference_of_windows(begin: &Values, end: &Values, counter: usize) -> u64 {
    end.of(counter).saturating_sub(begin.of(counter))
}
