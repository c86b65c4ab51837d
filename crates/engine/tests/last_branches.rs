//! Last branches behind each sample: those that the processor executed, in order, of every kind of records.

use ::engine::{Engine, Interrupted};
use model::{BranchKind, FaultingAccess, InterruptMode, Mode, Processor, Quirk, TakenBranch};
use proptest::prelude::*;
use protocol::{
    BRANCHES, BranchRecord, BranchType, ErrorCode, Event, EventRequest, Prediction, Record, StartHeader, flags,
    last_branches, modes,
};
use simulation::{Client, SimMachine};

use crate::recorded::scene::{engine, fetched, machine, started, stopped};

/// A processor of each kind of records, with its entries and what these hold beside the addresses.
const KINDS: [(&str, u8, u32, Holds); 10] = [
    ("nehalem-920", 1, 16, Holds { mispredicted: false, cycles: false, kind: false }),
    ("sandy-bridge-2600k", 1, 16, Holds { mispredicted: true, cycles: false, kind: false }),
    ("haswell-4710mq", 2, 16, Holds { mispredicted: true, cycles: false, kind: false }),
    ("skylake-6600k", 3, 32, Holds { mispredicted: true, cycles: true, kind: false }),
    ("ice-lake-1065g7", 4, 32, Holds { mispredicted: true, cycles: true, kind: false }),
    ("apollo-lake-n4200", 3, 32, Holds { mispredicted: true, cycles: true, kind: false }),
    ("sapphire-rapids-2475x", 4, 32, Holds { mispredicted: true, cycles: true, kind: true }),
    ("arrow-lake-245k", 6, 32, Holds { mispredicted: true, cycles: true, kind: true }),
    ("zen4-7700x", 0, 16, Holds { mispredicted: true, cycles: false, kind: false }),
    ("zen5-9800x3d", 0, 16, Holds { mispredicted: true, cycles: false, kind: false }),
];

/// Its firmware hides the freeze, without which branches of kernel mode would be those of the interrupt.
const WITHOUT_FREEZE: &str = "zen4-7700x";

#[derive(Debug, Clone, Copy)]
struct Holds {
    mispredicted: bool,
    cycles: bool,
    kind: bool,
}

const USER: u32 = last_branches::USER | last_branches::ANY;
const BOTH: u32 = last_branches::MODES | last_branches::ANY;
const INTERVAL: u32 = 5_000;
const KERNEL: u64 = 0xFFFF_F801_0000_0000;

fn header(last_branches: u32) -> StartHeader {
    StartHeader { ring: 4096, budget: 900, last_branches, ..StartHeader::EMPTY }
}

/// Instructions, which every interface counts.
fn sampled() -> EventRequest {
    EventRequest { event: Event::of(2), modes: modes::BOTH, interval: INTERVAL, ..EventRequest::EMPTY }
}

/// A branch that differs from others in everything that an entry holds.
fn user(number: u32) -> TakenBranch {
    const KINDS: [BranchKind; 6] = [
        BranchKind::Conditional,
        BranchKind::DirectJump,
        BranchKind::IndirectJump,
        BranchKind::DirectCall,
        BranchKind::IndirectCall,
        BranchKind::Return,
    ];
    TakenBranch {
        from: 0x7FF6_0000_1000 + 0x40 * u64::from(number),
        to: 0x7FF6_0000_1020 + 0x40 * u64::from(number),
        kind: *KINDS.iter().cycle().nth(number as usize % KINDS.len()).unwrap_or(&BranchKind::Return),
        mispredicted: number.is_multiple_of(3),
        cycles: u16::try_from(1 + number % 100).unwrap_or(1),
    }
}

/// Starts a session that records these branches.
fn recording(machine: &SimMachine, last_branches: u32) -> (Engine<&SimMachine>, Client, u64) {
    let mut engine = engine(machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(last_branches), &[sampled()]);
    (engine, client, session)
}

fn interrupted() -> Interrupted {
    Interrupted { ip: 0x7FF6_0000_2000, process: 100, thread: 200, mode: protocol::Mode::User }
}

fn take(machine: &SimMachine, branches: &[TakenBranch]) {
    for branch in branches {
        machine.processor(0).model().take_branch(branch);
    }
}

/// Takes these branches, then lets the counter overflow, and serves its interrupt.
fn sample(machine: &SimMachine, engine: &Engine<&SimMachine>, branches: &[TakenBranch]) {
    take(machine, branches);
    machine.run(0, Mode::User, &|_| INTERVAL.into());
    machine.deliver(engine, 0, &interrupted());
}

/// Divides records into samples, each with its branches.
fn by_sample(records: &[Record]) -> Vec<Vec<BranchRecord>> {
    let mut samples: Vec<(u64, Vec<BranchRecord>)> = Vec::new();
    for record in records {
        match record {
            Record::Sample(sample) => samples.push((sample.time, Vec::new())),
            Record::LastBranch(branch) => {
                let Some((time, branches)) = samples.last_mut() else { unreachable!("a branch without a sample") };
                assert_eq!((*time, branch.process, branch.thread, branch.event), (branch.time, 100, 200, 0));
                branches.push(*branch);
            }
            _ => {}
        }
    }
    samples.into_iter().map(|(_, branches)| branches).collect()
}

/// Returns the branches of a stack without those of the driver's own accesses, which are in kernel mode.
fn without_writers(stack: &[BranchRecord]) -> Vec<BranchRecord> {
    stack.iter().filter(|branch| !Processor::is_of_writer(branch.from)).copied().collect()
}

fn type_of(kind: BranchKind) -> BranchType {
    match kind {
        BranchKind::Conditional => BranchType::Conditional,
        BranchKind::IndirectJump => BranchType::IndirectJump,
        BranchKind::DirectJump => BranchType::DirectJump,
        BranchKind::IndirectCall => BranchType::IndirectCall,
        BranchKind::DirectCall => BranchType::DirectCall,
        BranchKind::Return => BranchType::Return,
        BranchKind::Far => BranchType::Other,
    }
}

/// Checks that a stack is exactly the last ones of what was taken, the newest first.
fn check(name: &str, stack: &[BranchRecord], taken: &[TakenBranch], depth: u32, holds: Holds) {
    let own = without_writers(stack);
    let room = depth as usize - (stack.len() - own.len());
    assert_eq!(own.len(), taken.len().min(room), "{name}");
    for (record, branch) in own.iter().zip(taken.iter().rev()) {
        assert_eq!((record.from, record.to), (branch.from, branch.to), "{name}");
        let prediction = match (holds.mispredicted, branch.mispredicted) {
            (false, _) => Prediction::NotReported,
            (true, false) => Prediction::Predicted,
            (true, true) => Prediction::Mispredicted,
        };
        assert_eq!(record.prediction, prediction, "{name}");
        assert_eq!(record.cycles, if holds.cycles { branch.cycles } else { 0 }, "{name}");
        let branch_type = if holds.kind { type_of(branch.kind) } else { BranchType::NotReported };
        assert_eq!(record.branch_type, branch_type, "{name}");
    }
}

#[test]
fn each_sample_has_the_last_branches_before_it_and_leaves_the_registers_as_found() {
    for (name, format, depth, holds) in KINDS {
        for filter in filters(name) {
            let machine = machine(name, format, 1);
            let (mut engine, client, session) = recording(&machine, filter);
            let taken: Vec<TakenBranch> = (0..51).map(user).collect();
            for (from, to) in [(0, 3), (3, 10), (10, 50), (50, 51)] {
                sample(&machine, &engine, &taken[from..to]);
            }
            stopped(client, &mut engine, session, None);
            let stacks = by_sample(&fetched(client, &mut engine, session));
            assert_eq!(stacks.len(), 4, "{name}");
            for (stack, taken_by_then) in stacks.iter().zip([3, 10, 50, 51]) {
                check(name, stack, &taken[..taken_by_then], depth, holds);
            }
            assert_eq!(left_over(&machine, depth), [0; 7], "{name}: something is left in the registers");
        }
    }
}

fn filters(name: &str) -> Vec<u32> {
    [USER, BOTH].into_iter().filter(|filter| filter & last_branches::KERNEL == 0 || name != WITHOUT_FREEZE).collect()
}

/// Returns what the registers of last branches contain: the controls, and the sum of the entries.
fn left_over(machine: &SimMachine, depth: u32) -> [u64; 7] {
    let processor = machine.processor(0);
    let mut model = processor.model();
    model.uncounted(|model| {
        let mut read = |msr| model.rdmsr(msr).unwrap_or_default();
        let entries: u64 = [0x680, 0x6C0, 0xDC0, 0x1500, 0x1600, 0x1200, 0xC001_0300, 0xC001_0310]
            .iter()
            .map(|first| (0..depth).map(|index| read(first + index) & 0xFFFF).sum::<u64>())
            .sum();
        let debug = read(0x1D9) & 0x801; // LBR, FREEZE_LBRS_ON_PMI
        [debug, read(0x1C8), read(0x14CE) & 1, read(0xC000_010E), read(0xC000_010F), entries, read(0x38E) >> 58 & 1]
    })
}

#[test]
fn branches_of_the_other_mode_and_of_other_kinds_are_left_out() {
    for (name, format, ..) in KINDS.into_iter().filter(|(name, ..)| *name != "nehalem-920") {
        let kernel = TakenBranch { from: KERNEL, to: KERNEL + 0x100, ..user(0) };
        let into_kernel = TakenBranch { to: KERNEL, kind: BranchKind::Far, ..user(1) };
        let back = TakenBranch { from: KERNEL + 0x300, kind: BranchKind::Far, ..user(2) };
        let (jump, call) = (user(0), user(3)); // conditional, direct call
        let all = [kernel, into_kernel, back, jump, call];
        for (filter, kept) in [
            (USER, vec![back, jump, call]),
            (BOTH, all.to_vec()),
            (last_branches::USER | last_branches::CONDITIONAL, vec![jump]),
            (last_branches::USER | last_branches::DIRECT_CALL, vec![call]),
            (last_branches::KERNEL | last_branches::ANY, vec![kernel, into_kernel]),
        ] {
            if filter & last_branches::KERNEL != 0 && name == WITHOUT_FREEZE {
                continue;
            }
            let machine = machine(name, format, 1);
            let (mut engine, client, session) = recording(&machine, filter);
            sample(&machine, &engine, &all);
            let stacks = by_sample(&fetched(client, &mut engine, session));
            let expected: Vec<_> = kept.iter().rev().map(|branch| (branch.from, branch.to)).collect();
            let found = without_writers(&stacks[0]);
            let found: Vec<_> = found.iter().map(|branch| (branch.from, branch.to)).collect();
            assert_eq!(found, expected, "{name}, filter {filter:#x}");
        }
    }
}

/// Wrong paths, and entries that are no branches (erratum 1452), are among AMD's records.
#[test]
fn what_amd_records_beside_branches_that_retired_is_left_out() {
    let machine = machine("zen4-7700x", 0, 1);
    machine.processor(0).model().set_unkind_branches(true);
    let (mut engine, client, session) = recording(&machine, USER);
    let taken: Vec<TakenBranch> =
        (0..30).map(|number| TakenBranch { kind: BranchKind::Return, ..user(number) }).collect();
    sample(&machine, &engine, &taken);
    let stacks = by_sample(&fetched(client, &mut engine, session));
    let found: Vec<u64> = stacks[0].iter().map(|branch| branch.from).collect();
    let newest: Vec<u64> = taken.iter().rev().take(found.len()).map(|branch| branch.from).collect();
    assert!((8..16).contains(&found.len()), "{found:x?}");
    assert_eq!(found, newest);
}

#[test]
fn a_deep_sleep_that_empties_the_records_leaves_only_what_came_after_it() {
    for (name, format, depth, holds) in KINDS {
        let machine = machine(name, format, 1);
        let (mut engine, client, session) = recording(&machine, USER);
        let taken: Vec<TakenBranch> = (0..20).map(user).collect();
        sample(&machine, &engine, &taken);
        machine.processor(0).model().lose_last_branches();
        sample(&machine, &engine, &taken[..5]);
        machine.processor(0).model().lose_last_branches();
        sample(&machine, &engine, &[]);
        let stacks = by_sample(&fetched(client, &mut engine, session));
        check(name, &stacks[0], &taken, depth, holds);
        check(name, &stacks[1], &taken[..5], depth, holds);
        assert_eq!(stacks[2], [], "{name}");
    }
}

#[test]
fn after_a_sleep_of_the_machine_branches_are_recorded_again() {
    for (name, format, depth, holds) in KINDS {
        let machine = machine(name, format, 1);
        let (mut engine, client, session) = recording(&machine, USER);
        let taken: Vec<TakenBranch> = (0..20).map(user).collect();
        sample(&machine, &engine, &taken);
        machine.fall_asleep(&engine);
        assert_eq!(left_over(&machine, depth), [0; 7], "{name}");
        machine.wake(&engine);
        sample(&machine, &engine, &taken[..5]);
        let stacks = by_sample(&fetched(client, &mut engine, session));
        check(name, &stacks[1], &taken[..5], depth, holds);
        stopped(client, &mut engine, session, None);
        assert_eq!(left_over(&machine, depth), [0; 7], "{name}");
    }
}

fn refused(machine: &SimMachine, header: &StartHeader, events: &[EventRequest]) -> (ErrorCode, [u64; 2]) {
    let mut engine = engine(machine);
    let client = Client::open(&mut engine, 1, 10);
    let answer = client.start_with(&mut engine, *header, events).header();
    (ErrorCode::from_number(answer.cause).unwrap_or(ErrorCode::None), answer.detail)
}

#[test]
fn a_processor_without_them_is_refused_with_the_reason() {
    for (name, format, filter, feature) in [
        ("core2-e5200", 0, USER, 0),
        ("k10-thuban", 0, USER, 0),
        ("zen3-5950x", 0, USER, 0),
        ("milan-7713", 0, USER, 1),
        ("zen-1800x", 0, USER, 0),
        (WITHOUT_FREEZE, 0, BOTH, 3),
        ("nehalem-920", 1, last_branches::USER | last_branches::RETURN, 4),
    ] {
        let machine = machine(name, format, 1);
        assert_eq!(
            refused(&machine, &header(filter), &[sampled()]),
            (ErrorCode::NoLastBranches, [feature, 0]),
            "{name}"
        );
        assert_eq!(refused(&machine, &header(0), &[sampled()]).0, ErrorCode::None, "{name}: without them");
    }
}

/// A hypervisor that keeps what is written to the registers and records nothing.
#[test]
fn records_that_record_nothing_are_refused() {
    for (name, format, enabling, bit) in
        [("skylake-6600k", 3, 0x1D9, 0), ("sapphire-rapids-2475x", 4, 0x14CE, 0), ("zen4-7700x", 0, 0xC000_010F, 6)]
    {
        let machine = machine(name, format, 1);
        machine.processor(0).model().set_quirks([Quirk::Drops { register: enabling, bits: 1 << bit }]);
        let (cause, _) = refused(&machine, &header(USER), &[sampled()]);
        assert!([ErrorCode::NoLastBranches, ErrorCode::RegisterFault].contains(&cause), "{name}: {cause:?}");
    }
}

#[test]
fn a_register_that_faults_refuses_the_session_and_no_interrupt_reads_it() {
    for (name, format, msr) in [
        ("skylake-6600k", 3, 0x69F),
        ("skylake-6600k", 3, 0x1C8),
        ("sapphire-rapids-2475x", 4, 0x14CF),
        ("zen4-7700x", 0, 0xC001_0311),
    ] {
        let machine = machine(name, format, 1);
        machine.processor(0).model().set_faulting(FaultingAccess::without(msr));
        assert_eq!(refused(&machine, &header(USER), &[sampled()]).0, ErrorCode::RegisterFault, "{name}");
    }
}

#[test]
fn registers_that_another_program_uses_are_refused_with_what_shows_it_and_stay() {
    for (name, format, msr, value) in [
        ("skylake-6600k", 3, 0x1D9, 1),
        ("skylake-6600k", 3, 0x1D9, 0x800),
        ("skylake-6600k", 3, 0x1D9, 0xC0),
        ("skylake-6600k", 3, 0x1C8, 4),
        ("sapphire-rapids-2475x", 4, 0x14CE, 5),
        ("zen4-7700x", 0, 0xC000_010F, 0x40),
        ("zen4-7700x", 0, 0xC000_010E, 1),
    ] {
        let machine = machine(name, format, 1);
        machine.processor(0).model().wrmsr(msr, value).unwrap();
        let expected = (ErrorCode::LastBranchesInUse, [msr.into(), value]);
        assert_eq!(refused(&machine, &header(USER), &[sampled()]), expected, "{name}");
        assert_eq!(machine.processor(0).model().rdmsr(msr), Ok(value), "{name}");
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let forced = StartHeader { flags: flags::FORCE, ..header(USER) };
        let session = started(client, &mut engine, &forced, &[sampled()]);
        stopped(client, &mut engine, session, None);
        assert_eq!(machine.processor(0).model().rdmsr(msr), Ok(value), "{name}: put back");
    }
}

#[test]
fn one_session_at_a_time_has_them() {
    let machine = machine("skylake-6600k", 3, 1);
    let (mut engine, client, first) = recording(&machine, USER);
    let second = client.start_with(&mut engine, header(USER), &[sampled()]).header();
    assert_eq!((second.cause, second.detail[0]), (ErrorCode::LastBranchesTaken as u32, first));
    let other = started(client, &mut engine, &header(0), &[sampled()]);
    sample(&machine, &engine, &[user(1)]);
    assert_eq!(by_sample(&fetched(client, &mut engine, other)), [vec![]], "the other session has samples alone");
    assert_eq!(by_sample(&fetched(client, &mut engine, first))[0].len(), 1);
    stopped(client, &mut engine, first, None);
    started(client, &mut engine, &header(USER), &[sampled()]);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let machine = machine("skylake-6600k", 3, 1);
    let counted = EventRequest { interval: 0, ..sampled() };
    let precise = EventRequest { modes: modes::USER | modes::PRECISE, ..sampled() };
    let traced = EventRequest { event: Event::of(BRANCHES), modes: modes::USER, interval: 64, ..EventRequest::EMPTY };
    for (filter, events) in [
        (last_branches::USER, vec![sampled()]),
        (last_branches::ANY, vec![sampled()]),
        (1 << 10 | USER, vec![sampled()]),
        (1 << 31 | USER, vec![sampled()]),
        (USER, vec![counted]),
        (USER, vec![precise]),
        (USER, vec![sampled(), traced]),
    ] {
        let ring = if events[0].interval == 0 { 0 } else { 4096 };
        let budget = if ring == 0 { 0 } else { 900 };
        let header = StartHeader { ring, budget, ..header(filter) };
        assert_eq!(refused(&machine, &header, &events).0, ErrorCode::BadFlags, "{filter:#x}");
    }
}

/// A debugger's thread, or a tool that ends its own session, clears the bit that lets branches be recorded.
#[test]
fn a_recording_that_another_program_ended_goes_on_from_the_next_tick_and_the_count_is_marked() {
    for (name, format, register, value) in [("skylake-6600k", 3, 0x1D9, 0), ("zen4-7700x", 0, 0xC000_010F, 0)] {
        let machine = machine(name, format, 1);
        let (mut engine, client, session) = recording(&machine, USER);
        let kept = machine.processor(0).model().rdmsr(register).unwrap() & 1 << 14; // FREEZE_WHILE_SMM
        machine.processor(0).model().wrmsr(register, value | kept).unwrap();
        sample(&machine, &engine, &[user(1)]);
        machine.tick_sampling(&engine, 0);
        sample(&machine, &engine, &[user(2)]);
        let counts = stopped(client, &mut engine, session, None);
        let stacks = by_sample(&fetched(client, &mut engine, session));
        assert_eq!(stacks[0], [], "{name}: nothing was recorded");
        assert_eq!(stacks[1].iter().map(|branch| branch.from).collect::<Vec<_>>(), [user(2).from], "{name}");
        assert_eq!(counts[0].disturbed_register, register, "{name}");
    }
}

/// What another program records for itself is not shown as the session's, and stays as it is.
#[test]
fn a_recording_that_another_program_took_over_is_left_to_it() {
    for (name, format, select, value) in [
        ("skylake-6600k", 3, 0x1C8, 4),
        ("sapphire-rapids-2475x", 4, 0x14CE, 0x1_0005),
        ("zen4-7700x", 0, 0xC000_010E, 4),
    ] {
        let machine = machine(name, format, 1);
        let (mut engine, client, session) = recording(&machine, USER);
        machine.processor(0).model().wrmsr(select, value).unwrap();
        machine.tick_sampling(&engine, 0);
        sample(&machine, &engine, &[user(1), user(6)]);
        let before = machine.processor(0).model().accesses();
        let counts = stopped(client, &mut engine, session, None);
        assert!(machine.processor(0).model().accesses().wrmsr - before.wrmsr < 16, "{name}: entries were emptied");
        assert_eq!(by_sample(&fetched(client, &mut engine, session)), [vec![]], "{name}");
        assert_eq!((counts[0].disturbed_register, counts[0].disturbed_found), (select, value), "{name}");
        assert_eq!(machine.processor(0).model().rdmsr(select), Ok(value), "{name}");
    }
}

/// Accesses of an interrupt with branches, beyond those of one without them, as the table of `pmu::last_branches` says:
/// (name, format, filter, branches, RDMSR, WRMSR). Linux reads every entry, whether it is in use or not.
const BUDGET: [(&str, u8, u32, u32, [u64; 2]); 12] = [
    ("haswell-4710mq", 2, USER, 20, [1 + 2 * 16, 0]),
    ("haswell-4710mq", 2, USER, 5, [1 + 2 * 5 + 1, 0]),
    ("haswell-4710mq", 2, BOTH, 20, [1 + 2 * 16 + 1, 1]),
    ("skylake-6600k", 3, USER, 40, [1 + 3 * 32, 0]),
    ("skylake-6600k", 3, USER, 0, [1 + 1, 0]),
    ("skylake-6600k", 3, BOTH, 40, [1 + 3 * 32, 1]),
    ("sapphire-rapids-2475x", 4, USER, 40, [3 * 32, 0]),
    ("sapphire-rapids-2475x", 4, USER, 5, [3 * 5 + 1, 0]),
    ("sapphire-rapids-2475x", 4, BOTH, 40, [3 * 32, 1]),
    ("zen4-7700x", 0, USER, 20, [2 * 16, 0]),
    ("zen4-7700x", 0, USER, 5, [2 * 5 + 1, 0]),
    ("zen5-9800x3d", 0, BOTH, 20, [2 * 16, 1]),
];

#[test]
fn an_interrupt_accesses_the_records_as_often_as_is_documented() {
    for (name, format, filter, branches, expected) in BUDGET {
        let accesses = |last_branches| {
            let machine = machine(name, format, 1);
            let (engine, ..) = recording(&machine, last_branches);
            (0..branches).for_each(|number| machine.processor(0).model().take_branch(&user(number)));
            let before = machine.processor(0).model().accesses();
            sample(&machine, &engine, &[]);
            let after = machine.processor(0).model().accesses();
            [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr]
        };
        let ([with_reads, with_writes], [reads, writes]) = (accesses(filter), accesses(0));
        assert_eq!([with_reads - reads, with_writes - writes], expected, "{name}, filter {filter:#x}");
    }
}

/// What can happen while a session records.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Code takes so many branches.
    Branches(u8),
    /// The counter overflows, and its interrupt is served.
    Sample,
    /// A deep sleep of the core.
    Lose,
    /// A sleep of the machine.
    Sleep,
    Tick,
    /// Another session starts to sample the same event, or stops.
    Other,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..50_u8).prop_map(Step::Branches),
        5 => Just(Step::Sample),
        1 => Just(Step::Lose),
        1 => Just(Step::Sleep),
        1 => Just(Step::Tick),
        1 => Just(Step::Other),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every branch of a sample is one that was executed, in order, and none that was executed since the records were
    /// emptied and has room is missing, whatever happens between.
    #[test]
    fn whatever_happens_a_sample_has_the_branches_that_were_executed_before_it(
        kind in 0..KINDS.len(), mode in 0..3_usize, filter in prop::sample::select(vec![USER, BOTH]),
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let (name, format, depth, holds) = KINDS[kind];
        let filter = if name == WITHOUT_FREEZE { USER } else { filter };
        let machine = machine(name, format, 1);
        let modes = [InterruptMode::Edge, InterruptMode::RaisedOnUnmask, InterruptMode::LostWhileMasked];
        machine.processor(0).model().set_interrupt_mode(modes[mode]);
        let (mut engine, client, session) = recording(&machine, filter);
        let (mut taken, mut expected, mut other, mut number) = (Vec::new(), Vec::new(), None, 0);
        for step in steps {
            match step {
                Step::Branches(count) => {
                    for _ in 0..count {
                        let branch = user(number);
                        number += 1;
                        machine.processor(0).model().take_branch(&branch);
                        taken.push(branch);
                    }
                }
                Step::Sample => {
                    sample(&machine, &engine, &[]);
                    expected.push(taken.clone());
                }
                Step::Lose => {
                    machine.processor(0).model().lose_last_branches();
                    taken.clear();
                }
                Step::Sleep => {
                    machine.fall_asleep(&engine);
                    machine.wake(&engine);
                    taken.clear();
                }
                Step::Tick => machine.tick_sampling(&engine, 0),
                Step::Other => match other.take() {
                    Some(session) => drop(stopped(client, &mut engine, session, None)),
                    None => other = Some(started(client, &mut engine, &header(0), &[sampled()])),
                },
            }
        }
        stopped(client, &mut engine, session, None);
        let stacks = by_sample(&fetched(client, &mut engine, session));
        prop_assert_eq!(stacks.len(), expected.len());
        for (stack, taken) in stacks.iter().zip(&expected) {
            check(name, stack, taken, depth, holds);
        }
        if other.is_none() {
            prop_assert_eq!(left_over(&machine, depth), [0; 7]);
        }
    }
}

/// What is recorded between the change of a filter and the next tick is another program's.
#[test]
fn a_stack_ends_at_a_branch_that_its_filter_excludes() {
    let machine = machine("skylake-6600k", 3, 1);
    let (mut engine, client, session) = recording(&machine, USER);
    machine.processor(0).model().wrmsr(0x1C8, 0).unwrap();
    let kernel = TakenBranch { from: KERNEL, to: KERNEL + 0x100, ..user(0) };
    sample(&machine, &engine, &[user(1), kernel, user(2)]);
    stopped(client, &mut engine, session, None);
    let stacks = by_sample(&fetched(client, &mut engine, session));
    assert_eq!(stacks, [vec![]], "the newest are those of the interrupt, which the other filter lets through");
    assert_eq!(machine.processor(0).model().rdmsr(0x1C8), Ok(0), "a stop leaves the other's filter");
    assert_eq!(machine.processor(0).model().rdmsr(0x1D9).unwrap() & 1, 1, "and its recording");
}

/// Firmware leaves a bit that was not tried beside those of the recording.
#[test]
fn after_a_wake_with_other_controls_nothing_is_written_and_samples_have_no_branches() {
    const BTF: u64 = 2;
    let machine = machine("skylake-6600k", 3, 1);
    machine.processor(0).model().set_firmware([(0x1D9, BTF)]);
    let (mut engine, client, session) = recording(&machine, USER);
    machine.fall_asleep(&engine);
    machine.wake(&engine);
    sample(&machine, &engine, &[user(1)]);
    assert_eq!(machine.processor(0).model().rdmsr(0x1D9), Ok(BTF));
    assert_eq!(machine.processor(0).model().rdmsr(0x1C8), Ok(0));
    stopped(client, &mut engine, session, None);
    assert_eq!(by_sample(&fetched(client, &mut engine, session)), [vec![]]);
}

/// The overflow of another session's event is no sample of this one, and has no branches here.
#[test]
fn branches_come_only_behind_samples_of_their_session() {
    let machine = machine("skylake-6600k", 3, 1);
    let (mut engine, client, session) = recording(&machine, USER);
    let branches = EventRequest { event: Event::of(6), interval: 4_096, ..sampled() };
    let other = started(client, &mut engine, &header(0), &[branches]);
    machine.processor(0).model().take_branch(&user(1));
    machine.run(0, Mode::User, &|_| 4_096); // the other event alone overflows
    machine.deliver(&engine, 0, &interrupted());
    stopped(client, &mut engine, session, None);
    assert_eq!(fetched(client, &mut engine, session), []);
    assert_eq!(by_sample(&fetched(client, &mut engine, other)).len(), 1);
}

/// A session that was stopped keeps its samples for its client. Its end is no end of another one's recording.
#[test]
fn a_session_that_was_stopped_takes_nothing_from_the_next_one() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let stopped_session = started(first, &mut engine, &header(USER), &[sampled()]);
    sample(&machine, &engine, &[user(1)]);
    stopped(first, &mut engine, stopped_session, None);
    let session = started(second, &mut engine, &header(USER), &[sampled()]);
    first.stop(&mut engine, stopped_session, None);
    engine.close(first.0);
    sample(&machine, &engine, &[user(2)]);
    let stacks = by_sample(&fetched(second, &mut engine, session));
    assert_eq!(stacks[0].iter().map(|branch| branch.from).collect::<Vec<_>>(), [user(2).from]);
}

/// Version 2 and 3 clear the enabling bit with the overflow. Before the interrupt is served that is no other program.
#[test]
fn a_tick_between_an_overflow_and_its_interrupt_finds_nothing_disturbed() {
    for (name, format, depth, holds) in KINDS {
        for filter in filters(name) {
            let machine = machine(name, format, 1);
            let (mut engine, client, session) = recording(&machine, filter);
            let taken: Vec<TakenBranch> = (0..40).map(user).collect();
            take(&machine, &taken);
            machine.run(0, Mode::User, &|_| INTERVAL.into());
            machine.tick_sampling(&engine, 0);
            machine.deliver(&engine, 0, &interrupted());
            let counts = stopped(client, &mut engine, session, None);
            let stacks = by_sample(&fetched(client, &mut engine, session));
            assert_eq!((stacks.len(), counts[0].disturbed_register), (1, 0), "{name}, filter {filter:#x}");
            check(name, &stacks[0], &taken, depth, holds);
        }
    }
}

/// The overflow whose interrupt was lost has frozen the records. They are not those of the next sample.
#[test]
fn after_a_lost_interrupt_a_sample_has_its_own_branches() {
    for (name, format, depth, holds) in KINDS {
        for filter in filters(name) {
            let machine = machine(name, format, 1);
            machine.processor(0).model().set_interrupt_mode(InterruptMode::LostWhileMasked);
            let (mut engine, client, session) = recording(&machine, filter);
            let open = machine.processor(0).model().lvt();
            machine.processor(0).model().set_lvt(open | 1 << 16);
            let taken: Vec<TakenBranch> = (0..80).map(user).collect();
            take(&machine, &taken[..40]);
            machine.run(0, Mode::User, &|_| INTERVAL.into());
            (0..3).for_each(|_| machine.tick_sampling(&engine, 0));
            sample(&machine, &engine, &taken[40..]);
            stopped(client, &mut engine, session, None);
            let stacks = by_sample(&fetched(client, &mut engine, session));
            assert_eq!(stacks.len(), 1, "{name}, filter {filter:#x}: the first sample is lost");
            check(name, &stacks[0], &taken, depth, holds);
        }
    }
}

/// Another program writes its own value to a control register. What the recording has set elsewhere is taken back.
#[test]
fn a_recording_that_cannot_go_on_beside_another_program_leaves_nothing_on() {
    const BTF: u64 = 2;
    for (name, format) in [("zen5-9800x3d", 0), ("sapphire-rapids-2475x", 4), ("skylake-6600k", 3)] {
        let machine = machine(name, format, 1);
        let (mut engine, client, session) = recording(&machine, BOTH);
        machine.processor(0).model().wrmsr(0x1D9, BTF).unwrap();
        machine.tick_sampling(&engine, 0);
        sample(&machine, &engine, &[user(1)]);
        stopped(client, &mut engine, session, None);
        assert_eq!(by_sample(&fetched(client, &mut engine, session)), [vec![]], "{name}");
        assert_eq!(left_over(&machine, 16), [0; 7], "{name}");
        assert_eq!(machine.processor(0).model().rdmsr(0x1D9).unwrap() & !(1 << 14), BTF, "{name}");
    }
}
