//! Records of all processors in the order of time, as programs expect that read samples one by one.
//!
//! A recording has the records as the client received them: some of one processor, then some of another one, in blocks
//! that cover the same time. The records are not in memory at once. Each pass over the blocks keeps the [earliest
//! records that are left](WINDOW); blocks with later ones only are not read. Blocks of a real recording overlap little,
//! so that most are read once or twice.

use std::io;

use protocol::{Record, SampleRecord};
use recording::{EncodedBlock, ReadError, SamplesPosition, StackId};

use crate::filter::Filter;
use crate::input::{Blocks, Input, blocks};
use crate::read::{Contents, ExportError};
use crate::selected::within;
use crate::symbol_index::SymbolIndex;

/// Maximum number of records that a pass returns. They and those of a block are in memory, 72 bytes each.
const WINDOW: usize = 1 << 19;

/// A block of samples.
struct TimedBlock {
    earliest: u64,
    latest: u64,
    /// Place in the file among the blocks of samples.
    number: u32,
    position: SamplesPosition,
}

/// The order of a record: by time, and of equal times as in the file.
type Order = (u64, u32, u32);

/// Passes every record that `filter` selects and its call stack to `each` in the order of time, up to the first damaged
/// block. Records of the same time keep the order of the file.
pub(crate) fn for_each_in_order(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    mut each: impl FnMut(&Record, StackId) -> io::Result<()>,
) -> Result<(), ExportError> {
    let blocks = within(blocks(input)?, contents, filter);
    let blocks = timed_blocks(blocks, contents.damage.is_some())?;
    let is_selected = |record: &SampleRecord| {
        record.parse().is_ok_and(|record| filter.selects_record(&record, contents, symbol_index))
    };
    each_in_order(blocks, WINDOW, input, is_selected, |record, stack| {
        record.parse().map_or(Ok(()), |record| each(&record, stack))
    })
}

/// Returns the blocks of samples up to the first damaged one, which is only searched for if there is one.
fn timed_blocks(mut blocks: Blocks<'_>, is_damaged: bool) -> Result<Vec<TimedBlock>, ReadError> {
    let mut timed = Vec::new();
    while let Some(Ok(block)) = blocks.next_encoded() {
        let EncodedBlock::Samples(samples) = block else { continue };
        if is_damaged && samples.columns().is_err() {
            break;
        }
        let Some(range) = samples.times()? else { continue };
        // More blocks than this do not fit into memory.
        let number = u32::try_from(timed.len()).unwrap_or(u32::MAX);
        let position = samples.position();
        timed.push(TimedBlock { earliest: *range.start(), latest: *range.end(), number, position });
    }
    Ok(timed)
}

/// Passes the selected records of the blocks to `each` in the order of time, in passes of at most `window` records.
fn each_in_order(
    mut blocks: Vec<TimedBlock>,
    window: usize,
    input: &mut dyn Input,
    is_selected: impl Fn(&SampleRecord) -> bool,
    mut each: impl FnMut(&SampleRecord, StackId) -> io::Result<()>,
) -> Result<(), ExportError> {
    blocks.sort_by_key(|block| (block.earliest, block.number));
    let mut last: Option<Order> = None;
    let mut found: Vec<(Order, SampleRecord, StackId)> = Vec::new();
    loop {
        // The first record that is left for another pass.
        let mut end: Option<Order> = None;
        for block in &blocks {
            if end.is_some_and(|(time, ..)| block.earliest > time) {
                break;
            }
            let columns = block.position.read(input)?.columns()?;
            let places = columns.records().zip(columns.sample_stacks()).zip(0..);
            let records = places.map(|((record, stack), place)| ((record.time(), block.number, place), record, stack));
            found.extend(records.filter(|(order, record, _)| {
                last.is_none_or(|last| *order > last) && end.is_none_or(|end| *order < end) && is_selected(record)
            }));
            if found.len() > window {
                let (_, (first_left, ..), _) = found.select_nth_unstable_by_key(window, |(order, ..)| *order);
                end = Some(*first_left);
                found.truncate(window);
            }
        }
        found.sort_unstable_by_key(|(order, ..)| *order);
        for (order, record, stack) in found.drain(..) {
            each(&record, stack)?;
            last = Some(order);
        }
        let Some((time, ..)) = end else { return Ok(()) };
        blocks.retain(|block| block.latest >= time);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use protocol::{PauseKind, PauseRecord};
    use recording::{RecordedSession, Summary, Writer};

    use super::*;

    /// Writes blocks of records with these times, each with its number as its duration.
    fn file(blocks: &[Vec<u64>]) -> Vec<u8> {
        let text = String::new;
        let session = RecordedSession {
            created_unix_ms: 0,
            client: text(),
            driver: text(),
            processor: text(),
            computer: None,
            command: Vec::new(),
            clock: 1,
            processors: vec![0],
            batch: 0,
            core_types: Vec::new(),
            events: Vec::new(),
            condition: None,
            last_branches: 0,
            tasks: recording::RecordedTasks::default(),
            part: 0,
        };
        let mut writer = Writer::new(Vec::new(), &session).unwrap();
        let mut numbers = 0..;
        for times in blocks {
            let record = |time: &u64| PauseRecord::new(PauseKind::Resumed, *time, 1, numbers.next().unwrap()).into();
            writer.samples(&times.iter().map(record).collect::<Vec<SampleRecord>>()).unwrap();
        }
        let summary = Summary { elapsed: 1, ..Summary::default() };
        writer.finish(&summary).unwrap()
    }

    proptest! {
        #[test]
        fn every_record_is_passed_once_in_the_order_of_time(
            blocks in prop::collection::vec(prop::collection::vec(0_u64..40, 1..12), 0..12),
            window in 1_usize..30,
        ) {
            let mut input = Cursor::new(file(&blocks));
            let timed = timed_blocks(super::blocks(&mut input).unwrap(), false).unwrap();
            let mut passed = Vec::new();
            each_in_order(timed, window, &mut input, |record| record.time() % 5 != 3, |record, _| {
                let Ok(Record::Pause(pause)) = record.parse() else { panic!("{record:?}") };
                passed.push((pause.time, pause.duration));
                Ok(())
            })
            .unwrap();
            let mut wanted: Vec<(u64, u64)> = blocks.concat().into_iter().zip(0..).collect();
            wanted.retain(|(time, _)| time % 5 != 3);
            wanted.sort_unstable();
            prop_assert_eq!(passed, wanted);
        }
    }
}
