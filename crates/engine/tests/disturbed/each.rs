//! Each kind of disturbance.

use engine::Engine;
use model::{CounterId, Mode, Quirk};
use protocol::{CountRecord, EventRequest, modes};
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, control_registers, engine, event, read, run, started, stopped, write};

const STATUS_SET: u32 = 0x391;
const CTR_FRZ: u64 = 1 << 59;
const GLOBAL_CTRL: u32 = 0x38F;
const FIXED_CTR_CTRL: u32 = 0x38D;
const DEBUGCTL: u32 = 0x1D9;
const FREEZE_PERFMON: u64 = 1 << 12;
const FREEZE_WHILE_SMM: u64 = 1 << 14;

fn session<'a>(machine: &'a SimMachine, sources: &[u64], interval: u32) -> (Engine<&'a SimMachine>, Client, u64) {
    let mut engine = engine(machine);
    let client = Client::open(&mut engine, 1, 10);
    let events: Vec<_> = sources.iter().map(|source| event(*source, interval)).collect();
    let session = started(client, &mut engine, &events);
    (engine, client, session)
}

/// Returns the register of each mark.
fn registers(counts: &[CountRecord]) -> Vec<u32> {
    counts.iter().map(|count| count.disturbed_register).collect()
}

#[test]
fn a_rewritten_control_of_fixed_counters_is_reported_with_its_value_and_its_time() {
    let machine = SimMachine::named("skylake-6600k", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let both = [2, 6].map(|source| EventRequest { modes: modes::BOTH, ..event(source, 0) });
    let session = started(client, &mut engine, &both);
    run(&machine, &engine, 0, Mode::User, 100);
    machine.pass(5_000_000);
    write(&machine, 1, 0x38D, 0x2);
    engine.accumulate_counts();
    let counts = stopped(client, &mut engine, session);
    let marks: Vec<_> = counts.iter().map(|one| (one.processor, one.event.source, one.disturbed_register)).collect();
    assert_eq!(marks, [(0, 2, 0), (0, 6, 0), (1, 2, 0x38D), (1, 6, 0)]);
    let [.., disturbed, _] = counts[..] else { panic!("{counts:?}") };
    assert_eq!((disturbed.disturbed_found, disturbed.disturbed_expected), (0x2, 0x3));
    assert_eq!(disturbed.disturbed_at, 5_000_000);
    assert_eq!(counts[0].count, 100 + machine.between(0, counts[0].counter));
}

#[test]
fn a_session_that_nobody_disturbs_is_not_marked_and_pays_only_the_reads_of_the_stop() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, session) = session(&machine, &[2], 0);
        run(&machine, &engine, 0, Mode::User, 100);
        let cost = |work: &mut dyn FnMut()| {
            let before = machine.processor(0).model().accesses();
            work();
            let after = machine.processor(0).model().accesses();
            [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr]
        };
        // The start of another session compares the registers of the first, because it writes those that both share.
        let mut second = 0;
        let [start, _] = cost(&mut || second = started(client, &mut engine, &[event(6, 0)]));
        let [stop, _] = cost(&mut || assert_eq!(registers(&stopped(client, &mut engine, second)), [0], "{name}"));
        let (one, two) = match name {
            // The select registers. On P6 the first one has the flag for both counters. The Pentium has one register
            // for both, and the count of the session that stops is a read as well.
            "amd-legacy" | "zen3-5950x" | "intel-v1" | "p6-coppermine" | "pentium-p55c" => (1, 2),
            // CCCR and ESCR.
            _ if name.starts_with("netburst") => (2, 4),
            // The global control register and the status.
            _ if name.starts_with("zen") => (3, 4),
            // The control register of fixed counters or a select register, the global control register, IA32_DEBUGCTL;
            // then the select register of the second event.
            "core2-6420" | "haswell-4710mq" => (3, 4),
            // A start on Nehalem also reads a register for erratum AAK100.
            "intel-v2" => (4, 4),
            // And the status, from version 4 on.
            _ => (4, 5),
        };
        // What the start writes is tried under a guard: each register is read before and after.
        let tried = match name {
            // ESCR and CCCR, and the counter.
            _ if name.starts_with("netburst") => 5,
            // The register has bits of the other counter as well.
            "p6-coppermine" | "pentium-p55c" => 3,
            _ => 2,
        };
        assert_eq!((start, stop), (one + tried, two), "{name}");
        assert_eq!(registers(&stopped(client, &mut engine, session)), [0], "{name}");
    }
}

#[test]
fn counters_that_another_program_stopped_or_froze_count_again_on_processors_that_only_count() {
    for name in IDENTITIES {
        for register in control_registers(name).into_iter().filter(|register| *register != DEBUGCTL) {
            let machine = SimMachine::named(name, 1);
            let (mut engine, client, session) = session(&machine, &[2, 6], 0);
            let value = if matches!(register, STATUS_SET | 0xC000_0303) { CTR_FRZ } else { 0 };
            if !machine.processor(0).write_foreign(register, value) {
                continue; // the processor does not have it
            }
            let name = format!("{name}, {register:#x}");
            engine.accumulate_counts();
            let before = client.read(&mut engine, session);
            run(&machine, &engine, 0, Mode::User, 1_000);
            let counts = stopped(client, &mut engine, session);
            for (before, count) in before.iter().zip(&counts) {
                assert_eq!(count.count, before.count + 1_000, "{name}: {count:?}");
            }
        }
    }
}

#[test]
fn a_session_that_starts_beside_counters_that_another_program_stopped_counts_right() {
    for name in IDENTITIES.into_iter().chain(["nehalem-920"]) {
        for register in control_registers(name).into_iter().filter(|register| *register != DEBUGCTL) {
            let machine = SimMachine::named(name, 1);
            let (mut engine, client, first) = session(&machine, &[2], 0);
            run(&machine, &engine, 0, Mode::User, 100);
            let value = if matches!(register, STATUS_SET | 0xC000_0303) { CTR_FRZ } else { 0 };
            if !machine.processor(0).write_foreign(register, value) {
                continue; // the processor does not have it
            }
            run(&machine, &engine, 0, Mode::User, 100);
            let second = started(client, &mut engine, &[event(6, 0)]);
            run(&machine, &engine, 0, Mode::User, 1_000);
            let name = format!("{name}, {register:#x}");
            let counts = stopped(client, &mut engine, second);
            assert_eq!((counts[0].count, registers(&counts)), (1_000, vec![0]), "{name}");
            let counts = stopped(client, &mut engine, first);
            assert!([1_100, 1_200].contains(&counts[0].count), "{name}: it counts on, {counts:?}");
            assert!(counts[0].count == 1_200 || registers(&counts) != [0], "{name}: {counts:?}");
        }
    }
}

#[test]
fn counters_that_another_program_stopped_are_marked_when_a_throttled_one_is_resumed() {
    const TICK: u64 = 100_000;
    for (name, global) in [("core2-6420", GLOBAL_CTRL), ("skylake-6600k", GLOBAL_CTRL), ("zen4-7700x", 0xC000_0301)] {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, counted) = session(&machine, &[6], 0);
        let sampled = started(client, &mut engine, &[event(2, 5_000)]);
        // Each interrupt takes a whole tick.
        machine.set_pace(TICK);
        (0..3).for_each(|_| run(&machine, &engine, 0, Mode::User, 5_000));
        machine.set_pace(0);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 1, "{name}: the other one is throttled");
        write(&machine, 0, global, 0);
        run(&machine, &engine, 0, Mode::User, 100);
        machine.tick_sampling(&engine, 0);
        run(&machine, &engine, 0, Mode::User, 100);
        assert_eq!(registers(&stopped(client, &mut engine, counted)), [global], "{name}");
        assert_eq!(registers(&stopped(client, &mut engine, sampled)), [0], "{name}: it did not run meanwhile");
    }
}

#[test]
fn registers_lost_in_deep_idle_mark_every_count_and_are_written_again() {
    for name in IDENTITIES {
        for interval in [0, 5_000] {
            if interval > 0 && name == "pentium-p55c" {
                continue; // its counters do not interrupt
            }
            let machine = SimMachine::named(name, 1);
            let (mut engine, client, session) = session(&machine, &[2, 6], interval);
            run(&machine, &engine, 0, Mode::User, 100);
            machine.processor(0).model().lose_power();
            machine.processor(0).model().set_lvt(0xFE); // the HAL's power management restores it
            if interval > 0 {
                machine.tick_sampling(&engine, 0);
            } else {
                engine.accumulate_counts();
            }
            machine.processor(0).model().clear_ledger();
            for _ in 0..10 {
                run(&machine, &engine, 0, Mode::User, 5_000);
            }
            let counts = stopped(client, &mut engine, session);
            assert!(registers(&counts).iter().all(|register| *register != 0), "{name}: {counts:?}");
            assert!(counts.iter().all(|count| count.count >= 50_000), "{name}: {counts:?}");
            assert!(interval == 0 || counts.iter().all(|count| count.samples == 10), "{name}: {counts:?}");
        }
    }
}

#[test]
fn a_counter_that_went_backwards_is_marked_and_adds_nothing() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, session) = session(&machine, &[2], 0);
        run(&machine, &engine, 0, Mode::User, 1_000);
        let before = client.read(&mut engine, session);
        assert_eq!((before[0].count, before[0].disturbed_register), (1_000, 0), "{name}");
        let register = match name {
            "amd-legacy" => 0xC001_0004,
            _ if name.starts_with("zen") => 0xC001_0201,
            "netburst-cedarmill" => 0x300 + before[0].counter,
            // The first thread of a core has every other pair of counters.
            "netburst-irwindale" => 0x300 + [0, 1, 4, 5, 8, 9, 12, 13, 16][before[0].counter as usize],
            "pentium-p55c" => 0x12 + before[0].counter,
            _ => match machine.counter(0, u8::try_from(before[0].counter).unwrap()) {
                CounterId::General(number) => 0xC1 + u32::from(number),
                CounterId::Fixed(number) => 0x309 + u32::from(number),
                CounterId::Metric(_) => 0x329,
            },
        };
        write(&machine, 0, register, 10);
        run(&machine, &engine, 0, Mode::User, 7);
        let counts = stopped(client, &mut engine, session);
        assert_eq!(counts[0].count, 1_000, "{name}");
        let mark = (counts[0].disturbed_found, counts[0].disturbed_expected);
        assert_eq!(mark, (17, 1_000), "{name}: {counts:?}");
    }
}

#[test]
fn counters_of_other_programs_are_not_touched() {
    // The counter of slots, which no source of the driver uses, and a general counter that no session has.
    let machine = SimMachine::named("sapphire-rapids-2475x", 1);
    let (mut engine, client, session) = session(&machine, &[2, 6], 5_000);
    let (select, theirs) = (0x18B, 1 << 22 | 0x3_003C);
    write(&machine, 0, select, theirs);
    write(&machine, 0, FIXED_CTR_CTRL, read(&machine, 0, FIXED_CTR_CTRL) | 0x3000);
    write(&machine, 0, GLOBAL_CTRL, read(&machine, 0, GLOBAL_CTRL) | 1 << 35);
    let is_theirs = || {
        read(&machine, 0, select) == theirs
            && read(&machine, 0, FIXED_CTR_CTRL) & 0xF000 == 0x3000
            && read(&machine, 0, GLOBAL_CTRL) & 1 << 35 != 0
    };
    for _ in 0..3 {
        machine.tick_sampling(&engine, 0);
        run(&machine, &engine, 0, Mode::User, 5_000);
        assert!(is_theirs());
    }
    // Nor by the repair of what is the driver's.
    write(&machine, 0, FIXED_CTR_CTRL, read(&machine, 0, FIXED_CTR_CTRL) & !0xF);
    machine.tick_sampling(&engine, 0);
    assert!(is_theirs());
    let counts = stopped(client, &mut engine, session);
    assert_eq!(registers(&counts), [FIXED_CTR_CTRL, 0], "{counts:?}");
}

#[test]
fn a_session_that_shares_a_counter_later_is_not_marked_for_what_was_before() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let (mut engine, client, first) = session(&machine, &[2], 5_000);
    write(&machine, 0, GLOBAL_CTRL, 0);
    machine.tick_sampling(&engine, 0);
    let second = started(client, &mut engine, &[event(2, 5_000)]);
    run(&machine, &engine, 0, Mode::User, 20_000);
    assert_eq!(registers(&stopped(client, &mut engine, second)), [0]);
    let third = started(client, &mut engine, &[event(2, 5_000)]);
    write(&machine, 0, FIXED_CTR_CTRL, 0);
    machine.tick_sampling(&engine, 0);
    assert_eq!(registers(&stopped(client, &mut engine, third)), [FIXED_CTR_CTRL]);
    assert_eq!(registers(&stopped(client, &mut engine, first)), [GLOBAL_CTRL], "what came first");
}

#[test]
fn an_interrupt_finds_a_change_before_its_own_writes_remove_the_traces() {
    for (name, control) in [("skylake-6600k", GLOBAL_CTRL), ("zen4-7700x", 0xC000_0301)] {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, session) = session(&machine, &[2, 6], 5_000);
        // One of two counters is stopped. The other goes on to interrupt.
        let enabled = read(&machine, 0, control);
        write(&machine, 0, control, enabled & (enabled - 1));
        run(&machine, &engine, 0, Mode::User, 5_000);
        assert_eq!(read(&machine, 0, control), enabled, "{name}: both count again");
        let counts = stopped(client, &mut engine, session);
        let marked: Vec<_> = counts.iter().map(|count| (count.count == 5_000, count.disturbed_register)).collect();
        let stopped_one = (false, control);
        assert!(marked.contains(&stopped_one) && marked.contains(&(true, 0)), "{name}: {counts:?}");
    }
}

#[test]
fn a_freeze_on_interrupts_marks_every_count_and_is_left_to_the_program_that_wants_it() {
    for name in ["haswell-4710mq", "skylake-6600k", "alder-lake-12900k"] {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, session) = session(&machine, &[2, 6], 5_000);
        write(&machine, 0, DEBUGCTL, FREEZE_PERFMON | FREEZE_WHILE_SMM);
        machine.run(0, Mode::User, &|_| 5_000);
        machine.run(0, Mode::User, &|_| 300); // frozen: not counted
        super::scene::deliver(&machine, &engine, 0);
        let counts = stopped(client, &mut engine, session);
        assert!(counts.iter().all(|count| count.disturbed_register != 0), "{name}: {counts:?}");
        assert_eq!(read(&machine, 0, DEBUGCTL) & FREEZE_PERFMON, FREEZE_PERFMON, "{name}");
    }
}

#[test]
fn a_lost_bit_that_excludes_the_firmware_is_no_other_program_and_info_says_it() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let (mut engine, client, session) = session(&machine, &[2], 0);
    assert_eq!(read(&machine, 0, DEBUGCTL), FREEZE_WHILE_SMM);
    assert_eq!(smm(client, &mut engine), EXCLUDED);
    // Windows restores the register for a thread with branch tracing in DR7.
    write(&machine, 0, DEBUGCTL, 1);
    machine.processor(0).model().run_in_smm(&|_| 1_000);
    let counts = stopped(client, &mut engine, session);
    assert_eq!((counts[0].disturbed_register, counts[0].count), (0, 1_000));
    assert_eq!(smm(client, &mut engine), INCLUDED);
    assert_eq!(read(&machine, 0, DEBUGCTL), 1, "the rest stays as it is");
    let again = client.started(&mut engine, 0, &[2]);
    assert_eq!((smm(client, &mut engine), read(&machine, 0, DEBUGCTL)), (EXCLUDED, FREEZE_WHILE_SMM | 1));
    client.stop(&mut engine, again, None);
}

/// `InfoReply::smm`.
const EXCLUDED: u32 = 1;
const INCLUDED: u32 = 2;

fn smm(client: Client, engine: &mut Engine<&SimMachine>) -> u32 {
    let answer = client.ask(engine, protocol::Code::Info, &[], size_of::<protocol::InfoReply>());
    zerocopy::FromBytes::read_from_bytes(&answer.bytes).map(|info: protocol::InfoReply| info.smm).unwrap()
}

#[test]
fn a_bit_that_excludes_the_firmware_and_does_not_stick_marks_no_count() {
    for quirk in [
        Quirk::Drops { register: DEBUGCTL, bits: FREEZE_WHILE_SMM },
        Quirk::Faults { register: DEBUGCTL, bits: FREEZE_WHILE_SMM },
        Quirk::Ignores { register: DEBUGCTL },
    ] {
        let machine = SimMachine::named("skylake-6600k", 1);
        machine.processor(0).model().set_quirks([quirk]);
        let (mut engine, client, session) = session(&machine, &[2], 0);
        run(&machine, &engine, 0, Mode::User, 1_000);
        engine.accumulate_counts();
        let counts = stopped(client, &mut engine, session);
        assert_eq!((counts[0].disturbed_register, counts[0].count), (0, 1_000), "{quirk:x?}");
        assert_eq!(smm(client, &mut engine), INCLUDED, "{quirk:x?}");
    }
}

#[test]
fn a_change_of_a_counter_that_is_merged_into_another_marks_the_event() {
    // FLOPs of Zen take two counters: the odd one holds the upper bits.
    let flops = pmu::source::RawEvent::new().with_event(3).with_umask(0xFF).source().0;
    for (name, register) in [("zen3-5950x", 0xC001_0202), ("zen4-7700x", 0xC001_0202), ("zen4-7700x", 0xC000_0301)] {
        let machine = SimMachine::named(name, 1);
        let (mut engine, client, session) = session(&machine, &[flops], 0);
        assert_eq!(registers(&client.read(&mut engine, session)), [0], "{name}");
        let upper = if register == 0xC000_0301 { read(&machine, 0, register) & !2 } else { 0 };
        assert_ne!(read(&machine, 0, register), upper, "{name}, {register:#x}");
        write(&machine, 0, register, upper);
        engine.accumulate_counts();
        assert_ne!(read(&machine, 0, register), upper, "{name}, {register:#x}: written again");
        assert_eq!(registers(&stopped(client, &mut engine, session)), [register], "{name}");
    }
}
