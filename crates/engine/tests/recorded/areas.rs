//! Control areas, which SystemProcessorProfileControlArea allocates and frees.

use engine::Engine;
use model::Mode;
use pmu::debug_store::MissingFeature;
use protocol::{AreaRecord, AreaRequest, Code, ErrorCode, EventRequest, ProcessorSet, StartHeader, area, modes};
use simulation::{Answer, Client, SimMachine};
use zerocopy::IntoBytes;

use super::scene::{
    FORMATS, INSTRUCTIONS, INTERVAL, TO_RECORD, branch, branches, engine, header, is_left_clean, machine, precise,
    registers, run, set_register, started, stopped,
};

const EXISTS: u32 = 0xC000_0018;
const NOT_ALLOCATED: u32 = 0xC000_00A0;
const NOT_SUPPORTED: u32 = 0xC000_00BB;
const INVALID_CLASS: u32 = 0xC000_0003;
const NOT_IMPLEMENTED: u32 = 0xC000_0002;
const BUSY: u32 = 0x8000_0011;
const RETRY: u32 = 0xC000_022D;

fn ask(client: Client, engine: &mut Engine<&SimMachine>, operation: u32, processors: Option<&[u32]>) -> Answer {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.unwrap_or_default().iter().all(|processor| set.insert(*processor)));
    let request = AreaRequest { operation, current: 0, reserved: 0, processors: set };
    client.ask(engine, Code::ControlArea, request.as_bytes(), 4096)
}

fn of_current(client: Client, engine: &mut Engine<&SimMachine>, operation: u32) -> Answer {
    let request = AreaRequest { operation, current: 1, reserved: 0, processors: ProcessorSet::EMPTY };
    client.ask(engine, Code::ControlArea, request.as_bytes(), 4096)
}

fn done(answer: &Answer) -> Vec<AreaRecord> {
    assert_eq!((answer.header().status, answer.header().cause), (0, 0));
    answer.records()
}

fn refused(answer: &Answer) -> (u32, u32, u32, [u64; 2]) {
    let header = answer.header();
    assert_eq!(header.count, 0);
    (header.status, header.cause, header.processor, header.detail)
}

fn has_area(machine: &SimMachine) -> Vec<bool> {
    machine.all().map(simulation::ModelCpu::has_area).collect()
}

#[test]
fn allocate_answers_the_address_and_each_call_out_of_turn_says_so() {
    let machine = machine("haswell-4710mq", 2, 3);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let none = done(&ask(client, &mut engine, area::QUERY, None));
    assert!(none.iter().all(|record| (record.address, record.status, record.size) == (0, NOT_ALLOCATED, 0)));
    let flags = area::BRANCHES | area::PRECISE | area::MODES;
    assert!(none.iter().all(|record| (record.flags, record.format, record.missing_feature) == (flags, 2, 0)));
    let made = done(&ask(client, &mut engine, area::ALLOCATE, None));
    assert_eq!(made.iter().map(|record| record.processor).collect::<Vec<_>>(), [0, 1, 2]);
    for record in &made {
        assert_eq!((record.status, record.size, record.flags), (0, 0xA0, flags | area::OF_KERNEL));
        assert_ne!(record.address, 0);
    }
    assert_eq!(done(&ask(client, &mut engine, area::QUERY, None)), made);
    let again = refused(&ask(client, &mut engine, area::ALLOCATE, Some(&[1])));
    assert_eq!(again, (EXISTS, ErrorCode::ControlArea as u32, 1, [EXISTS.into(), made[1].address]));
    let freed = done(&ask(client, &mut engine, area::FREE, Some(&[1])));
    assert_eq!((freed.len(), freed[0].address, freed[0].status), (1, 0, 0));
    assert_eq!(has_area(&machine), [true, false, true]);
    let twice = refused(&ask(client, &mut engine, area::FREE, None));
    assert_eq!(twice, (NOT_ALLOCATED, ErrorCode::ControlArea as u32, 1, [NOT_ALLOCATED.into(), 0]));
    assert_eq!(has_area(&machine), [true, false, true], "all or none");
    done(&ask(client, &mut engine, area::FREE, Some(&[0, 2])));
    assert!(is_left_clean(&machine));
}

#[test]
fn the_current_processor_is_the_one_on_which_the_request_comes() {
    let machine = machine("skylake-6600k", 3, 3);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.set_current(2);
    assert_eq!(done(&of_current(client, &mut engine, area::ALLOCATE))[0].processor, 2);
    assert_eq!(has_area(&machine), [false, false, true]);
    machine.set_current(1);
    assert_eq!(refused(&of_current(client, &mut engine, area::FREE)).0, NOT_ALLOCATED);
    machine.set_current(2);
    done(&of_current(client, &mut engine, area::FREE));
    assert!(is_left_clean(&machine));
}

#[test]
fn where_one_processor_refuses_none_has_an_area() {
    let machine = machine("haswell-4710mq", 2, 3);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.refuse_areas(2, EXISTS, 0x1234);
    let answer = refused(&ask(client, &mut engine, area::ALLOCATE, None));
    assert_eq!(answer, (EXISTS, ErrorCode::ControlArea as u32, 2, [EXISTS.into(), 0x1234]), "another has it");
    assert_eq!(has_area(&machine), [false; 3]);
    machine.processor(1).model().set_misc_enable(1 << 7 | 1 << 12);
    machine.refuse_areas(0, 0, 0);
    let answer = refused(&ask(client, &mut engine, area::ALLOCATE, None));
    let missing_feature = MissingFeature::PebsUnavailable.numbers().0.into();
    assert_eq!(answer, (NOT_SUPPORTED, ErrorCode::NoDebugStore as u32, 1, [missing_feature, 0]));
    assert!(is_left_clean(&machine));
}

#[test]
fn without_debug_store_pebs_or_intel_it_is_not_supported() {
    for (name, misc_enable, missing_feature) in [
        ("amd-legacy", None, MissingFeature::NotIntel),
        ("haswell-4710mq", Some(0), MissingFeature::NoMonitoring),
        ("haswell-4710mq", Some(1 << 7 | 1 << 12), MissingFeature::PebsUnavailable),
        ("firecracker-cascade-lake", None, MissingFeature::NoDebugStore),
    ] {
        let machine = SimMachine::named(name, 1);
        if let Some(value) = misc_enable {
            machine.processor(0).model().set_misc_enable(value);
        }
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let (status, cause, _, detail) = refused(&ask(client, &mut engine, area::ALLOCATE, None));
        assert_eq!(
            (status, cause, detail[0]),
            (NOT_SUPPORTED, ErrorCode::NoDebugStore as u32, missing_feature.numbers().0.into()),
            "{name}"
        );
        assert_eq!(
            done(&ask(client, &mut engine, area::QUERY, None))[0].missing_feature,
            missing_feature.numbers().0 + 1,
            "{name}"
        );
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn a_format_that_is_not_known_is_no_matter_for_the_area_and_is_told() {
    let machine = machine("arrow-lake-245k", 7, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let made = done(&ask(client, &mut engine, area::ALLOCATE, None));
    assert_eq!((made[0].format, made[0].missing_feature), (7, MissingFeature::UnknownFormat(7).numbers().0 + 1));
    assert_eq!(made[0].flags & (area::PRECISE | area::BRANCHES | area::OF_KERNEL), area::BRANCHES | area::OF_KERNEL);
    engine.shut_down();
    assert!(is_left_clean(&machine));
}

#[test]
fn where_the_kernel_has_no_such_call_the_driver_makes_it_and_tells() {
    for status in [INVALID_CLASS, NOT_IMPLEMENTED] {
        let machine = machine("haswell-4710mq", 2, 1);
        machine.refuse_areas(0, status, 0);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let made = done(&ask(client, &mut engine, area::ALLOCATE, None));
        assert_eq!((made[0].status, made[0].flags & area::OF_KERNEL), (status, 0));
        assert_ne!(made[0].address, 0);
        engine.shut_down();
        assert!(is_left_clean(&machine), "the driver frees the area that no client freed");
    }
}

#[test]
fn a_session_uses_the_area_that_is_there_and_leaves_it_there() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let made = done(&ask(client, &mut engine, area::ALLOCATE, Some(&[1])));
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    let used = done(&ask(client, &mut engine, area::QUERY, None));
    assert!(used.iter().all(|record| record.flags & area::USED != 0));
    assert_eq!(used[1].address, made[0].address);
    let busy = refused(&ask(client, &mut engine, area::FREE, Some(&[1])));
    assert_eq!(busy, (BUSY, ErrorCode::ControlArea as u32, 1, [BUSY.into(), made[0].address]));
    stopped(client, &mut engine, session, None);
    assert_eq!(has_area(&machine), [false, true], "its own are gone");
    assert_eq!(done(&ask(client, &mut engine, area::QUERY, Some(&[1]))), made);
    done(&ask(client, &mut engine, area::FREE, Some(&[1])));
    assert!(is_left_clean(&machine));
}

#[test]
fn inconsistent_area_requests_are_refused() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let mut one = ProcessorSet::EMPTY;
    assert!(one.insert(1));
    let good = AreaRequest { operation: area::QUERY, current: 0, reserved: 0, processors: one };
    for (what, request, cause) in [
        ("an operation", AreaRequest { operation: 3, ..good }, ErrorCode::BadFlags),
        ("current and a set", AreaRequest { current: 1, ..good }, ErrorCode::BadFlags),
        ("current 2", AreaRequest { current: 2, ..good }, ErrorCode::BadFlags),
        ("reserved", AreaRequest { reserved: 1, ..good }, ErrorCode::BadFlags),
    ] {
        let answer = client.ask(&mut engine, Code::ControlArea, request.as_bytes(), 4096);
        assert_eq!(answer.header().cause, cause as u32, "{what}");
    }
    assert_eq!(refused(&ask(client, &mut engine, area::ALLOCATE, Some(&[0, 2]))).1, ErrorCode::NoSuchProcessor as u32);
    assert!(is_left_clean(&machine));
}

#[test]
fn areas_of_a_session_stay_whatever_clients_do_with_others() {
    let machine = machine("haswell-4710mq", 2, 3);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let mut first = ProcessorSet::EMPTY;
    assert!(first.insert(0));
    let header = StartHeader { processors: first, ..header(0) };
    let session = started(client, &mut engine, &header, &[branches(modes::BOTH)]);
    let busy = refused(&ask(client, &mut engine, area::FREE, Some(&[0])));
    assert_eq!((busy.0, busy.2), (BUSY, 0), "also if no client asked for it");
    done(&ask(client, &mut engine, area::ALLOCATE, Some(&[1])));
    done(&ask(client, &mut engine, area::FREE, Some(&[1])));
    assert_eq!(has_area(&machine), [true, false, false]);
    machine.refuse_areas(2, EXISTS, 0);
    assert_eq!(refused(&ask(client, &mut engine, area::ALLOCATE, Some(&[1, 2]))).2, 2);
    assert_eq!(has_area(&machine), [true, false, false]);
    stopped(client, &mut engine, session, None);
    assert!(is_left_clean(&machine));
}

#[test]
fn a_kernel_that_does_not_support_it_is_overruled_for_branches_alone() {
    let machine = machine("haswell-4710mq", 2, 1);
    machine.refuse_areas(0, NOT_SUPPORTED, 0);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let told = (NOT_SUPPORTED, ErrorCode::ControlArea as u32, 0, [NOT_SUPPORTED.into(), 0]);
    assert_eq!(refused(&ask(client, &mut engine, area::ALLOCATE, None)), told);
    for events in [&[record()][..], &[branches(modes::BOTH), record()]] {
        assert_eq!(refused(&client.start_with(&mut engine, header(0), events)), told);
    }
    assert!(is_left_clean(&machine));
    started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
}

fn record() -> EventRequest {
    precise(INSTRUCTIONS, INTERVAL)
}

#[test]
fn unavailable_pebs_is_reported_before_unavailable_bts() {
    for (misc_enable, missing_feature) in [
        (1 << 7 | 1 << 11, MissingFeature::BranchesUnavailable),
        (1 << 7 | 1 << 12, MissingFeature::PebsUnavailable),
        (1 << 7 | 3 << 11, MissingFeature::PebsUnavailable),
    ] {
        let machine = machine("haswell-4710mq", 2, 1);
        machine.processor(0).model().set_misc_enable(misc_enable);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let told = done(&ask(client, &mut engine, area::QUERY, None));
        assert_eq!(told[0].missing_feature, missing_feature.numbers().0 + 1, "{misc_enable:#x}");
    }
}

#[test]
fn an_area_that_a_session_has_used_points_to_no_buffer_of_it() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let words = || [0, 1, 2, 3, 4, 5, 6, 7].map(|word| pmu::Cpu::save_area(machine.processor(0), word));
    done(&ask(client, &mut engine, area::ALLOCATE, None));
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH), record()]);
    assert!(words().iter().all(|word| *word != 0), "{:x?}", words());
    stopped(client, &mut engine, session, None);
    assert_eq!(words(), [0; 8]);
}

#[test]
fn an_area_address_in_the_register_is_restored() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let address = done(&ask(client, &mut engine, area::ALLOCATE, None))[0].address;
    set_register(&machine, 0, 0x600, address);
    let session = started(client, &mut engine, &header(0), &[record()]);
    stopped(client, &mut engine, session, None);
    assert_eq!(registers(&machine, 0), [Some(0), Some(0), Some(address)]);
}

/// IA32_DS_AREA.
const DS_AREA: u32 = 0x600;

#[test]
fn beside_the_areas_that_windows_keeps_a_session_records_into_areas_of_the_driver() {
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 2);
        let address = machine.keep_areas();
        let found = [0, 1].map(|processor| registers(&machine, processor));
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        assert_eq!(
            refused(&ask(client, &mut engine, area::ALLOCATE, None)).0,
            EXISTS,
            "the reply has the address of Windows' own area"
        );
        let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH), record()]);
        for (processor, of_windows) in (0..2).map(|processor| (processor, address(processor))) {
            let own = done(&ask(client, &mut engine, area::QUERY, Some(&[processor])))[0];
            // For architectural PEBS the kernel is not asked.
            let status = if format == 15 { 0 } else { EXISTS };
            assert_eq!((own.flags & (area::OF_KERNEL | area::USED), own.status), (area::USED, status), "{name}");
            let [_, _, Some(register)] = registers(&machine, processor) else { panic!("no register") };
            assert!(register == own.address && register != of_windows, "{name}: {register:#x}");
            branch(&machine, &engine, processor, Mode::User, 5);
            run(&machine, &engine, processor, 0x1000, TO_RECORD);
        }
        let counts = stopped(client, &mut engine, session, None);
        assert!(counts.iter().all(|count| count.samples == 1), "{name}: {counts:?}");
        assert_eq!([0, 1].map(|processor| registers(&machine, processor)), found, "{name}");
        assert!(is_left_clean(&machine), "{name}");
    }
}

/// Other software that saved the register during a session can restore it at any time.
#[test]
fn an_area_is_not_freed_while_the_register_holds_its_address() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let address = done(&ask(client, &mut engine, area::ALLOCATE, Some(&[1])))[0].address;
    set_register(&machine, 1, DS_AREA, address);
    let kept = (RETRY, ErrorCode::ControlArea as u32, 1, [RETRY.into(), address]);
    assert_eq!(refused(&ask(client, &mut engine, area::FREE, Some(&[1]))), kept);
    engine.accumulate_counts();
    assert_eq!(has_area(&machine), [false, true]);
    let session = started(client, &mut engine, &header(0), &[record()]);
    stopped(client, &mut engine, session, None);
    assert_eq!(registers(&machine, 1)[2], Some(address), "as found");
    assert_eq!(has_area(&machine), [false, true], "also after a session that used it");
    set_register(&machine, 1, DS_AREA, 0);
    engine.accumulate_counts();
    assert!(is_left_clean(&machine));
}

#[test]
fn at_the_unload_an_area_stays_to_which_the_register_points() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let address = done(&ask(client, &mut engine, area::ALLOCATE, None))[1].address;
    set_register(&machine, 1, DS_AREA, address);
    engine.shut_down();
    assert_eq!(has_area(&machine), [false, true]);
}

#[test]
fn a_stop_while_the_machine_sleeps_leaves_the_areas_until_the_register_can_be_read() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[record()]);
    machine.fall_asleep(&engine);
    stopped(client, &mut engine, session, None);
    engine.accumulate_counts();
    assert_eq!(has_area(&machine), [true, true]);
    machine.wake(&engine);
    engine.accumulate_counts();
    assert!(is_left_clean(&machine));
}

#[test]
fn an_area_of_the_kernel_that_is_too_small_for_the_processor_is_not_used() {
    const WINDOWS_8: u8 = 12;
    const WINDOWS_10_1903: u8 = 20;
    // Reset values: of 4 counters; of 8 and of fixed counter 0; of 32 and of fixed counter 0.
    for (name, format, words, is_of_kernel) in [
        ("skylake-6600k", 3, WINDOWS_8, true),
        ("alder-lake-12900k", 4, WINDOWS_8, false),
        ("alder-lake-12900k", 4, WINDOWS_10_1903, true),
        ("alder-lake-12900k", 5, WINDOWS_10_1903, false),
        ("arrow-lake-245k", 6, WINDOWS_10_1903, false),
    ] {
        let machine = machine(name, format, 1);
        machine.set_kernel_area_words(words);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let events: Vec<_> = (0..3).map(|_| precise(INSTRUCTIONS, INTERVAL)).collect();
        let events = if format < 4 { &events[..1] } else { &events };
        let session = started(client, &mut engine, &header(0), events);
        let queried = done(&ask(client, &mut engine, area::QUERY, None));
        assert_eq!(queried[0].flags & area::OF_KERNEL != 0, is_of_kernel, "{name} {format}: {words} words");
        run(&machine, &engine, 0, 0x1000, 10 * u64::from(INTERVAL));
        let counts = stopped(client, &mut engine, session, None);
        assert!(counts.iter().all(|count| count.samples >= 9), "{name} {format}: {counts:?}");
        engine.shut_down();
        assert!(is_left_clean(&machine), "{name} {format}");
    }
}

#[test]
fn an_area_that_a_client_keeps_is_not_replaced_by_a_larger_one() {
    let machine = machine("arrow-lake-245k", 6, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    done(&ask(client, &mut engine, area::ALLOCATE, None));
    let answer = client.start_with(&mut engine, header(0), &[precise(INSTRUCTIONS, INTERVAL)]).header();
    assert_eq!(answer.cause, ErrorCode::ControlArea as u32);
    done(&ask(client, &mut engine, area::FREE, None));
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    stopped(client, &mut engine, session, None);
    engine.shut_down();
    assert!(is_left_clean(&machine));
}
