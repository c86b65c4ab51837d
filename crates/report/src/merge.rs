//! Ordinary samples and precise records in one order, processor by processor.
//!
//! A processor numbers its precise records from 0 ([`mark`](Sample::mark)), and an ordinary sample says how many there
//! were when it was taken: with the mark 5 it lies behind record 4 and before record 5. Times do not tell that: most
//! processors' records carry that at which they were fetched.
//!
//! A record of a batch does not say which process it is of. It is put to one where the ordinary samples next to it, on
//! both sides, are of one process and thread, and no record between them that names its own says otherwise: as far as
//! the samples tell, nothing else ran between.

use std::collections::BTreeMap;
use std::io::Read;

use protocol::{Sample, SampleKind, UNKNOWN};

use crate::filter::Filter;
use crate::read::{ExportError, for_each_record};
use crate::tally::{Detail, Place};

/// A sample in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// The sample, with the process and the thread that it was put to, where it named none.
    pub sample: Sample,
    /// Which kind it is: never a branch, and nothing that befell the sampling.
    pub kind: SampleKind,
    /// Whether process and thread are those of the samples beside it.
    pub inferred: bool,
}

impl Merged {
    /// Whether the processor itself recorded it.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        self.kind != SampleKind::Sample
    }

    /// Where it fell; thread and processor are left out.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::of(&self.sample, Detail::default())
    }

    /// Before another of the same processor exactly if it is less; equals keep the order of the file.
    fn order(&self) -> (u64, bool) {
        (self.sample.mark, self.is_precise())
    }

    /// Its process and thread, where both are known.
    fn owner(&self) -> Option<(u32, u32)> {
        let Sample { process, thread, .. } = self.sample;
        (process != UNKNOWN && thread != UNKNOWN).then_some((process, thread))
    }

    fn can_be_of(&self, process: u32, thread: u32) -> bool {
        [UNKNOWN, process].contains(&self.sample.process) && [UNKNOWN, thread].contains(&self.sample.thread)
    }
}

/// The samples of a recording that `filter` takes, ordered by processor, then as the module says. Branches have no place
/// in this order and are left out. Every sample is in memory at once: 56 bytes each.
///
/// # Errors
/// When the recording can not be read.
pub fn merged(filter: &Filter, input: impl Read) -> Result<Vec<Merged>, ExportError> {
    let mut processors: BTreeMap<u32, Vec<Merged>> = BTreeMap::new();
    for_each_record(input, |record| {
        let kind = SampleKind::from_number(record.kind);
        let ordered = [SampleKind::Sample, SampleKind::Precise, SampleKind::PreciseNext];
        if let Some(kind) = kind.filter(|kind| ordered.contains(kind)) {
            let samples = processors.entry(record.processor).or_default();
            samples.push(Merged { sample: *record, kind, inferred: false });
        }
        Ok(())
    })?;
    let mut all = Vec::new();
    for mut samples in processors.into_values() {
        samples.sort_by_key(Merged::order);
        infer(&mut samples);
        all.extend(samples.into_iter().filter(|one| filter.takes(one.sample.source, one.sample.process)));
    }
    Ok(all)
}

/// Puts the records that name no process to that of their neighbours, in samples of one processor in their order.
fn infer(samples: &mut [Merged]) {
    let mut before = None;
    for stretch in samples.chunk_by_mut(|one, _| one.is_precise()) {
        // A stretch is records, and at its end the ordinary sample behind them; the last may have none.
        let after = stretch.last().filter(|last| !last.is_precise()).and_then(Merged::owner);
        if let Some((process, thread)) = after.filter(|after| before == Some(*after))
            && stretch.iter().all(|one| one.can_be_of(process, thread))
        {
            for record in stretch.iter_mut().filter(|one| one.sample.process == UNKNOWN) {
                record.sample = Sample { process, thread, ..record.sample };
                record.inferred = true;
            }
        }
        before = after;
    }
}
