//! Tests of `mem` and `c2c`.

mod page;
mod record;
mod types;

use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, Mode, PreciseKind, PreciseSample, SampleRecord, UNKNOWN,
};
use recording::{RecordedEvent, RecordedSession, Writer};

use super::report::{APP, File, NT, processes, record, recorded, session, summary};
use super::*;

/// Data of the program, of its heap, and of the kernel.
const GLOBAL: u64 = APP + 0x4_0000;
const HEAP: u64 = 0x5000_0000;
const POOL: u64 = 0xFFFF_A000_1234_0000;

/// What an instruction does. Source and latency are those of Skylake's loads.
#[derive(Clone, Copy)]
struct Step {
    process: u32,
    thread: u32,
    processor: u32,
    ip: u64,
    address: u64,
    source: u32,
    latency: u32,
    event: u32,
    encoding: AccessEncoding,
    operation: AccessOperation,
}

const fn load(thread: u32, address: u64, source: u32, latency: u32) -> Step {
    Step {
        process: 8,
        thread,
        processor: thread % 2,
        ip: APP + 0x1000 + 0x100 * thread as u64,
        address,
        source,
        latency,
        event: 0,
        encoding: AccessEncoding::Skylake,
        operation: AccessOperation::Load,
    }
}

const fn store(thread: u32, address: u64) -> Step {
    let encoding = AccessEncoding::Store;
    Step { event: 1, encoding, operation: AccessOperation::Store, ..load(thread, address, 1, 0) }
}

fn times(number: usize, step: Step) -> Vec<Step> {
    vec![step; number]
}

fn records(steps: &[Step]) -> Vec<SampleRecord> {
    let each = (0_u64..).zip(steps).flat_map(|(number, step)| {
        let Step { process, thread, processor, ip, address, source, latency, event, encoding, operation } = *step;
        let time = 1000 + number;
        let sample = PreciseSample {
            time,
            ip,
            process,
            thread,
            processor,
            event,
            interval: 1009,
            kind: PreciseKind::Precise,
            mode: if ip >= NT { Mode::Kernel } else { Mode::User },
            number,
        };
        let access = AccessRecord {
            time,
            address,
            process,
            thread,
            processor,
            event,
            latency,
            kind: AccessKind::Access,
            number: u16::try_from(number & 0xFFFF).unwrap(),
            source,
            instruction_latency: 0,
            encoding,
            operation,
        };
        [SampleRecord::from(sample), access.into()]
    });
    each.collect()
}

/// Returns a session of loads and stores.
fn memory_session() -> RecordedSession {
    let event = |name: &str| RecordedEvent {
        source: 0,
        name: name.to_owned(),
        modes: modes::BOTH | modes::PRECISE,
        interval: 1009,
        frequency: 0,
        core_type: 0,
    };
    let events = vec![event("cpu/event=0xcd,umask=0x01,ldlat=30/"), event("cpu/event=0xd0,umask=0x82/")];
    RecordedSession { events, ..session() }
}

fn recording_of(steps: &[Step]) -> File {
    recorded(&memory_session(), &records(steps))
}

/// Loads of three functions from every level, a few stores, and what is not known.
fn levels() -> File {
    let kernel = Step { ip: NT + 0x500, ..load(9, POOL, 0x7, 90) };
    let steps = [
        times(50, load(9, GLOBAL, 0x01, 5)),
        times(10, load(9, GLOBAL + 0x40, 0x12, 9)),
        times(20, load(9, HEAP, 0x03, 14)),
        times(10, load(9, HEAP + 0x1000, 0x34, 45)),
        times(4, kernel),
        times(3, load(9, HEAP + 0x2000, 0x0B, 310)),
        times(1, load(9, 0, 0x00, 400)),
        times(2, Step { encoding: AccessEncoding::LionCove, ..load(9, HEAP, 0x20, 60) }),
        times(5, store(9, GLOBAL)),
    ];
    recording_of(&steps.concat())
}

/// False sharing of two threads on a line, true sharing on a line of the kernel, a line of one thread, and neighbours.
fn shared() -> File {
    let kernel = |process, thread, source| Step { process, ip: NT + 0x500, ..load(thread, POOL, source, 120) };
    let steps = [
        times(30, load(9, GLOBAL + 0x08, 0x07, 100)),
        times(10, load(9, GLOBAL + 0x08, 0x01, 5)),
        times(20, store(10, GLOBAL + 0x30)),
        times(6, load(10, GLOBAL + 0x30, 0x0D, 260)),
        times(8, kernel(8, 9, 0x07)),
        times(4, kernel(4321, 4322, 0x07)),
        times(2, load(9, HEAP, 0x07, 80)),
        times(15, load(9, HEAP + 0x40, 0x01, 5)),
        times(15, load(10, HEAP + 0x80, 0x01, 5)),
        times(3, Step { encoding: AccessEncoding::IbsZen3, ..load(9, GLOBAL, 1 << 17, 5) }),
        times(1, Step { process: UNKNOWN, ..load(9, HEAP, 0x07, 80) }),
    ];
    recording_of(&steps.concat())
}

#[test]
fn accesses_are_shown_by_what_served_them() {
    let file = levels();
    let text = file.run_on(Some(79), "mem report FILE").out;
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn accesses_are_shown_by_function_and_line() {
    let text = levels().run_on(Some(79), "mem report FILE --sort sym,dcacheline -e 0 --limit 3").out;
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_latencies_are_a_histogram() {
    let text = levels().run_on(Some(79), "mem report FILE --sort latency").out;
    insta::assert_snapshot!(text);
}

#[test]
fn programs_read_the_accesses_as_json_and_csv() {
    let file = levels();
    let json = file.run("mem report FILE --json").json();
    let loads = &json["events"][0];
    let numbers = ["samples", "accesses", "without_memory", "selected", "unknown", "without_address", "different"];
    assert_eq!(numbers.map(|name| loads[name].as_u64().unwrap()), [100, 100, 0, 100, 2, 1, 7]);
    let shares: f64 = loads["rows"].as_array().unwrap().iter().map(|row| row["latency_share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{loads:#}");
    assert_eq!(json["events"][1]["total"]["latency_share"], Value::Null);
    let csv = file.run("mem report FILE --csv --sort source,lock").out;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",walked_share,data_process,source,lock"), "{csv}");
    // 10 loads of 45 of all 2,445 cycles, locked, with page walks.
    let [row] = lines.iter().filter(|line| line.ends_with(",L3,yes")).collect::<Vec<_>>()[..] else { panic!("{csv}") };
    let fields: Vec<&str> = row.split(',').collect();
    let from = fields.len() - 12;
    let error = (0.1_f64 * 0.9 / 100.0).sqrt();
    assert_eq!(fields[from..from + 3], ["10", "0.100000", &format!("{error:.6}")], "{row}");
    assert_eq!(fields[from + 5..], ["45.000000", "45", "1.000000", "1.000000", "", "L3", "yes"], "{row}");
}

#[test]
fn options_select_the_code_of_accesses() {
    let file = levels();
    let text = file.run("mem report FILE --module ntoskrnl --sort operation").out;
    assert!(text.contains("\nAccesses  100 of 100 samples\nSelected  4 of them\n"), "{text}");
    let (exit, report) = file.run("mem report FILE --module ntdll").failure();
    assert_eq!((exit, report.contains("has no module ntdll")), (Exit::NotRecorded, true), "{report}");
}

#[test]
fn lines_that_threads_share_are_shown_with_their_code() {
    let text = shared().run_on(Some(79), "c2c FILE").out;
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn programs_read_the_lines_as_json_and_csv() {
    let file = shared();
    let json = file.run("c2c FILE --json").json();
    let first = &json["lines"][0];
    assert_eq!(first["name"], "app.exe+0x40000");
    assert_eq!((&first["sharing"], &first["threads"], &first["process"]), (&json!("false"), &json!(2), &json!(8)));
    assert_eq!(json["lines"][1]["process"], Value::Null, "the kernel's lines belong to no process");
    let numbers = ["different", "without_line", "hitm_without_line", "silent", "line_bytes"];
    assert_eq!(numbers.map(|name| json[name].as_u64().unwrap()), [3, 1, 1, 3, 64]);
    assert_eq!(json["accesses"]["local_hitm"], 45);
    let csv = file.run("c2c FILE --csv --limit 1").out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    let place = "0x0000000140040000,app.exe+0x40000,8,false,0.705882";
    assert!(lines[1].starts_with(place), "{csv}");
    assert!(lines[1].ends_with(",app.exe,app.exe+0x1900,0,30,40,0,0,1,100.000000,,5.000000,"), "{csv}");
    let double = file.run("c2c FILE --double-cl --json").json();
    let heap = double["lines"].as_array().unwrap().iter().find(|line| line["name"] == "0x50000000").unwrap();
    assert_eq!((&heap["sharing"], &heap["loads"]), (&json!("one thread"), &json!(17)));
}

#[test]
fn a_recording_without_shared_lines_says_so() {
    let text = levels().run("c2c FILE --process 4321").out;
    assert!(text.is_empty(), "{text}");
    let own = recording_of(&times(5, load(9, HEAP, 0x01, 5)));
    let text = own.run("c2c FILE").out;
    assert!(text.ends_with("\n\nno line has loads that hit a modified copy\n"), "{text}");
}

#[test]
fn a_recording_without_accesses_says_how_to_record_them() {
    let mut writer = Writer::new(Vec::new(), &memory_session()).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(&[record(0, 100, 8, APP).into()]).unwrap();
    let file = File::holding(&writer.finish(&summary()).unwrap());
    for verb in ["mem report", "c2c"] {
        let (exit, report) = file.run(&format!("{verb} FILE")).failure();
        assert_eq!(exit, Exit::NotRecorded);
        let end = " have no addresses of data\n  try: .\\client mem record -- COMMAND";
        assert!(report.ends_with(end), "{report}");
    }
}

/// The export has what the code of the source means beside the code.
#[test]
fn the_export_has_a_line_of_each_access() {
    let steps = [load(9, GLOBAL, 0x37, 90), Step { encoding: AccessEncoding::LionCove, ..load(9, HEAP, 0x20, 60) }];
    let csv = recording_of(&steps).run("export FILE --format csv").out;
    let ends: Vec<&str> =
        csv.lines().filter(|line| line.contains(",access,")).map(|line| line.rsplit_once(",,,").unwrap().1).collect();
    let wanted = [
        "load,L3,HITM,miss,yes,0x0000000140040000,90,0x37",
        "load,unknown (0x20),not reported,hit,no,0x0000000050000000,60,0x20",
    ];
    assert_eq!(ends, wanted, "{csv}");
}

/// The widths are those of the latencies: 310 of 2,880 cycles are a load from another node's memory.
#[test]
fn a_flame_graph_draws_for_how_long_loads_waited() {
    let file = levels();
    let graph = file.run("flamegraph FILE --latency -o -").out;
    for text in
        ["latency of cpu/event=0xcd,umask=0x01,ldlat=30/", "remote DRAM (938,370 cycles, 32.29%)", "unknown (0x20)"]
    {
        assert!(graph.contains(text), "{text}: {graph}");
    }
    let stores = recording_of(&times(3, store(9, HEAP)));
    let (exit, report) = stores.run("flamegraph FILE --latency -o -").failure();
    assert!(exit == Exit::NotRecorded && report.ends_with(" has no samples"), "{report}");
}
