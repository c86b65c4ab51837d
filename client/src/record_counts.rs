//! Counts of the records of a recording by kind.

use protocol::{Sample, SampleKind};

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
}

impl RecordCounts {
    /// Adds records.
    pub fn add(&mut self, records: &[Sample]) {
        for record in records {
            match SampleKind::from_number(record.kind) {
                Some(kind) if kind.is_sample() => self.samples += 1,
                Some(SampleKind::Lost) => self.lost = self.lost.saturating_add(record.ip),
                Some(SampleKind::Throttled) => self.pauses += 1,
                Some(SampleKind::Resumed) => {
                    self.ended += 1;
                    self.paused = self.paused.saturating_add(record.ip);
                }
                Some(SampleKind::Silenced) => self.silences += 1,
                _ => {}
            }
        }
    }

    /// Returns the warning about processors on which sampling stopped; `None` if it stopped on none.
    pub fn storm_warning(&self) -> Option<String> {
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
    use super::*;
    use crate::fake::sample;

    #[test]
    fn each_kind_of_record_is_counted_separately() {
        let of = |kind: u16, ip: u64| Sample { kind, ip, ..sample(4, 1) };
        let mut record_counts = RecordCounts::default();
        record_counts.add(&[of(0, 5), of(0, 6), of(1, 30), of(2, 7), of(3, 8), of(4, 9), of(1, 12)]);
        let expected = RecordCounts { samples: 2, lost: 42, pauses: 1, ended: 1, paused: 8, silences: 0 };
        assert_eq!(record_counts, expected);
        record_counts.add(&[of(5, 1), of(6, 2), of(7, 3), of(8, 4), of(9, 5)]);
        assert_eq!(record_counts, RecordCounts { samples: 5, silences: 1, ..expected });
        record_counts.add(&[of(1, u64::MAX), of(3, u64::MAX)]);
        assert_eq!((record_counts.lost, record_counts.ended, record_counts.paused), (u64::MAX, 2, u64::MAX));
    }
}
