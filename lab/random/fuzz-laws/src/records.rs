//! Records: of samples, and those that the processor writes into the Debug Store.

use debug_store::Buffer;
use debug_store::pebs::{Format, Part};
use protocol::{RecordError, RecordKind, SampleRecord};
use zerocopy::FromBytes;

/// A record that is parsed becomes the same bytes again, keeps its kind, and is a sample exactly if its kind is, or
/// a thread did not run. One
/// that is not parsed has an unknown kind or is damaged.
pub fn sample_records(bytes: &[u8]) {
    for chunk in bytes.chunks_exact(size_of::<SampleRecord>()) {
        let record = SampleRecord::read_from_bytes(chunk).expect("any 48 bytes are a record");
        match record.parse() {
            Ok(parsed) => {
                assert_eq!(SampleRecord::from(parsed), record);
                assert_eq!(Some(parsed.kind()), record.kind());
                let is_sample = parsed.kind().is_sample() || parsed.kind() == RecordKind::OffCpu;
                assert_eq!(parsed.sample().is_some(), is_sample);
                assert_eq!(parsed.time(), record.time());
            }
            Err(RecordError::UnknownKind(kind)) => {
                assert_eq!(RecordKind::from_number(kind), None);
                assert_eq!(record.kind(), None);
            }
            Err(RecordError::Damaged(kind)) => assert_eq!(record.kind(), Some(kind)),
        }
    }
}

/// A PEBS record is read within its buffer, and is at least a byte and at most the rest of the buffer, so that a reader
/// comes to the end. The bytes that a buffer claims to have lie in it, whatever its
/// addresses are, and so does a threshold.
pub fn debug_store(bytes: &[u8]) {
    let Some((&[format, ref fields @ ..], record)) = bytes.split_first_chunk::<41>() else { return };
    let word = |at: usize| u64::read_from_prefix(&fields[at..]).map_or(0, |(word, _)| word);
    let [base, index, maximum, length, records] = [0, 8, 16, 24, 32].map(word);
    let written = Buffer { base, index, maximum }.written(usize::try_from(length).unwrap_or(usize::MAX));
    assert!(written as u64 <= length && written as u64 <= maximum.saturating_sub(base));
    let format = Format::ALL[usize::from(format) % Format::ALL.len()];
    let size = u64::from(format.least_size());
    let whole = Buffer::whole(base, length, size);
    let threshold = whole.threshold(size, records);
    assert!(whole.base <= threshold && threshold <= whole.maximum, "{threshold:#x} of {whole:x?}");
    assert!(whole.maximum - whole.base <= length);
    let left = usize::try_from(records % 0x1000).unwrap_or(0).max(1);
    let (found, taken) = format.part(left, |offset| {
        assert!(offset + 8 <= left, "offset {offset} of {left} bytes");
        record.get(offset..).and_then(|rest| u64::read_from_prefix(rest).ok()).map_or(0, |(word, _)| word)
    });
    assert!((1..=left).contains(&taken), "{taken} of {left} bytes");
    let is_readable = format < Format::Adaptive && left >= usize::from(format.least_size());
    assert!(matches!(found, Part::Record(_)) || !is_readable, "records of fixed size are readable");
}
