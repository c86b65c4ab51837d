//! Recordings of samples with their last branches.

use protocol::{BranchKind, BranchRecord, BranchType, Mode, Prediction, Record, last_branches};

use super::*;

/// Returns a sample of processor 0 with last branches.
fn stack(process: u32, time: u64, branches: u64) -> Vec<SampleRecord> {
    let first = sample(process, time);
    let Ok(Record::Sample(of)) = first.parse() else { panic!("{first:?}") };
    let branch = |number: u64| {
        let (kind, branch_type) = (BranchKind::LastBranch, BranchType::NotReported);
        BranchRecord {
            time,
            from: of.ip + 4 * number,
            process,
            thread: of.thread,
            processor: of.processor,
            event: of.event,
            cycles: 7,
            prediction: Prediction::Mispredicted,
            branch_type,
            kind,
            mode: Mode::User,
            to: of.ip,
        }
        .into()
    };
    [first].into_iter().chain((0..branches).map(branch)).collect()
}

#[test]
fn the_session_asks_for_the_branches_that_the_user_chose_and_the_recording_says_which() {
    for (options, bits, ring) in [
        ("", 0, 2_048),
        ("-b", last_branches::MODES | last_branches::ANY, 65_536),
        ("--branch-any -F 10", last_branches::MODES | last_branches::ANY, 1_024),
        ("-j any,u --ring 512", last_branches::USER | last_branches::ANY, 512),
        ("--branch-filter cond,k", last_branches::KERNEL | last_branches::CONDITIONAL, 65_536),
    ] {
        let bench = Bench::new(&[&stack(12, 1, 3)]);
        assert_eq!(bench.record_command(options).outcome.unwrap(), 3, "{options}");
        let (header, _) = bench.start();
        assert_eq!((header.last_branches, header.ring), (bits, ring), "{options}");
        assert_eq!(bench.recording().session().last_branches, bits, "{options}");
    }
}

#[test]
fn branches_are_in_the_file_behind_their_sample_and_in_no_count() {
    let records = [stack(12, 1, 32), stack(4, 2, 0), stack(12, 3, 8)].concat();
    // A reply can end within a sample's branches.
    let bench = Bench::new(&[&records[..10], &records[10..35], &records[35..]]);
    let ran = bench.record_command("-b");
    assert!(ran.err.contains("[ recorded 3 samples "), "{}", ran.err);
    assert_eq!(bench.recording().samples(), records);
}

#[test]
fn branches_of_filtered_samples_are_filtered_with_them() {
    let (kept, other) = (stack(12, 1, 5), stack(20, 2, 5));
    let bench = Bench::new(&[&[kept.clone(), other].concat()]);
    bench.system.processes.replace([(12, "app.exe"), (20, "other.exe")].map(|(id, name)| (id, name.to_owned())).into());
    let ran = bench.record_exit_3("-b -p 12");
    assert!(ran.err.contains("[ filtered 1 samples of other processes and threads ]"), "{}", ran.err);
    assert_eq!(bench.recording().samples(), kept);
}

#[test]
fn branches_that_no_sample_would_have_are_refused_before_the_start() {
    for (options, exit, text) in [
        ("-b -e TotalIssues:p", Exit::Usage, "error: no event has last branches"),
        ("-b -e Time", Exit::Usage, "error: no event has last branches"),
    ] {
        let bench = Bench::new(&[]);
        let (found, report) = bench.record_command(options).failure();
        assert_eq!(found, exit, "{options}");
        assert!(report.contains(text), "{options}: {report}");
        assert!(bench.system.driver.inputs(Code::Start).is_empty(), "{options}");
    }
}
