//! The exact number of accesses of an interrupt with records.

use model::Mode;
use protocol::{Event, modes};
use simulation::Client;

use super::scene::{
    BUFFER, FORMATS, INSTRUCTIONS, INTERVAL, TO_RECORD, branch, branches, engine, header, machine, precise, run,
    started,
};

/// Returns RDMSR, WRMSR and RDPMC accesses since `before`.
fn since(machine: &simulation::SimMachine, before: model::Accesses) -> (u64, u64, u64) {
    let now = machine.processor(0).model().accesses();
    (now.rdmsr - before.rdmsr, now.wrmsr - before.wrmsr, now.rdpmc - before.rdpmc)
}

/// Freezing and unfreezing the counters (2 W), clearing the buffer status (1 W), and the cost of an interrupt without
/// an overflow (2 R, 3 W). Freezing reads the global control register as well (1 R): its write would remove the traces
/// of another program that changed the register. With architectural PEBS the index of the buffer is a register: it is
/// read before the counters are frozen and after it, and written once (2 R, 1 W). Linux reads it once and writes it
/// once, and freezes its counters first in every interrupt (arch/x86/events/intel/ds.c, `intel_pmu_drain_arch_pebs`).
#[test]
fn an_interrupt_of_precise_records_takes_a_read_and_three_writes_more_than_one_without_overflow() {
    for (name, format, _) in FORMATS {
        for batch in [1, 10] {
            let machine = machine(name, format, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            started(client, &mut engine, &header(batch), &[precise(INSTRUCTIONS, INTERVAL)]);
            for _ in 1..batch {
                run(&machine, &engine, 0, 1, TO_RECORD);
            }
            let before = machine.processor(0).model().accesses();
            run(&machine, &engine, 0, 1, TO_RECORD);
            let accesses = if format == 15 { (5, 7, 0) } else { (3, 6, 0) };
            assert_eq!(since(&machine, before), accesses, "{name} {format} {batch}");
        }
    }
}

/// The counter is read once more (1 P), because the processor has not reloaded it.
#[test]
fn an_interrupt_that_finds_a_full_buffer_reads_each_precise_counter() {
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, &header(1), &[precise(INSTRUCTIONS, INTERVAL)]);
        let before = machine.processor(0).model().accesses();
        run(&machine, &engine, 0, 1, 500 * TO_RECORD);
        let accesses = if format == 15 { (5, 7, 1) } else { (3, 6, 1) };
        assert_eq!(since(&machine, before), accesses, "{name} {format}");
    }
}

/// Recording is switched off and on again (2 R, 2 W). No counter counts, so none is accessed.
#[test]
fn an_interrupt_of_branches_takes_two_reads_and_two_writes() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    let before = machine.processor(0).model().accesses();
    for number in 1..u64::from(BUFFER) {
        branch(&machine, &engine, 0, Mode::User, number);
    }
    assert_eq!(since(&machine, before), (0, 0, 0), "nothing until the buffer is full");
    branch(&machine, &engine, 0, Mode::User, 0);
    assert_eq!(since(&machine, before), (2, 2, 0));
}

#[test]
fn nothing_of_it_is_touched_unless_it_is_asked_for() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.processor(0).model().set_misc_enable(1 << 7 | 3 << 11); // without the registers, an access raises #GP
    let ordinary = protocol::EventRequest {
        event: Event::of(0x13),
        modes: modes::BOTH,
        interval: 5_000,
        ..protocol::EventRequest::EMPTY
    };
    started(client, &mut engine, &header(0), &[ordinary]);
    run(&machine, &engine, 0, 1, 50_000);
    engine.shut_down();
    assert_eq!(machine.processor(0).model().accesses().faulted, 0);
}

/// The above and the cost of an interrupt without an overflow (2 R, 3 W). Without precise events the counters are not
/// frozen.
#[test]
fn an_interrupt_of_branches_holds_no_counters_of_others() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let ordinary = protocol::EventRequest {
        event: Event::of(0x13),
        modes: modes::BOTH,
        interval: 5_000,
        ..protocol::EventRequest::EMPTY
    };
    started(client, &mut engine, &header(0), &[branches(modes::BOTH), ordinary]);
    let before = machine.processor(0).model().accesses();
    (0..u64::from(BUFFER)).for_each(|number| branch(&machine, &engine, 0, Mode::User, number));
    assert_eq!(since(&machine, before), (4, 5, 0));
}
