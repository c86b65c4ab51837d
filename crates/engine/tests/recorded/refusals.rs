//! Every reason to refuse recording, and that a refusal changes nothing.

use pmu::debug_store::MissingFeature;
use protocol::{BRANCH_BUFFER, ErrorCode, EventRequest, MAX_BATCH, StartHeader, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    INSTRUCTIONS, INTERVAL, branches, engine, header, is_left_clean, machine, precise, registers, set_register,
    started, stopped,
};

/// Sets up the cause of a refusal.
type Obstacle = fn(&SimMachine);

/// Name and setup of the cause, the requested events, and the refusal with its details.
type Case<'a, How> = (&'a str, How, &'a [EventRequest], ErrorCode, [u64; 2]);

/// Starts events and returns cause and details of the refusal. Checks that nothing changed.
fn refusal(machine: &SimMachine, header: &StartHeader, events: &[EventRequest]) -> (u32, u32, [u64; 2]) {
    let before: Vec<_> = (0..2).map(|processor| registers(machine, processor)).collect();
    let mut engine = engine(machine);
    let client = Client::open(&mut engine, 1, 10);
    let answer = client.start_with(&mut engine, *header, events).header();
    assert_ne!(answer.status, 0, "cause {}", answer.cause);
    let after: Vec<_> = (0..2).map(|processor| registers(machine, processor)).collect();
    assert_eq!(before, after);
    assert!(is_left_clean(machine));
    (answer.cause, answer.processor, answer.detail)
}

#[test]
fn unsafe_foreign_or_missing_debug_stores_are_refused_with_their_reason() {
    let (trace, record) = (branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL));
    let missing_feature = |missing_feature: MissingFeature| [missing_feature.numbers().0.into(), 0];
    let cases: [Case<Obstacle>; 13] = [
        ("shadowed", |machine| machine.set_shadow(1), &[trace], ErrorCode::Shadowed, [0, 0]),
        ("shadowed", |machine| machine.set_shadow(1), &[record], ErrorCode::Shadowed, [0, 0]),
        ("untold", |machine| machine.set_shadow(0xC000_0003), &[record], ErrorCode::Shadowed, [0xC000_0003, 0]),
        ("a trace", |machine| set_register(machine, 1, 0x1D9, 0x40), &[record], ErrorCode::DebugStoreInUse, [0x40, 0]),
        (
            "its buffer",
            |machine| set_register(machine, 1, 0x1D9, 0x80),
            &[trace],
            ErrorCode::DebugStoreInUse,
            [0x80, 0],
        ),
        (
            "its interrupt",
            |machine| set_register(machine, 1, 0x1D9, 0x100),
            &[trace],
            ErrorCode::DebugStoreInUse,
            [0x100, 0],
        ),
        ("records", |machine| set_register(machine, 1, 0x3F1, 2), &[trace], ErrorCode::DebugStoreInUse, [0, 2]),
        (
            "the kernel",
            |machine| machine.refuse_areas(1, 0xC000_009A, 0x7000),
            &[record],
            ErrorCode::ControlArea,
            [0xC000_009A, 0x7000],
        ),
        (
            "no branches",
            |machine| machine.processor(1).model().set_misc_enable(1 << 7 | 1 << 11),
            &[record, trace],
            ErrorCode::NoDebugStore,
            missing_feature(MissingFeature::BranchesUnavailable),
        ),
        (
            "no records",
            |machine| machine.processor(1).model().set_misc_enable(1 << 7 | 1 << 12),
            &[record],
            ErrorCode::NoDebugStore,
            missing_feature(MissingFeature::PebsUnavailable),
        ),
        (
            "nothing",
            |machine| machine.processor(1).model().set_misc_enable(0),
            &[trace],
            ErrorCode::NoDebugStore,
            missing_feature(MissingFeature::NoMonitoring),
        ),
        (
            "an event",
            |_| {},
            &[precise(0x13, INTERVAL)],
            ErrorCode::NotPrecise,
            missing_feature(MissingFeature::NotPrecise),
        ),
        ("a timer", |_| {}, &[precise(0, 10_000)], ErrorCode::BadModes, [u64::from(modes::USER | modes::PRECISE), 0]),
    ];
    for (what, obstacle, events, cause, detail) in cases {
        let machine = machine("haswell-4710mq", 2, 2);
        obstacle(&machine);
        let told = refusal(&machine, &header(0), events);
        assert_eq!((told.0, told.2), (cause as u32, detail), "{what}");
        assert!(
            told.1 == 1 || [ErrorCode::Shadowed, ErrorCode::NotPrecise, ErrorCode::BadModes].contains(&cause),
            "{what}"
        );
    }
}

#[test]
fn processors_without_a_debug_store_report_the_missing_feature() {
    let trace = branches(modes::BOTH);
    for (name, event, cause, detail) in [
        ("amd-legacy", trace, ErrorCode::NoDebugStore, [MissingFeature::NotIntel.numbers().0.into(), 0]),
        ("zen-1800x", trace, ErrorCode::NoDebugStore, [MissingFeature::NotIntel.numbers().0.into(), 0]),
        ("yonah-t2400", trace, ErrorCode::NoDebugStore, [MissingFeature::NotWide.numbers().0.into(), 0]),
        ("netburst-cedarmill", trace, ErrorCode::NoDebugStore, [MissingFeature::NotInInterface.numbers().0.into(), 0]),
        ("p6-dothan", trace, ErrorCode::NoDebugStore, [MissingFeature::NotWide.numbers().0.into(), 0]),
        (
            "firecracker-cascade-lake",
            trace,
            ErrorCode::NoDebugStore,
            [MissingFeature::NoDebugStore.numbers().0.into(), 0],
        ),
        (
            "core2-e5200",
            precise(0x1E, INTERVAL),
            ErrorCode::NotPrecise,
            [MissingFeature::NotPrecise.numbers().0.into(), 0],
        ),
    ] {
        let machine = SimMachine::named(name, 2);
        let told = refusal(&machine, &header(0), &[event]);
        assert_eq!((told.0, told.2), (cause as u32, detail), "{name}");
    }
    let machine = SimMachine::named("arrow-lake-245k", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, &header(0), &[trace]);
}

#[test]
fn one_mode_alone_takes_a_processor_that_can_tell_them_apart() {
    let identity = cpuid_dumps::find("haswell-4710mq").unwrap();
    let without = || {
        let dump = identity.cpuid();
        let leaves = move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
            [eax, ebx, if leaf == 1 { ecx & !(1 << 4) } else { ecx }, edx]
        };
        let mut processor = model::Processor::new(Box::new(leaves)).with_perf_capabilities(0x200);
        processor.set_memory(Box::new(host_memory::ProcessMemory));
        processor
    };
    let machine = SimMachine::of([without(), without()]);
    for modes in [modes::USER, modes::KERNEL] {
        let told = refusal(&machine, &header(0), &[branches(modes)]);
        assert_eq!((told.0, told.2), (ErrorCode::NoDebugStore as u32, [MissingFeature::NoModes.numbers().0.into(), 0]));
    }
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
}

#[test]
fn numbers_out_of_their_range_are_refused_and_touch_no_register() {
    let (trace, record) = (branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL));
    let (least, most) = (*BRANCH_BUFFER.start(), *BRANCH_BUFFER.end());
    let range = [least.into(), most.into()];
    let cases: [Case<StartHeader>; 10] = [
        ("a small buffer", header(0), &[EventRequest { interval: least - 1, ..trace }], ErrorCode::BadBuffer, range),
        ("a large buffer", header(0), &[EventRequest { interval: most + 1, ..trace }], ErrorCode::BadBuffer, range),
        ("no buffer", header(0), &[EventRequest { interval: 0, ..trace }], ErrorCode::BadBuffer, range),
        ("a large batch", header(MAX_BATCH + 1), &[record], ErrorCode::BadBuffer, [1, MAX_BATCH.into()]),
        ("a batch of branches", header(1), &[trace], ErrorCode::BadBuffer, [0, 0]),
        ("a frequency", header(0), &[EventRequest { frequency: 1, ..trace }], ErrorCode::BadFrequency, [0, 0]),
        ("twice", header(0), &[trace, trace], ErrorCode::BadModes, [3, 0]),
        ("precise branches", header(0), &[EventRequest { modes: 7, ..trace }], ErrorCode::BadModes, [7, 0]),
        ("no mode", header(0), &[EventRequest { modes: 4, ..record }], ErrorCode::BadModes, [4, 0]),
        (
            "counted precisely",
            StartHeader { ring: 0, budget: 0, ..header(0) },
            &[EventRequest { interval: 0, ..record }],
            ErrorCode::BadModes,
            [5, 0],
        ),
    ];
    for (what, header, events, cause, detail) in cases {
        let machine = machine("haswell-4710mq", 2, 2);
        let told = refusal(&machine, &header, events);
        assert_eq!((told.0, told.2), (cause as u32, detail), "{what}");
        for cpu in machine.all() {
            let accesses = cpu.model().accesses();
            assert_eq!((accesses.rdmsr, accesses.wrmsr), (0, 0), "{what}");
        }
    }
}

/// Core 2 hangs if the buffer of precise records is larger than a page (Linux, intel_ds_init).
#[test]
fn the_batches_of_core_2_fit_a_page() {
    let machine = machine("core2-e5200", 0, 2);
    let told = refusal(&machine, &header(17), &[precise(INSTRUCTIONS, INTERVAL)]);
    assert_eq!((told.0, told.2), (ErrorCode::BadBuffer as u32, [1, 16]));
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, &header(16), &[precise(INSTRUCTIONS, INTERVAL)]);
    let cpu = machine.processor(0);
    let [base, maximum] = [4, 6].map(|word| pmu::Cpu::save_area(cpu, word));
    assert!(maximum - base <= 4_096 && maximum - base >= 17 * 144, "{base:#x} to {maximum:#x}");
}

#[test]
fn one_session_at_a_time_has_the_debug_store() {
    let machine = machine("haswell-4710mq", 2, 2);
    let mut engine = engine(&machine);
    let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
    let session = started(first, &mut engine, &header(0), &[branches(modes::BOTH)]);
    let answer = second.start_with(&mut engine, header(0), &[precise(INSTRUCTIONS, INTERVAL)]).header();
    assert_eq!((answer.cause, answer.detail), (ErrorCode::DebugStoreTaken as u32, [session, 0]));
    stopped(first, &mut engine, session, None);
    started(second, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
}

#[test]
fn where_one_counter_records_a_second_precise_event_finds_none() {
    let machine = machine("core2-e5200", 0, 2);
    let events = [precise(INSTRUCTIONS, INTERVAL), precise(0x1F, INTERVAL)];
    let (cause, _, detail) = refusal(&machine, &header(0), &events);
    assert_eq!((cause, detail), (ErrorCode::NoFreeCounter as u32, [1, 2]), "one can count it, two events need it");
}

#[test]
fn on_a_processor_without_pebs_branches_do_without_the_kernel_s_area() {
    let machine = machine("haswell-4710mq", 2, 1);
    machine.processor(0).model().set_misc_enable(1 << 7 | 1 << 12);
    machine.refuse_areas(0, 0xC000_00BB, 0);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    super::scene::branch(&machine, &engine, 0, model::Mode::User, 5);
    assert_eq!(stopped(client, &mut engine, session, None)[0].samples, 1);
    assert!(is_left_clean(&machine));
}

#[test]
fn the_interface_is_that_of_the_boot_processor_and_has_to_be_emon() {
    let whole = |name: &str| {
        let identity = cpuid_dumps::find(name).unwrap();
        let dump = identity.cpuid();
        let processor = model::Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)));
        processor.with_perf_capabilities(identity.perf_capabilities())
    };
    let machine = SimMachine::of([whole("netburst-cedarmill"), whole("haswell-4710mq")]);
    let mut second = protocol::ProcessorSet::EMPTY;
    assert!(second.insert(1));
    let header = StartHeader { processors: second, ..header(0) };
    let told = refusal(&machine, &header, &[branches(modes::BOTH)]);
    assert_eq!(told, (ErrorCode::NoDebugStore as u32, 1, [MissingFeature::NotInInterface.numbers().0.into(), 0]));
}
