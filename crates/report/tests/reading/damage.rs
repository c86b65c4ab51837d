//! Truncated and damaged recordings.

use std::io::Cursor;

use recording::ReadError;
use report::{Contents, Detail};

use super::support::{CYCLES, recording};

#[test]
fn truncated_recording_is_read_up_to_its_last_whole_block() {
    let whole = recording();
    let mut most = 0;
    for length in 0..whole.len() {
        match Contents::read(&mut Cursor::new(&whole[..length]), Detail::default()) {
            Ok(contents) => {
                assert!(matches!(contents.damage, Some(ReadError::CutOff { .. })), "{length}");
                assert!(contents.summary.is_none());
                let samples = contents.sample_counts.total(CYCLES).weight.samples;
                assert!(samples == 0 || samples == 10 && samples >= most, "{length}");
                most = samples;
            }
            Err(error) => assert!(most == 0 && !matches!(error, ReadError::Read { .. }), "{length}: {error}"),
        }
    }
    assert_eq!(most, 10);
    let contents = Contents::read(&mut Cursor::new(&whole), Detail::default()).unwrap();
    assert!(contents.damage.is_none() && contents.summary.is_some());
}

#[test]
fn damaged_block_ends_the_reading() {
    let mut bytes = recording();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let contents = Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
    assert!(matches!(contents.damage, Some(ReadError::Damaged { .. })), "{:?}", contents.damage);
    assert!(contents.summary.is_none());
    assert_eq!(contents.sample_counts.total(CYCLES).weight.samples, 10);
}
