//! Recording files.

use std::io::Cursor;

use protocol::SampleRecord;
use recording::{
    Block, EncodedBlock, Methods, Process, ReadError, Reader, RecordedSession, SampleStack, StackTree, Summary, Writer,
};
use zerocopy::{FromBytes, IntoBytes};

/// Sizes of the headers in bytes, by the documentation of the format.
const FILE_HEADER: usize = 16;
const BLOCK_HEADER: usize = 24;
const SAMPLES_HEAD: usize = 32;
const STACKS_HEAD: usize = 16;
/// Kinds of blocks.
const SAMPLES: u32 = 3;
const STACKS: u32 = 5;
/// The start of a zstd frame (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Call frames of all samples up to which a recording is written again: a stack can be shared by many samples.
const MAX_FRAMES: usize = 100_000;

/// A recording gives blocks and then at most one error, whose offset lies in the file. Decoding later, and skipping by
/// time, give the same blocks. A recording without an error is read as it is written again.
///
/// The bytes are read as they are, and once more with correct magic, numbers and checksums: those of random bytes never
/// are.
pub fn recording(bytes: &[u8]) {
    check(bytes);
    check(&repaired(bytes));
}

fn check(bytes: &[u8]) {
    let (blocks, error) = read(bytes, |reader| reader);
    let offset = match &error {
        None => {
            assert!(matches!(blocks.last(), Some(Block::Summary(_))), "a recording without a summary is complete");
            0
        }
        Some(ReadError::CutOff { offset } | ReadError::Damaged { offset, .. } | ReadError::Read { offset, .. }) => {
            *offset
        }
        Some(ReadError::NotARecording | ReadError::Version { .. }) => {
            assert!(blocks.is_empty());
            0
        }
    };
    assert!(offset <= bytes.len() as u64, "{error:?} of {} bytes", bytes.len());
    let lazy = Reader::new(bytes).into_iter().flat_map(|mut reader| std::iter::from_fn(move || reader.next_encoded()));
    let lazy: Vec<Block> = lazy.map_while(|block| block.and_then(EncodedBlock::decode).ok()).collect();
    assert_eq!(lazy, blocks, "decoded later");
    let (within, _) = read(bytes, |reader| reader.within(0..=u64::MAX));
    assert_eq!(within, blocks, "at any time");
    let (plain, _) = read(bytes, Reader::without_samples);
    let is_plain = |block: &&Block| !matches!(block, Block::Samples(_) | Block::StackedSamples(_) | Block::Stacks(_));
    // Damage of samples is skipped too, so there can be more.
    assert!(blocks.iter().filter(is_plain).eq(plain.iter().take(blocks.iter().filter(is_plain).count())));
    if error.is_none() {
        check_written(&blocks);
    }
}

/// Returns the blocks, and the error after them. Nothing follows it.
fn read<'a>(
    bytes: &'a [u8],
    limit: impl FnOnce(Reader<Cursor<&'a [u8]>>) -> Reader<Cursor<&'a [u8]>>,
) -> (Vec<Block>, Option<ReadError>) {
    let mut reader = match Reader::new(Cursor::new(bytes)) {
        Ok(reader) => limit(reader),
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut blocks = Vec::new();
    while let Some(block) = reader.next() {
        match block {
            Ok(block) => blocks.push(block),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(reader.next().is_none(), "something follows {error:?}");
                return (blocks, Some(error));
            }
        }
    }
    assert!(reader.next().is_none(), "something follows the end");
    (blocks, None)
}

/// What a recording says, independently of the division into blocks and of the numbers of stacks.
#[derive(Debug, PartialEq)]
enum Content {
    Session(RecordedSession),
    Process(Process),
    Methods(Methods),
    Sample(SampleRecord, SampleStack),
    Summary(Summary),
}

/// Returns the contents; `None` if the stacks of all samples have too many frames.
fn contents(blocks: &[Block]) -> Option<Vec<Content>> {
    let (mut tree, mut all, mut frames) = (StackTree::default(), Vec::new(), 0);
    for block in blocks {
        match block {
            Block::Session(session) => all.push(Content::Session(session.clone())),
            Block::Process(process) => all.push(Content::Process(process.clone())),
            Block::Methods(methods) => all.push(Content::Methods(methods.clone())),
            Block::Stacks(nodes) => tree.add(nodes),
            Block::Summary(summary) => all.push(Content::Summary(summary.clone())),
            Block::Samples(_) | Block::StackedSamples(_) => {
                for (record, stack) in block.samples() {
                    frames += tree.callers(stack).take(MAX_FRAMES).count();
                    if frames > MAX_FRAMES {
                        return None;
                    }
                    all.push(Content::Sample(without_cookie(record), tree.stack(stack)));
                }
            }
        }
    }
    Some(all)
}

/// Returns the record as it is written: the cookie of a sample, kind 0, is left out.
fn without_cookie(record: SampleRecord) -> SampleRecord {
    let mut bytes = [0; size_of::<SampleRecord>()];
    bytes.copy_from_slice(record.as_bytes());
    if bytes[36..38] == [0; 2] {
        bytes[44..48].fill(0);
    }
    SampleRecord::read_from_bytes(&bytes).expect("any 48 bytes are a record")
}

fn check_written(blocks: &[Block]) {
    let Some(all) = contents(blocks) else { return };
    let [Content::Session(session), middle @ .., Content::Summary(summary)] = &all[..] else {
        panic!("a session is first and a summary last");
    };
    let mut writer = Writer::new(Vec::new(), session).expect("it was read");
    for part in middle {
        match part {
            Content::Process(process) => writer.process(process),
            Content::Methods(methods) => writer.methods(methods),
            Content::Sample(record, stack) => writer.stacked_samples(&[(*record, stack.clone())]),
            Content::Session(_) | Content::Summary(_) => panic!("one session and one summary"),
        }
        .expect("it was read");
    }
    let file = writer.finish(summary).expect("it was read");
    let (again, error) = read(&file, |reader| reader);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(contents(&again), Some(all), "written and read again");
}

/// Returns the file with correct magic, version, numbers of blocks and checksums. Columns that are not compressed are.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let Some((header, mut rest)) = bytes.split_at_checked(FILE_HEADER) else { return bytes.to_vec() };
    let mut file = [b"\x89HALPRF\n", &recording::FORMAT_VERSION.to_le_bytes()[..], &header[12..]].concat();
    let mut number = 0_u64;
    while let Some((header, behind)) = rest.split_at_checked(BLOCK_HEADER) {
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = (word(4) as usize).min(behind.len());
        let (payload, after) = behind.split_at(length);
        let payload = match word(0) {
            SAMPLES => with_head(payload, SAMPLES_HEAD),
            STACKS => with_head(payload, STACKS_HEAD),
            _ => payload.to_vec(),
        };
        let mut block = header[..4].to_vec();
        block.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
        block.extend(number.to_le_bytes());
        block.extend(crc32fast::hash(&payload).to_le_bytes());
        block.extend(crc32fast::hash(&block).to_le_bytes());
        file.extend(block);
        file.extend(payload);
        number += 1;
        rest = after;
    }
    file.extend(rest);
    file
}

/// Returns a payload of numbers, with their checksum as the last of them, and a frame with columns.
fn with_head(payload: &[u8], length: usize) -> Vec<u8> {
    let Some((head, columns)) = payload.split_at_checked(length) else { return payload.to_vec() };
    let mut head = head[..length - 4].to_vec();
    let frame = if columns.starts_with(&ZSTD) {
        columns.to_vec()
    } else {
        let at = length - 8;
        head.splice(at.., u32::try_from(columns.len()).unwrap_or(u32::MAX).to_le_bytes());
        zstd::bulk::compress(columns, 1).expect("memory suffices")
    };
    let checksum = crc32fast::hash(&head).to_le_bytes();
    [&head[..], &checksum, &frame].concat()
}
