//! Ordinary samples and precise records in one order per processor.
//!
//! The precise records of a processor are numbered from 0. An ordinary sample has the number of records before it: a
//! sample with 5 is between records 4 and 5. Times do not give this order, because the records of most processors have
//! the time at which they were fetched.
//!
//! A record of a batch has no process. It is assigned to one if the nearest ordinary samples before and after it have
//! the same process and thread, and no record between them names another. As far as the samples show, nothing else ran
//! in between.

use std::collections::BTreeMap;

use protocol::{AnySample, Record, RecordKind, UNKNOWN};
use recording::StackId;

use crate::filter::Filter;
use crate::input::Input;
use crate::locations::SampleLocation;
use crate::processes::Processes;
use crate::read::{Contents, ExportError, for_each_record};

/// A sample in the merged order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineSample {
    /// The sample, with the inferred process and thread if it had none.
    pub sample: AnySample,
    /// Number of a precise record, or the number of precise records before an ordinary sample.
    pub pebs_sequence: u64,
    /// `Sample`, `Precise` or `PreciseNext`.
    pub kind: RecordKind,
    /// The call stack.
    pub stack: StackId,
    /// Whether process and thread were inferred from the neighboring samples.
    pub inferred: bool,
}

const _: () = assert!(size_of::<TimelineSample>() == 64);

impl TimelineSample {
    /// Returns whether the sample is a PEBS record.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        self.kind != RecordKind::Sample
    }

    /// Returns the location without thread and processor.
    #[must_use]
    pub fn location(&self, processes: &Processes) -> SampleLocation {
        SampleLocation { stack: self.stack, ..processes.location(&self.sample) }
    }

    /// Returns the sort key among samples of one processor. Samples with equal keys keep the order of the file.
    fn order(&self) -> (u64, bool) {
        (self.pebs_sequence, self.is_precise())
    }

    /// Returns process and thread if both are known.
    fn owner(&self) -> Option<(u32, u32)> {
        let AnySample { process, thread, .. } = self.sample;
        (process != UNKNOWN && thread != UNKNOWN).then_some((process, thread))
    }

    fn can_be_of(&self, process: u32, thread: u32) -> bool {
        [UNKNOWN, process].contains(&self.sample.process) && [UNKNOWN, thread].contains(&self.sample.thread)
    }
}

/// Returns the samples of a recording with these `contents` that `filter` selects by everything except modules and
/// symbols, which are not known yet: by processor and then in the order of the module documentation. Branches have no
/// position in this order and are omitted. All samples of the selected processors are in memory at once, 64 bytes each.
///
/// # Errors
/// If the recording cannot be read.
pub fn timeline(
    contents: &Contents,
    filter: &Filter,
    input: &mut dyn Input,
) -> Result<Vec<TimelineSample>, ExportError> {
    let mut processors: BTreeMap<u32, Vec<TimelineSample>> = BTreeMap::new();
    for_each_record(input, |record, stack| {
        let Some(sample) = record.sample() else { return Ok(()) };
        // The samples of other processors are not needed to infer the processes of these.
        if !filter.slice.selects_processor(sample.processor) {
            return Ok(());
        }
        let samples: &mut Vec<TimelineSample> = processors.entry(sample.processor).or_default();
        let pebs_sequence = match record {
            Record::Sample(sample) => extend(sample.pebs_sequence, samples.last().map_or(0, |last| last.pebs_sequence)),
            Record::Precise(sample) => sample.number,
            Record::Branch(_)
            | Record::LastBranch(_)
            | Record::Access(_)
            | Record::Lost(_)
            | Record::Stop(_)
            | Record::Pause(_)
            | Record::OffCpu(_) => {
                return Ok(());
            }
        };
        samples.push(TimelineSample { sample, pebs_sequence, kind: record.kind(), stack, inferred: false });
        Ok(())
    })?;
    let mut all = Vec::new();
    for mut samples in processors.into_values() {
        samples.sort_by_key(TimelineSample::order);
        infer(&mut samples);
        let source_of = |one: &TimelineSample| contents.sample_counts.source_of(&one.sample);
        all.extend(samples.into_iter().filter(|one| {
            let process = contents.processes.at(one.sample.process, one.sample.time);
            filter.slice.selects_sample(&one.sample) && filter.selects(source_of(one), process)
        }));
    }
    Ok(all)
}

/// Returns the number with this low half that is nearest to an earlier number.
fn extend(low: u32, earlier: u64) -> u64 {
    let [a, b, c, d, ..] = earlier.to_le_bytes();
    let difference = low.wrapping_sub(u32::from_le_bytes([a, b, c, d])).cast_signed();
    earlier.checked_add_signed(difference.into()).unwrap_or(low.into())
}

/// Infers process and thread of records without them. `samples` are the sorted samples of one processor.
fn infer(samples: &mut [TimelineSample]) {
    let mut before = None;
    for stretch in samples.chunk_by_mut(|one, _| one.is_precise()) {
        // A stretch is a run of records and the ordinary sample after them, which the last stretch may lack.
        let after = stretch.last().filter(|last| !last.is_precise()).and_then(TimelineSample::owner);
        if let Some((process, thread)) = after.filter(|after| before == Some(*after))
            && stretch.iter().all(|one| one.can_be_of(process, thread))
        {
            for record in stretch.iter_mut().filter(|one| one.sample.process == UNKNOWN) {
                record.sample = AnySample { process, thread, ..record.sample };
                record.inferred = true;
            }
        }
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_extended_to_the_nearest_one() {
        for (low, earlier, expected) in [
            (5, 0, 5),
            (u32::MAX, 0, u64::from(u32::MAX)),
            (3, 0xFFFF_FFFF, 0x1_0000_0003),
            (0xFFFF_FFFE, 0x7_0000_0001, 0x6_FFFF_FFFE),
            (9, 0x7_0000_0009, 0x7_0000_0009),
        ] {
            assert_eq!(extend(low, earlier), expected, "{low:#x} after {earlier:#x}");
        }
    }
}
