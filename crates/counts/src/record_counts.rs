//! Counts of the records of a recording by kind.

use protocol::{PauseKind, Record, SampleRecord, StopKind};

use terminal::format::counted;

/// Counts of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Samples.
    pub samples: u64,
    /// Lost samples, as reported by the driver.
    pub lost: u64,
    /// Pauses because a processor had spent its interrupt budget.
    pub pauses: u64,
    /// Pauses that have ended.
    pub ended: u64,
    /// Total duration of the pauses that have ended, in units of the session's clock.
    pub paused: u64,
    /// Processors on which sampling stopped because of too many interrupts that no counter explained.
    pub silences: u64,
    /// How often the counters of a processor were found not to interrupt any more.
    pub disconnections: u64,
    /// How often that ended.
    pub reconnections: u64,
}

impl RecordCounts {
    /// Adds records.
    pub fn add(&mut self, records: &[SampleRecord]) {
        for record in records {
            match record.parse() {
                Ok(Record::Sample(_) | Record::Precise(_) | Record::Branch(_)) => self.samples += 1,
                Ok(Record::Lost(lost)) => self.lost = self.lost.saturating_add(lost.count),
                Ok(Record::Stop(stop)) => match stop.kind {
                    StopKind::Throttled => self.pauses += 1,
                    StopKind::Silenced => self.silences += 1,
                    StopKind::Disconnected => self.disconnections += 1,
                },
                Ok(Record::Pause(pause)) => match pause.kind {
                    PauseKind::Resumed => {
                        self.ended += 1;
                        self.paused = self.paused.saturating_add(pause.duration);
                    }
                    PauseKind::Reconnected => self.reconnections += 1,
                    PauseKind::Slept => {}
                },
                Ok(Record::LastBranch(_) | Record::Access(_) | Record::OffCpu(_)) | Err(_) => {}
            }
        }
    }

    /// Returns the warnings about processors on which sampling stopped, unless a pause explains it.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.storm_warning().into_iter().chain(self.disconnection_warning())
    }

    /// Returns the warning about processors whose counters did not interrupt; `None` if there were none.
    fn disconnection_warning(&self) -> Option<String> {
        (self.disconnections > 0).then(|| {
            let times = counted(self.disconnections, "time");
            let ended = match self.disconnections.saturating_sub(self.reconnections) {
                0 => String::new(),
                lasting => format!("; that lasted until\n  the end {}", counted(lasting, "time")),
            };
            format!(
                "warning: no samples came from a CPU, {times}, because its entry (LVT) for the\n  \
                 interrupt of the counters was not that of Windows, as after a sleep{ended}\n  \
                 try: record again; if that recurs, restart Windows"
            )
        })
    }

    /// Returns the warning about processors on which a storm ended the sampling; `None` if it ended on none.
    fn storm_warning(&self) -> Option<String> {
        (self.silences > 0).then(|| {
            let processors = if self.silences == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", self.silences) };
            format!(
                "warning: sampling stopped early on {processors}: an interrupt storm, that is\n  \
                 interrupts in a row that no counter explains\n  \
                 try: end other programs that use the performance counters, then record again"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use protocol::{
        BranchKind, BranchRecord, BranchType, LostRecord, Mode, PauseRecord, PreciseKind, Prediction, StopRecord,
        UNKNOWN,
    };
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;
    use fake_system::{precise_sample, sample};

    fn branch() -> SampleRecord {
        let (process, thread, kind, mode) = (UNKNOWN, UNKNOWN, BranchKind::Branch, Mode::User);
        let (prediction, event) = (Prediction::NotReported, 0);
        BranchRecord {
            time: 1,
            from: 3,
            process,
            thread,
            processor: 0,
            event,
            cycles: 0,
            prediction,
            branch_type: BranchType::NotReported,
            kind,
            mode,
            to: 4,
        }
        .into()
    }

    #[test]
    fn each_kind_of_record_is_counted_separately() {
        let lost = |count| LostRecord::new(1, 0, 0x13, count).into();
        let stop = |kind| StopRecord::new(kind, 1, 0).into();
        let pause = |kind, duration| PauseRecord::new(kind, 1, 0, duration).into();
        let mut record_counts = RecordCounts::default();
        record_counts.add(&[
            sample(4, 5),
            sample(4, 6),
            lost(30),
            stop(StopKind::Throttled),
            pause(PauseKind::Resumed, 8),
            pause(PauseKind::Slept, 9),
            lost(12),
        ]);
        let expected = RecordCounts { samples: 2, lost: 42, pauses: 1, ended: 1, paused: 8, ..RecordCounts::default() };
        assert_eq!(record_counts, expected);
        let mut unknown = SampleRecord::new_zeroed();
        unknown.as_mut_bytes()[36] = 11;
        let precise = [PreciseKind::Precise, PreciseKind::PreciseNext].map(|kind| precise_sample(4, kind));
        record_counts.add(&[precise[0], precise[1], branch(), stop(StopKind::Silenced), unknown]);
        assert_eq!(record_counts, RecordCounts { samples: 5, silences: 1, ..expected });
        record_counts.add(&[lost(u64::MAX), pause(PauseKind::Resumed, u64::MAX)]);
        assert_eq!((record_counts.lost, record_counts.ended, record_counts.paused), (u64::MAX, 2, u64::MAX));
        record_counts.add(&[stop(StopKind::Disconnected), pause(PauseKind::Reconnected, 5)]);
        assert_eq!((record_counts.disconnections, record_counts.reconnections, record_counts.ended), (1, 1, 2));
    }
}
