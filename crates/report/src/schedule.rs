//! What each thread did: how long it ran, waited, and was ready, from the times in which it did not run.

use std::collections::BTreeMap;

use protocol::{OffCpuRecord, OffCpuState, Record};

use crate::filter::Filter;
use crate::input::Input;
use crate::process_keys::ProcessKey;
use crate::read::{Contents, ExportError};
use crate::symbol_index::SymbolIndex;
use crate::time_order::for_each_in_order;

/// What a thread did between the first and the last time that it ran on. Times are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadSchedule {
    /// How long it ran.
    pub run: u64,
    /// How long it waited; with the time in which it was ready where Windows did not tell when that began.
    pub waited: u64,
    /// How long it was ready, and others ran.
    pub ready: u64,
    /// Number of times that it ran on.
    pub switches: u64,
    /// Number of those on another processor than before.
    pub migrations: u64,
    /// The longest wait, and what it waited for: a number of KWAIT_REASON.
    pub longest_wait: (u64, u8),
    /// The longest time in which it was ready.
    pub longest_ready: u64,
    /// How long it waited for each reason.
    pub reasons: BTreeMap<u8, u64>,
    /// How often each thread made it ready.
    pub wakers: BTreeMap<u32, u64>,
    /// When it ran on for the last time, and on which processor; `None` while a wait is not over.
    running_since: Option<u64>,
    processor: Option<u32>,
}

impl ThreadSchedule {
    /// Adds a record that ends at a time.
    fn add(&mut self, time: u64, record: &OffCpuRecord) {
        let OffCpuRecord { state, duration, reason, waker, processor, .. } = *record;
        if let Some(since) = self.running_since.take() {
            self.run += time.saturating_sub(duration).saturating_sub(since);
        }
        match state {
            OffCpuState::Waiting | OffCpuState::WaitingOrReady => {
                self.waited += duration;
                self.longest_wait = self.longest_wait.max((duration, reason));
                *self.reasons.entry(reason).or_default() += duration;
                if waker != 0 {
                    *self.wakers.entry(waker).or_default() += 1;
                }
            }
            OffCpuState::Ready => {
                self.ready += duration;
                self.longest_ready = self.longest_ready.max(duration);
            }
        }
        if state != OffCpuState::Waiting {
            self.switches += 1;
            self.running_since = Some(time);
            self.migrations += u64::from(self.processor.replace(processor).is_some_and(|before| before != processor));
        }
    }
}

/// The selected threads, by process and ID.
pub type Schedule = BTreeMap<(ProcessKey, u32), ThreadSchedule>;

/// Returns what each selected thread did. `input` is the recording from which `contents` was read.
///
/// # Errors
/// If the recording cannot be read again.
pub fn schedule(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
) -> Result<Schedule, ExportError> {
    let mut schedule = Schedule::new();
    for_each_in_order(contents, symbol_index, filter, input, |record, _| {
        if let (Record::OffCpu(off), Some(sample)) = (record, record.sample()) {
            let process = contents.processes.location(&sample).process;
            let time = contents.nanoseconds(off.time);
            schedule.entry((process, off.thread)).or_default().add(time, off);
        }
        Ok(())
    })?;
    Ok(schedule)
}

#[cfg(test)]
mod tests {
    use protocol::OffCpuKind;

    use super::*;

    #[test]
    fn a_thread_ran_between_the_times_in_which_it_did_not() {
        let record = |time, state, duration, processor, waker| OffCpuRecord {
            time,
            ip: 0,
            process: 4,
            thread: 8,
            processor,
            event: 0,
            waker,
            kind: OffCpuKind::OffCpu,
            state,
            reason: 37,
            duration,
        };
        let mut thread = ThreadSchedule::default();
        for one in [
            record(100, OffCpuState::Waiting, 30, 0, 9),
            record(110, OffCpuState::Ready, 10, 1, 0),
            record(150, OffCpuState::Ready, 5, 1, 0), // preempted: it ran from 110 to 145
            record(220, OffCpuState::WaitingOrReady, 50, 0, 0), // from 150 to 170
        ] {
            thread.add(one.time, &one);
        }
        assert_eq!((thread.run, thread.waited, thread.ready), (35 + 20, 80, 15));
        assert_eq!((thread.switches, thread.migrations), (3, 1));
        assert_eq!((thread.longest_wait, thread.longest_ready), ((50, 37), 10));
        assert_eq!((thread.reasons[&37], &thread.wakers), (80, &BTreeMap::from([(9, 1)])));
    }
}
