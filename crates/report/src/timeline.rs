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
use std::io::Read;

use protocol::{AnySample, Record, RecordKind, UNKNOWN};

use crate::filter::Filter;
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
        processes.location(&self.sample)
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
pub fn timeline(contents: &Contents, filter: &Filter, input: impl Read) -> Result<Vec<TimelineSample>, ExportError> {
    let mut processors: BTreeMap<u32, Vec<TimelineSample>> = BTreeMap::new();
    for_each_record(input, |record| {
        let pebs_sequence = match record {
            Record::Sample(sample) => sample.pebs_sequence,
            Record::Precise(sample) => sample.number,
            Record::Branch(_) | Record::Lost(_) | Record::Stop(_) | Record::Pause(_) => return Ok(()),
        };
        // The samples of other processors are not needed to infer the processes of these.
        if let Some(sample) = record.sample().filter(|sample| filter.slice.selects_processor(sample.processor)) {
            let samples = processors.entry(sample.processor).or_default();
            samples.push(TimelineSample { sample, pebs_sequence, kind: record.kind(), inferred: false });
        }
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
