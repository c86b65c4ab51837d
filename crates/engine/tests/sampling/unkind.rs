//! Processors, hypervisors and other programs that stop counters or interrupts of a session.

use engine::Engine;
use model::{InterruptMode, Mode};
use simulation::{Client, SimMachine};

use super::scene::{
    SHORT, engine, event, fetched, interrupted, is_left_clean, is_sample, machine, on, overflows, run, started, stopped,
};

const DEBUGCTL: u32 = 0x1D9;
const FREEZE_LBRS: u64 = 1 << 11;
const FREEZE_PERFMON: u64 = 1 << 12;
const FREEZE_WHILE_SMM: u64 = 1 << 14;
const STATUS: u32 = 0x38E;
const GLOBAL_CTRL: u32 = 0x38F;
const STATUS_SET: u32 = 0x391;
const LBR_FRZ: u64 = 1 << 58;
const CTR_FRZ: u64 = 1 << 59;

/// Identities with IA32_DEBUGCTL\[12\]: versions 3, 4 and 5.
const FREEZING: [&str; 3] = ["haswell-4710mq", "skylake-6600k", "alder-lake-12900k"];

fn machines_of(names: &'static [&str]) -> impl Iterator<Item = (String, SimMachine)> {
    let each = names.iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode)));
    each.map(|(name, mode)| (format!("{name}, {mode:?}"), machine(name, 1, mode)))
}

fn read(machine: &SimMachine, msr: u32) -> u64 {
    machine.processor(0).model().uncounted(|model| model.rdmsr(msr)).unwrap()
}

fn write(machine: &SimMachine, msr: u32, value: u64) {
    assert!(machine.processor(0).write_foreign(msr, value));
}

/// Starts a session with two events.
fn session(engine: &mut Engine<&SimMachine>) -> (Client, u64) {
    let client = Client::open(engine, 1, 10);
    (client, started(client, engine, 64, on(&[]), &[event(2, SHORT), event(6, SHORT)]))
}

/// Runs two ticks and delivers the pending interrupts after each.
fn tick_twice(machine: &SimMachine, engine: &Engine<&SimMachine>) {
    for _ in 0..2 {
        machine.tick_sampling(engine, 0);
        machine.deliver(engine, 0, &interrupted(0));
    }
}

/// Checks that the next overflow becomes a sample, and that the session accounts for every overflow.
fn goes_on(name: &str, machine: &SimMachine, engine: &mut Engine<&SimMachine>, (client, session): (Client, u64)) {
    fetched(client, engine, session);
    run(machine, engine, 0, SHORT.into());
    assert!(fetched(client, engine, session).0.iter().any(is_sample), "{name}: no sample comes any more");
    for count in stopped(client, engine, session, None) {
        let accounted = count.samples + count.lost + count.throttled;
        assert_eq!(accounted, overflows(machine, 0, count.event.source), "{name}, {count:?}");
        assert_eq!(count.count, machine.counted(0, count.counter), "{name}, {count:?}");
    }
    assert!(is_left_clean(machine), "{name}");
}

#[test]
fn a_freeze_that_was_left_on_is_off_during_the_session_and_on_again_behind() {
    for (name, machine) in machines_of(&FREEZING) {
        // Before version 4, the first interrupt ends the recording of another program.
        let is_ended = name.starts_with("haswell");
        let lbr = u64::from(!is_ended);
        let found = FREEZE_LBRS | FREEZE_PERFMON | lbr;
        write(&machine, DEBUGCTL, found);
        if !is_ended {
            write(&machine, STATUS_SET, CTR_FRZ | LBR_FRZ);
        }
        let branches = read(&machine, STATUS) & LBR_FRZ;
        let mut engine = engine(&machine);
        let (client, session) = session(&mut engine);
        // The branch records of another program stay frozen, and go on to be.
        assert_eq!(read(&machine, DEBUGCTL) & (FREEZE_LBRS | FREEZE_PERFMON | 1), FREEZE_LBRS | lbr, "{name}");
        assert_eq!(read(&machine, STATUS), branches, "{name}");
        for _ in 0..3 {
            machine.run(0, Mode::User, &|_| SHORT.into());
            machine.run(0, Mode::User, &|_| 100); // before the interrupt is served
            machine.deliver(&engine, 0, &interrupted(0));
        }
        goes_on(&name, &machine, &mut engine, (client, session));
        assert_eq!(read(&machine, DEBUGCTL), found, "{name}: as it was found");
    }
}

#[test]
fn sampling_goes_on_when_another_program_freezes_counters_on_each_interrupt() {
    for (name, machine) in machines_of(&FREEZING) {
        let mut engine = engine(&machine);
        let (client, session) = session(&mut engine);
        write(&machine, DEBUGCTL, FREEZE_LBRS | FREEZE_PERFMON);
        for round in 1..=3 {
            run(&machine, &engine, 0, SHORT.into());
            assert_eq!(fetched(client, &mut engine, session).0.len(), 2, "{name}: {round}");
        }
        goes_on(&name, &machine, &mut engine, (client, session));
        assert_eq!(read(&machine, DEBUGCTL), FREEZE_LBRS | FREEZE_PERFMON, "{name}: what it wrote last stays");
    }
}

#[test]
fn counters_that_another_program_has_frozen_or_stopped_run_again_after_two_ticks() {
    for (name, machine) in machines_of(&["haswell-4710mq", "skylake-6600k", "alder-lake-12900k", "zen4-7700x"]) {
        for (register, value) in [
            (GLOBAL_CTRL, 0),
            (STATUS_SET, CTR_FRZ),
            (STATUS_SET, CTR_FRZ | LBR_FRZ),
            (0xC000_0301, 0),
            (0xC000_0303, CTR_FRZ),
        ] {
            let mut engine = engine(&machine);
            let (client, session) = session(&mut engine);
            if !machine.processor(0).write_foreign(register, value) {
                stopped(client, &mut engine, session, None);
                continue; // the processor does not have it
            }
            let name = format!("{name}, {register:#x} = {value:#x}");
            assert_eq!(machine.processor(0).model().enabled_counters(), [], "{name}");
            tick_twice(&machine, &engine);
            assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}");
            machine.processor(0).model().clear_ledger();
            goes_on(&name, &machine, &mut engine, (client, session));
            machine.processor(0).model().clear_ledger();
        }
    }
}

#[test]
fn an_entry_that_masks_itself_on_amd_is_unmasked_by_the_handler() {
    for (name, machine) in machines_of(&["amd-legacy", "zen4-7700x", "zen-1800x"]) {
        machine.processor(0).model().set_masked_on_delivery();
        let mut engine = engine(&machine);
        let (client, session) = session(&mut engine);
        for round in 1..=5 {
            run(&machine, &engine, 0, SHORT.into());
            assert_eq!(fetched(client, &mut engine, session).0.len(), 2, "{name}: {round}");
        }
        goes_on(&name, &machine, &mut engine, (client, session));
    }
}

#[test]
fn code_of_the_firmware_in_smm_is_not_counted_where_the_processor_can_tell() {
    for (name, machine) in machines_of(&FREEZING) {
        let mut engine = engine(&machine);
        let (client, session) = session(&mut engine);
        assert_eq!(read(&machine, DEBUGCTL), FREEZE_WHILE_SMM, "{name}");
        machine.run(0, Mode::User, &|_| 100);
        machine.processor(0).model().run_in_smm(&|_| 1_000_000);
        let counts = client.read(&mut engine, session);
        assert!(counts.iter().all(|count| count.count == 100), "{name}: {counts:?}");
        goes_on(&name, &machine, &mut engine, (client, session));
        assert_eq!(read(&machine, DEBUGCTL), 0, "{name}: as it was found");
    }
}
