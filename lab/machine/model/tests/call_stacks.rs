//! Why halprof does not take call stacks from last branch records: they have no thread.

#![cfg(test)]

use model::{BranchKind, Processor, TakenBranch};

const DEBUGCTL: u32 = 0x1D9;
const LBR_SELECT: u32 = 0x1C8;
const TOP: u32 = 0x1C9;
const FROM: u32 = 0x680;
/// User mode, calls and returns, call-stack mode.
const CALL_STACK: u64 = 0x3C5;

const WAIT: u64 = 0x7FF0_0000_1000;
const WORK: u64 = 0x1_4000_2000;
const STEP: u64 = 0x1_4000_3000;
/// The callers of `WORK` in two threads.
const ONE: u64 = 0x1_4000_4000;
const OTHER: u64 = 0x1_4000_5000;

fn branch(from: u64, to: u64, kind: BranchKind) -> TakenBranch {
    TakenBranch { from, to, kind, ..TakenBranch::default() }
}

/// Returns the sources of the calls that are kept, the innermost first.
fn callers(cpu: &mut Processor) -> Vec<u64> {
    let top = u32::try_from(cpu.rdmsr(TOP).unwrap()).unwrap();
    let from = |age: u32| FROM + ((top + 16 - age) & 15);
    (0..16).map(|age| cpu.rdmsr(from(age)).unwrap()).take_while(|source| *source != 0).collect()
}

/// Two threads wait in the same function. The one that runs on returns from it, which removes the call of the other
/// one, and then seems to have been called by the caller of the other one: no address shows that it is wrong. Linux
/// saves the records of each thread (`intel_pmu_lbr_sched_task`); a driver of Windows is not called when threads
/// switch.
#[test]
fn a_thread_that_runs_on_has_the_callers_of_the_one_before_it() {
    let identity = cpuid_dumps::find("haswell-4710mq").unwrap();
    let dump = identity.cpuid();
    let mut cpu = Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
        .with_perf_capabilities(identity.perf_capabilities());
    cpu.wrmsr(LBR_SELECT, CALL_STACK).unwrap();
    cpu.wrmsr(DEBUGCTL, 1).unwrap();
    for (from, to) in [(ONE + 8, WORK), (WORK + 0x20, WAIT)] {
        cpu.take_branch(&branch(from, to, BranchKind::DirectCall));
    }
    assert_eq!(callers(&mut cpu), [WORK + 0x20, ONE + 8], "the first thread alone");
    // The other thread was called by OTHER, waits at the same place, and runs on.
    cpu.take_branch(&branch(WAIT + 0x30, WORK + 0x25, BranchKind::Return));
    cpu.take_branch(&branch(WORK + 0x40, STEP, BranchKind::DirectCall));
    assert_eq!(callers(&mut cpu), [WORK + 0x40, ONE + 8]);
    assert!(!callers(&mut cpu).contains(&(OTHER + 8)), "its own caller");
}
