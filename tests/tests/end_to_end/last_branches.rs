//! Last branches of samples, from the registers of the processor to the export.

use std::fs::{self, File};

use bench_protocol::{BranchKind, InterruptMode, InterruptSite, TakenBranch};
use protocol::{BranchRecord, BranchType, Prediction, Record};
use recording::Reader;
use tests::{Lab, Workload};

use crate::life::wait_for_enabled_counters;

/// A processor of each kind of records, its entries, and the number and unit mask of its cycles.
const PROCESSORS: [(&str, usize, (u16, u16)); 4] = [
    ("haswell-4710mq", 16, (0x3C, 0)),
    ("skylake-6600k", 32, (0x3C, 0)),
    ("sapphire-rapids-2475x", 32, (0x3C, 0)),
    ("zen5-9800x3d", 16, (0x76, 0)),
];

const PERIOD: u64 = 100_000;
const RECORDING: &str = "C:\\branches.rec";

/// Exit code: in use by other software.
const TAKEN: i32 = 24;

fn address(workload: &Workload, name: &str) -> u64 {
    workload.description.functions.iter().find(|function| function.name == name).unwrap().address
}

/// Branches between two functions of the workload: a call, a jump in the function, and the return.
fn calls(workload: &Workload, number: u64) -> [TakenBranch; 3] {
    let [alpha, beta] = ["alpha", "beta"].map(|name| address(workload, name));
    let branch = |from, to, kind| TakenBranch { from, to, kind, mispredicted: number.is_multiple_of(3), cycles: 7 };
    [
        branch(alpha + 4, beta, BranchKind::DirectCall),
        branch(beta + 2, beta + 6, BranchKind::Conditional),
        branch(beta + 8, alpha + 9, BranchKind::Return),
    ]
}

/// Returns the branches of each sample of the process, with its number of overflows before.
fn stacks(lab: &Lab, process: u32) -> Vec<Vec<BranchRecord>> {
    let file = File::open(lab.wine().drive_c("branches.rec")).unwrap();
    let mut stacks: Vec<Vec<BranchRecord>> = Vec::new();
    for block in Reader::new(file).unwrap().map(Result::unwrap) {
        for (record, _) in block.samples() {
            match record.parse().unwrap() {
                Record::Sample(sample) if sample.process == process => stacks.push(Vec::new()),
                Record::LastBranch(branch) if branch.process == process => stacks.last_mut().unwrap().push(branch),
                _ => {}
            }
        }
    }
    stacks
}

fn prediction(branch: &TakenBranch) -> Prediction {
    if branch.mispredicted { Prediction::Mispredicted } else { Prediction::Predicted }
}

/// Every branch of a sample is one that the script executed, in order, over interrupts in each mode, a sleep that
/// empties the records, and a sleep of the machine.
#[test]
fn each_sample_has_exactly_the_branches_that_ran_before_it() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (place, (identity, depth, (event, umask))) in PROCESSORS.into_iter().enumerate() {
        probe.service("unload", "halprof").unwrap().unwrap();
        lab.check_clean().unwrap();
        lab.run_by_script().unwrap();
        lab.become_processor(identity).unwrap();
        lab.wire.set_interrupt_mode(InterruptMode::ALL[place % 3]).unwrap();
        probe.service("load", "halprof").unwrap().unwrap();
        let workload = lab.workload().unwrap();
        let process = workload.description.process;
        let site = InterruptSite {
            ip: address(&workload, "alpha") + 1,
            user: true,
            process,
            thread: workload.description.thread,
            weight: 1,
        };
        lab.wire.set_interrupt_sites(0, &[site]).unwrap();
        let arguments = ["record", "-a", "-C", "0", "-e", "cycles@100k", "-j", "any,u", "-o", RECORDING];
        let arguments = [&arguments[..], &["--", "cmd", "/c", "pause"]].concat();
        let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 1;
        let mut client = lab.client_running(&arguments, "nothing counts", counts).unwrap();
        let mut taken: Vec<TakenBranch> = Vec::new();
        let mut expected: Vec<Vec<TakenBranch>> = Vec::new();
        for number in 0..12 {
            if number == 5 {
                lab.wire.lose_last_branches(0).unwrap();
                taken.clear();
            }
            if number == 8 {
                lab.wire.sleep().unwrap();
                lab.wire.wake(100).unwrap();
                taken.clear();
            }
            let now: Vec<TakenBranch> = (0..=number).flat_map(|call| calls(&workload, number + call)).collect();
            lab.wire.take_branches(0, &now).unwrap();
            taken.extend(now);
            lab.wire.run(0, &[(event, umask, PERIOD)], &[]).unwrap();
            expected.push(taken.iter().rev().take(depth).copied().collect());
        }
        drop(client.stdin.take()); // ends the pause
        assert!(client.wait().unwrap().success());
        wait_for_enabled_counters(&mut lab, 0);
        let stacks = stacks(&lab, process);
        assert_eq!(stacks.len(), expected.len(), "{identity}");
        for (number, (stack, expected)) in stacks.iter().zip(&expected).enumerate() {
            let found: Vec<_> = stack.iter().map(|branch| (branch.from, branch.to, branch.prediction)).collect();
            let wanted: Vec<_> = expected.iter().map(|branch| (branch.from, branch.to, prediction(branch))).collect();
            assert_eq!(found, wanted, "{identity}, sample {number}");
        }
        let newest = stacks.last().unwrap()[0];
        let (cycles, branch_type) = match identity {
            "skylake-6600k" => (7, BranchType::NotReported),
            "sapphire-rapids-2475x" => (7, BranchType::Return),
            _ => (0, BranchType::NotReported),
        };
        assert_eq!((newest.cycles, newest.branch_type), (cycles, branch_type), "{identity}");
        drop(workload);
    }
    drop(probe);
    lab.finish().unwrap();
}

/// The holder is named, and what it records stays as it is. An unload in the middle of a session restores everything.
#[test]
fn records_of_another_program_are_left_to_it_and_nothing_is_left_behind() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    lab.run_by_script().unwrap();
    lab.wire.write_msr(0, 0x1D9, 1).unwrap();
    let arguments = ["record", "-a", "-C", "0", "-e", "cycles@100k", "-b", "-o", RECORDING, "--", "cmd", "/c", "ver"];
    let refused = lab.client(&arguments).unwrap();
    assert_eq!(refused.code, TAKEN, "{}", refused.err);
    let expected = "last branch records of CPU 0 are in use by another program\n  because: register 0x1d9 is 0x1";
    assert!(refused.err.contains(expected), "{}", refused.err);
    assert_eq!(lab.wire.read_msr(0, 0x1D9).unwrap(), 1);
    lab.wire.write_msr(0, 0x1D9, 0).unwrap();
    let arguments = [&arguments[..arguments.len() - 1], &["pause"]].concat();
    let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 1;
    let mut client = lab.client_running(&arguments, "nothing counts", counts).unwrap();
    assert_eq!(lab.wire.read_msr(0, 0x1D9).unwrap() & 0x801, 0x801, "recorded, and frozen by interrupts");
    let branches: Vec<TakenBranch> = (0..40)
        .map(|number| TakenBranch {
            from: 0xFFFF_F800_0000_4000 + 16 * number,
            to: 0xFFFF_F800_0000_5000,
            kind: BranchKind::DirectJump,
            mispredicted: false,
            cycles: 1,
        })
        .collect();
    lab.wire.take_branches(0, &branches).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    wait_for_enabled_counters(&mut lab, 0);
    let left: Vec<u64> = (0x680..0x6A0).map(|register| lab.wire.read_msr(0, register).unwrap()).collect();
    assert_eq!(left, [0; 32], "addresses of others' code");
    assert_eq!(lab.wire.read_msr(0, 0x1D9).unwrap() & 0x801, 0);
    assert_eq!(lab.wire.read_msr(0, 0x1C8).unwrap(), 0);
    lab.finish().unwrap();
}

/// By hand: `record -b` and `export --format csv` in the lab, where each sample has branches.
#[test]
fn the_export_lists_the_branches_behind_their_samples() {
    let mut lab = Lab::boot("sapphire-rapids-2475x").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let arguments = ["record", "-a", "-C", "0", "-b", "-F", "1000", "-o", RECORDING, "--duration", "0.3s"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.client(&["export", "--format", "csv", "-o", "C:\\branches.csv", RECORDING]).unwrap().success().unwrap();
    let text = fs::read_to_string(lab.wine().drive_c("branches.csv")).unwrap();
    let of = |kind: &str| text.lines().filter(|line| line.contains(&format!(",{kind},"))).count();
    let (samples, branches) = (of("sample"), of("last_branch"));
    assert!(samples > 50 && branches > 31 * samples, "{samples} samples, {branches} branches");
    lab.finish().unwrap();
}
