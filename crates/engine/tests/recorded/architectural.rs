//! Architectural PEBS where it differs from the Debug Store: physical memory, registers of its own, fragments.

use model::{CounterId, Fragments, Mode, Processor};
use pmu::Recorder;
use pmu::source::RawEvent;
use protocol::{ErrorCode, Event, EventRequest, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    BASE, INDEX, INSTRUCTIONS, INTERVAL, TO_RECORD, branches, engine, fetched, header, interrupted, is_left_clean,
    machine, overflows, precise, precise_sample, records, register, registers, run, set_register, started, stopped,
};

const NAME: (&str, u8) = ("panther-lake-355", 15);
const DS_AREA: u32 = 0x600;

/// Enable of IA32_PEBS_INDEX.
const ENABLED: u64 = 1 << 32;

#[test]
fn neither_shadowing_nor_an_area_of_windows_nor_a_missing_debug_store_stands_in_its_way() {
    let without_store = || {
        let identity = cpuid_dumps::find(NAME.0).unwrap();
        let dump = identity.cpuid();
        let leaves = move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
            [eax, ebx, ecx, if leaf == 1 { edx & !(1 << 21) } else { edx }]
        };
        let mut processor = Processor::new(Box::new(leaves)).with_perf_capabilities(identity.perf_capabilities());
        processor.set_memory(Box::new(host_memory::ProcessMemory));
        SimMachine::of([processor])
    };
    let shadowed = machine(NAME.0, NAME.1, 1);
    shadowed.set_shadow(1);
    let of_windows = machine(NAME.0, NAME.1, 1);
    let _ = of_windows.keep_areas();
    for (what, machine) in [("shadowed", shadowed), ("of Windows", of_windows), ("without", without_store())] {
        let area = register(&machine, 0, DS_AREA);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
        assert_eq!(register(&machine, 0, DS_AREA), area, "{what}: the area is not touched");
        for ip in 0..5 {
            run(&machine, &engine, 0, 0x1000 + ip, TO_RECORD);
        }
        let ips: Vec<u64> =
            fetched(client, &mut engine, session).iter().map(|record| precise_sample(record).ip).collect();
        assert_eq!(ips, [0x1000, 0x1001, 0x1002, 0x1003, 0x1004], "{what}");
        stopped(client, &mut engine, session, None);
        let branches = client.start_with(&mut engine, header(0), &[branches(modes::BOTH)]).header();
        let refused = [ErrorCode::Shadowed, ErrorCode::NoDebugStore].map(|cause| cause as u32);
        assert_eq!(refused.contains(&branches.cause), what != "of Windows", "{what}: {branches:?}");
        engine.shut_down();
        assert_eq!(machine.processor(0).model().accesses().faulted, 0, "{what}");
    }
}

#[test]
fn both_core_types_of_a_hybrid_record() {
    let machine = SimMachine::named(NAME.0, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    for processor in 0..2 {
        (0..7).for_each(|_| run(&machine, &engine, processor, 0x2000, TO_RECORD));
    }
    let counts = stopped(client, &mut engine, session, None);
    for count in &counts {
        let processor = count.processor;
        assert_eq!((count.samples, count.lost), (records(&machine, processor), 0), "{count:?}");
        assert_eq!(count.count, machine.counted(processor, count.counter), "{count:?}");
    }
    assert_eq!(counts.iter().map(|count| count.recorder).collect::<Vec<_>>(), [Recorder::Fixed as u32; 2]);
    assert!(is_left_clean(&machine));
}

#[test]
fn one_core_type_records_so_and_the_other_through_the_debug_store() {
    let processor = |name: &str| {
        let identity = cpuid_dumps::find(name).unwrap();
        let dump = identity.cpuid();
        let mut processor = Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
            .with_perf_capabilities(identity.perf_capabilities());
        processor.set_memory(Box::new(host_memory::ProcessMemory));
        processor
    };
    for names in [[NAME.0, "lunar-lake-288v-efficient"], ["lunar-lake-288v", "panther-lake-355-efficient"]] {
        let machine = SimMachine::of(names.map(processor));
        let found = [0, 1].map(|processor| registers(&machine, processor));
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(3), &[precise(INSTRUCTIONS, INTERVAL)]);
        for processor in 0..2 {
            (0..10).for_each(|_| run(&machine, &engine, processor, 0x2000, TO_RECORD));
            let is_architectural = register(&machine, processor, BASE).is_some();
            assert_eq!(register(&machine, processor, DS_AREA) == Some(0), is_architectural, "{names:?}");
        }
        for count in stopped(client, &mut engine, session, None) {
            assert_eq!((count.samples, count.lost), (records(&machine, count.processor), 0), "{names:?} {count:?}");
            assert!(count.samples > 8, "{names:?} {count:?}");
        }
        assert_eq!([0, 1].map(|processor| registers(&machine, processor)), found);
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn a_processor_without_contiguous_memory_is_refused_and_nothing_has_changed() {
    let machine = machine(NAME.0, NAME.1, 2);
    let before = [0, 1].map(|processor| registers(&machine, processor));
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.refuse_contiguous(1);
    let refused = client.start_with(&mut engine, header(0), &[precise(INSTRUCTIONS, INTERVAL)]).header();
    assert_eq!((refused.cause, refused.processor), (ErrorCode::ControlArea as u32, 1));
    assert_eq!(refused.detail[0], 0xC000_009A, "STATUS_INSUFFICIENT_RESOURCES");
    assert_eq!([0, 1].map(|processor| registers(&machine, processor)), before);
    assert!(is_left_clean(&machine));
    machine.refuse_contiguous(2);
    started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
}

#[test]
fn records_of_another_program_are_in_use_and_its_registers_stay_as_it_wrote_them() {
    let machine = machine(NAME.0, NAME.1, 2);
    set_register(&machine, 1, INDEX, ENABLED | 1 << 36);
    let before = registers(&machine, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let refused = client.start_with(&mut engine, header(0), &[precise(INSTRUCTIONS, INTERVAL)]).header();
    assert_eq!((refused.cause, refused.processor), (ErrorCode::DebugStoreInUse as u32, 1));
    assert_eq!((refused.detail, registers(&machine, 1)), ([0, ENABLED | 1 << 36], before));
    // A buffer without records is no sign of use, and comes back.
    set_register(&machine, 1, INDEX, 0);
    set_register(&machine, 1, BASE, 0x7000_0002);
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    assert_ne!(register(&machine, 1, BASE), Some(0x7000_0002));
    stopped(client, &mut engine, session, None);
    assert_eq!((register(&machine, 1, BASE), register(&machine, 1, INDEX)), (Some(0x7000_0002), Some(0)));
    // One that another program sets during a session stays.
    started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    set_register(&machine, 0, INDEX, 0);
    set_register(&machine, 0, BASE, 0x9000_0000);
    engine.shut_down();
    assert_eq!((register(&machine, 0, BASE), register(&machine, 0, INDEX)), (Some(0x9000_0000), Some(0)));
}

#[test]
fn an_index_beyond_its_buffer_makes_no_records_and_recording_goes_on() {
    let machine = machine(NAME.0, NAME.1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(1), &[precise(INSTRUCTIONS, INTERVAL)]);
    for wr in [0x7F_FFFF, 0x1000, 0x801] {
        run(&machine, &engine, 0, 0x1000, TO_RECORD);
        set_register(&machine, 0, INDEX, ENABLED | 4 << 36 | wr << 4);
        machine.tick_sampling(&engine, 0);
        machine.interrupt(&engine, 0, &interrupted(0));
    }
    run(&machine, &engine, 0, 0x1000, TO_RECORD);
    let counts = stopped(client, &mut engine, session, None);
    assert_eq!((counts[0].samples, records(&machine, 0)), (4, 4));
    assert!(is_left_clean(&machine));
}

/// The threshold is passed by far before the interrupt is served; then there is no room either.
#[test]
fn in_a_burst_every_overflow_is_a_sample_or_lost_in_one_piece_or_in_fragments() {
    for (fragments, batch, burst) in [
        (Fragments::None, 10, 60),
        (Fragments::ByTurns, 10, 40),
        (Fragments::None, 1, 2_000),
        (Fragments::ByTurns, 100, 3_000),
    ] {
        let machine = machine(NAME.0, NAME.1, 1);
        machine.processor(0).model().set_fragments(fragments);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(batch), &[precise(INSTRUCTIONS, INTERVAL)]);
        for _ in 0..3 {
            machine.run(0, Mode::User, &|_| burst * TO_RECORD);
            machine.deliver(&engine, 0, &interrupted(0));
        }
        let counts = stopped(client, &mut engine, session, None);
        let lost = counts[0].lost + counts[0].throttled;
        assert_eq!(counts[0].samples, records(&machine, 0), "{fragments:?} {batch} {burst}");
        assert_eq!(counts[0].samples + lost, overflows(&machine, 0), "{fragments:?} {batch} {burst}");
        assert_eq!(counts[0].count, machine.counted(0, counts[0].counter), "{fragments:?} {batch} {burst}");
    }
}

/// The two general counters with precise distribution write their record at the overflow, the others at the next event.
#[test]
fn counts_are_exact_on_every_counter_that_records() {
    for number in 0..10_u8 {
        let machine = machine(NAME.0, NAME.1, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let raw = RawEvent::new().with_event(0xC4).source().0;
        let branches =
            EventRequest { event: Event { counters: 1 << number, ..Event::of(raw) }, ..precise(raw, INTERVAL) };
        let session = started(client, &mut engine, &header(0), &[branches]);
        assert_eq!(machine.processor(0).model().enabled_counters()[0].0, CounterId::General(number));
        for _ in 0..20 {
            run(&machine, &engine, 0, 0x1000, 3_000);
        }
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!(counts[0].count, 60_000, "{number}");
        assert_eq!(counts[0].samples, records(&machine, 0), "{number}");
        let recorder = if number < 2 { Recorder::Distributed } else { Recorder::General };
        assert_eq!(Recorder::from_number(counts[0].recorder), Some(recorder), "{number}");
    }
}
