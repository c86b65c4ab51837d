//! A recording with a limit keeps its newest samples, whenever it is terminated.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{process, read, sample, session, summary};
use proptest::collection::vec;
use proptest::prelude::*;
use protocol::SampleRecord;
use recording::{
    Block, JoinedFile, Kept, Limits, Parts, ReadError, Summary, Writer, existing_parts, move_parts, remove_parts,
};

/// Samples of a step, with the times that follow `from`.
fn samples(from: u64, count: u64) -> Vec<SampleRecord> {
    (from..from + count).map(sample).collect()
}

/// Returns the times of the samples that can be read, and the error behind them, if any.
fn times(path: &Path) -> (Vec<u64>, Option<ReadError>) {
    let (blocks, end) = read(JoinedFile::open(path).unwrap());
    assert_eq!(blocks[..2], [Block::Session(session()), Block::Process(process(4))]);
    let records = blocks.iter().filter_map(|block| match block {
        Block::Samples(records) => Some(records.iter().map(SampleRecord::time)),
        _ => None,
    });
    (records.flatten().collect(), end)
}

/// Begins a recording, with a process.
fn begin(path: &Path) -> Writer<File> {
    let mut writer = Writer::new(File::create(path).unwrap(), &session()).unwrap();
    writer.process(&process(4)).unwrap();
    writer
}

fn size_of_parts(path: &Path) -> u64 {
    existing_parts(path).unwrap().iter().map(|(_, path)| fs::metadata(path).unwrap().len()).sum()
}

proptest! {
    #[test]
    fn the_newest_samples_are_kept_within_the_limits(
        steps in vec(1..200_u64, 1..20), bytes in 3_000..20_000_u64, time in 50..2_000_u64, by in 1..4_u32,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.rec");
        let mut writer = begin(&path);
        // The session's clock has 100 ns.
        let duration = Duration::from_nanos(100 * time);
        let limits = Limits { bytes: (by & 1 > 0).then_some(bytes), time: (by & 2 > 0).then_some(duration) };
        let mut parts = Parts::new(&path, &session(), limits);
        let mut next = 1;
        for count in steps {
            parts.samples(&samples(next, count)).unwrap();
            next += count;
            // A recorder that is terminated here leaves this.
            let (seen, end) = times(&path);
            let cut = matches!(end, Some(ReadError::CutOff { .. }));
            prop_assert!(cut, "{end:?}");
            let first = seen[0];
            prop_assert_eq!(&seen, &(first..next).collect::<Vec<_>>(), "a suffix");
            // A part is longer than an eighth of the limit by the block that filled it.
            prop_assert!(limits.time.is_none_or(|_| limits.bytes.is_some() || first == 1 || next - 1 - first >= time));
            prop_assert!(limits.time.is_none_or(|_| next - 1 - first <= time + time / 8 + 2 * 200), "{first} to {next}");
            prop_assert!(limits.bytes.is_none_or(|_| size_of_parts(&path) <= bytes || existing_parts(&path).unwrap().len() == 1));
        }
        let (before, _) = times(&path);
        let kept = parts.append_to(&mut writer).unwrap();
        let end = Summary { kept, ..summary() };
        writer.finish(&end).unwrap();
        let (after, error) = times(&path);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(&after, &before);
        prop_assert!(existing_parts(&path).unwrap().is_empty());
        let removed = before[0] - 1;
        let elapsed = (next - 1 - before[0]) * 10_000_000 / session().clock;
        prop_assert_eq!(kept, (removed > 0).then_some(Kept { elapsed, removed }));
    }
}

#[test]
fn a_recording_that_is_terminated_while_its_parts_are_appended_has_each_sample_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    drop(begin(&path));
    let start = fs::read(&path).unwrap();
    let mut parts = Parts::new(&path, &session(), Limits { bytes: Some(4_000), time: None });
    for step in 0..40 {
        parts.samples(&samples(1 + step * 20, 20)).unwrap();
    }
    let (all, _) = times(&path);
    drop(parts);
    let parts = existing_parts(&path).unwrap();
    assert!(parts.len() > 3 && parts[0].0 > 1, "{parts:?}");
    let contents: Vec<Vec<u8>> = parts.iter().map(|(_, path)| fs::read(path).unwrap()).collect();
    for appended in 0..parts.len() {
        // Part `appended` is being appended; those before it are deleted.
        let before = [&start, &*contents[..appended].concat()].concat();
        for length in (0..=contents[appended].len()).step_by(7).chain([contents[appended].len()]) {
            fs::write(&path, [&before, &contents[appended][..length]].concat()).unwrap();
            let (seen, end) = times(&path);
            assert!(matches!(end, Some(ReadError::CutOff { .. })), "{end:?}");
            assert_eq!(seen, all, "part {appended}, {length} bytes");
        }
        fs::remove_file(&parts[appended].1).unwrap();
        assert_eq!(times(&path).0, all, "part {appended} deleted");
    }
}

#[test]
fn a_cut_process_or_a_summary_ends_the_recording_before_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let mut writer = begin(&path);
    let whole = fs::read(&path).unwrap().len();
    let mut parts = Parts::new(&path, &session(), Limits { bytes: Some(100_000), time: None });
    parts.samples(&samples(1, 5)).unwrap();
    writer.process(&process(8)).unwrap();
    let cut = fs::read(&path).unwrap();
    for length in whole..cut.len() {
        fs::write(&path, &cut[..length]).unwrap();
        assert_eq!(times(&path).0, [1, 2, 3, 4, 5], "{length} bytes");
    }
    // A summary: the parts were left behind when all had been appended.
    fs::write(&path, &cut).unwrap();
    let mut file = File::options().append(true).open(&path).unwrap();
    let finished = begin(&folder.path().join("y.rec"));
    finished.finish(&summary()).unwrap();
    let finished = fs::read(folder.path().join("y.rec")).unwrap();
    file.set_len(0).unwrap();
    file.write_all(&finished).unwrap();
    let (seen, end) = times(&path);
    assert!(seen.is_empty() && end.is_none(), "{seen:?} {end:?}");
}

#[test]
fn a_recording_is_opened_while_its_parts_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    drop(begin(&path));
    let part = |number: u32| folder.path().join(format!("x.rec.part{number}"));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            fs::write(part(1), "").unwrap();
            for number in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                fs::write(part(number + 1), "").unwrap();
                fs::remove_file(part(number)).unwrap();
            }
        });
        let failed = (0..2_000).find_map(|_| JoinedFile::open(&path).err());
        is_done.store(true, Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}

#[cfg(unix)]
#[test]
fn a_part_that_the_folder_lists_and_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    drop(begin(&path));
    std::os::unix::fs::symlink("nowhere", folder.path().join("x.rec.part3")).unwrap();
    assert_eq!(JoinedFile::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_joined_file_is_read_and_seeks_like_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    drop(begin(&path));
    let mut parts = Parts::new(&path, &session(), Limits { bytes: Some(2_000), time: None });
    (0..9).for_each(|step| parts.samples(&samples(1 + step * 20, 20)).unwrap());
    let mut one = fs::read(&path).unwrap();
    existing_parts(&path).unwrap().iter().for_each(|(_, path)| one.extend(fs::read(path).unwrap()));
    let mut joined = JoinedFile::open(&path).unwrap();
    assert_eq!(joined.length().unwrap(), one.len() as u64);
    for start in (0..one.len()).step_by(61) {
        assert_eq!(joined.seek(SeekFrom::Start(start as u64)).unwrap(), start as u64);
        let mut bytes = [0; 40];
        let end = (start + 40).min(one.len());
        joined.read_exact(&mut bytes[..end - start]).unwrap();
        assert_eq!(bytes[..end - start], one[start..end], "{start}");
        assert_eq!(joined.seek(SeekFrom::Current(-20)).unwrap(), end as u64 - 20);
    }
}

#[test]
fn parts_are_moved_and_removed_with_their_recording() {
    let folder = tempfile::tempdir().unwrap();
    let [path, old] = ["x.rec", "x.rec.old"].map(|name| folder.path().join(name));
    for (path, steps) in [(&old, 9), (&path, 3)] {
        drop(begin(path));
        let mut parts = Parts::new(path, &session(), Limits { bytes: Some(2_000), time: None });
        (0..steps).for_each(|step| parts.samples(&samples(1 + step * 20, 20)).unwrap());
    }
    let before = times(&path);
    fs::rename(&path, &old).unwrap();
    move_parts(&path, &old).unwrap();
    assert_eq!(times(&old).0, before.0, "no part of the other recording is left");
    assert!(existing_parts(&path).unwrap().is_empty());
    remove_parts(&old).unwrap();
    assert!(existing_parts(&old).unwrap().is_empty() && old.exists());
}
