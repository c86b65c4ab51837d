//! Accesses of memory behind the samples of load latency and of stores, from the records that the processor writes to
//! the recording and the export.

use std::collections::BTreeSet;
use std::fs::{self, File};

use bench_protocol::InterruptSite;
use protocol::{AccessEncoding, AccessOperation, AccessRecord, Record};
use recording::{Block, Reader};
use serde_json::{Value, json};
use tests::Lab;

use crate::record::symbol;

const NAMED: &str = "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_16:ldlat=30:p@400k";
const STORE_SAMPLE: &str = "MEM_TRANS_RETIRED.STORE_SAMPLE:p@400k";
const SMALL_LOADS: &str = "MEM_UOPS_RETIRED.LOAD_LATENCY_GT_16:ldlat=30:p@400k";
const SMALL_STORES: &str = "MEM_UOPS_RETIRED.STORE_LATENCY:p@400k";

/// What records of a processor have of an access, besides its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latencies {
    /// The latency of loads.
    OfLoads,
    /// Those of loads and stores and their instructions, each in 16 bits.
    OfAll,
}

/// Processor, events, how loads and stores are encoded, and their latencies.
type Case = (u32, &'static [&'static str], [AccessEncoding; 2], Latencies);

const BIG: &[&str] = &[NAMED, STORE_SAMPLE];

/// No other event may have a general counter beside the stores of E cores.
const SMALL: [&[&str]; 2] = [&[SMALL_LOADS], &[SMALL_STORES]];

/// Identities, with a case for each of their core types. One for each record format and encoding.
const PROCESSORS: [(&str, &[Case]); 11] = [
    (
        "nehalem-920",
        &[(
            0,
            &["cpu/event=0x0B,umask=0x10,ldlat=30/p@400k"],
            [AccessEncoding::Nehalem, AccessEncoding::Store],
            Latencies::OfLoads,
        )],
    ),
    (
        "sandy-bridge-2600k",
        &[(
            0,
            &["MEM_TRANS_RETIRED.PRECISE_STORE:p@400k"],
            [AccessEncoding::SandyBridge, AccessEncoding::Store],
            Latencies::OfLoads,
        )],
    ),
    (
        "haswell-4710mq",
        &[(
            0,
            &["cpu/event=0xCD,umask=0x01,ldlat=30/p@400k", "MEM_UOPS_RETIRED.ALL_STORES:p@400k"],
            [AccessEncoding::SandyBridge, AccessEncoding::Store],
            Latencies::OfLoads,
        )],
    ),
    (
        "skylake-6600k",
        &[(
            0,
            &[NAMED, "MEM_INST_RETIRED.ALL_STORES:p@400k"],
            [AccessEncoding::Skylake, AccessEncoding::Store],
            Latencies::OfLoads,
        )],
    ),
    ("sapphire-rapids-2475x", &[(0, BIG, [AccessEncoding::Skylake; 2], Latencies::OfAll)]),
    (
        "alder-lake-p-12900h",
        &[
            (0, BIG, [AccessEncoding::Skylake; 2], Latencies::OfAll),
            (1, SMALL[0], [AccessEncoding::Gracemont; 2], Latencies::OfAll),
        ],
    ),
    ("alder-lake-p-12900h", &[(1, SMALL[1], [AccessEncoding::Gracemont; 2], Latencies::OfAll)]),
    (
        "lunar-lake-288v",
        &[
            (0, BIG, [AccessEncoding::LionCove; 2], Latencies::OfAll),
            (1, SMALL[0], [AccessEncoding::Crestmont; 2], Latencies::OfAll),
        ],
    ),
    ("lunar-lake-288v", &[(1, SMALL[1], [AccessEncoding::Crestmont; 2], Latencies::OfAll)]),
    (
        "panther-lake-355",
        &[
            (0, BIG, [AccessEncoding::LionCove; 2], Latencies::OfAll),
            (1, SMALL[0], [AccessEncoding::Crestmont; 2], Latencies::OfAll),
        ],
    ),
    ("panther-lake-355", &[(1, SMALL[1], [AccessEncoding::Crestmont; 2], Latencies::OfAll)]),
];

/// Address, source, latency, and latency of the instruction: of user mode, of the kernel, of zero, not canonical and of
/// a reserved source; the last is below the threshold.
const LOADS: [[u64; 4]; 5] = [
    [0x7FF6_1234_5678, 0x5, 31, 32],
    [0xFFFF_F800_0000_1008, 0x3C, 0x1_0020, 0x1_0007],
    [0, 0x1, 30, 0],
    [0x8000_0000_0000_0000, 0x1F, 400, 500],
    [0x1111_1111, 0x1, 29, 30],
];
const STORES: [[u64; 4]; 3] =
    [[0x7FF6_1234_5680, 0x31, 9, 10], [0, 0x0, 0, 0], [0xFFFF_F800_0000_2000, 0x7, 700, 0xFFFF]];

/// Address, source, both latencies, and operation.
type Seen = (u64, u32, u32, u16, u8);

/// Returns what clients see of the accesses that the model records.
fn seen(of: AccessOperation, accesses: &[[u64; 4]], latencies: Latencies) -> Vec<Seen> {
    let low = |value: u64| (value & 0xFFFF) as u16;
    let seen = |[address, source, latency, instruction]: &[u64; 4]| {
        let (latency, instruction) = match (latencies, of) {
            (Latencies::OfAll, _) => (u32::from(low(*latency)), low(*instruction)),
            (Latencies::OfLoads, AccessOperation::Load) => (u32::try_from(*latency).unwrap(), 0),
            (Latencies::OfLoads, _) => (0, 0),
        };
        (*address, u32::try_from(*source).unwrap(), latency, instruction, of as u8)
    };
    accesses.iter().map(seen).collect()
}

/// Reads the accesses of a recording, and the number of precise samples.
fn read(lab: &mut Lab) -> (Vec<AccessRecord>, usize) {
    let file = File::open(lab.wine().drive_c("accesses.rec")).unwrap();
    let (mut accesses, mut precise) = (Vec::new(), 0);
    for block in Reader::new(file).unwrap() {
        let Block::Samples(records) = block.unwrap() else { continue };
        for record in records {
            match record.parse().unwrap() {
                Record::Access(access) => accesses.push(access),
                Record::Precise(_) => precise += 1,
                _ => {}
            }
        }
    }
    (accesses, precise)
}

/// Checks the export of the recording: address, latency and source of each access are its last fields.
fn check_export(lab: &mut Lab, accesses: &[AccessRecord]) {
    let export = ["export", "--format", "csv", "-o", "C:\\accesses.csv", "C:\\accesses.rec"];
    lab.client(&export).unwrap().success().unwrap();
    let lines = fs::read_to_string(lab.wine().drive_c("accesses.csv")).unwrap();
    let exported: BTreeSet<String> = lines
        .lines()
        .filter(|line| line.split(',').nth(1) == Some("access"))
        .map(|line| line.rsplit(',').take(3).collect::<Vec<_>>().join(","))
        .collect();
    let expected = accesses
        .iter()
        .map(|AccessRecord { address, latency, source, .. }| format!("{source:#x},{latency},{address:#018x}"));
    assert_eq!(exported, expected.collect());
}

/// Data in lines of their own: neighbours, each of a thread, and a line that one thread alone accesses.
const NEIGHBOURS: [u64; 2] = [0x7000_0000, 0x7000_0040];
const ONE_THREAD: u64 = 0x7000_1000;

/// Source of a load and the last number of its access, for [`Lab`].
pub type Source = [u64; 2];

/// Lets two threads of workload.exe use the ends of a queue, which share a cache line, and checks that `c2c` finds this
/// line first, and that `mem report` names the members.
pub fn check_sharing(lab: &mut Lab, modified: Source, near: Source) {
    let workload = lab.workload().unwrap();
    let (description, load) =
        (workload.description.clone(), |address, [source, last]: Source, latency| [address, source, latency, last]);
    let function = |name: &str| description.functions.iter().find(|function| function.name == name).unwrap().address;
    let (head, tail) = (description.queue, description.queue + 8);
    let threads = [description.thread, description.thread + 4];
    let accesses = [
        (
            "alpha",
            vec![
                load(head, modified, 100),
                load(head, modified, 100),
                load(NEIGHBOURS[0], near, 31),
                load(ONE_THREAD, modified, 90),
            ],
            vec![],
        ),
        ("beta", vec![load(tail, modified, 120), load(NEIGHBOURS[1], near, 31)], vec![[tail, 1, 0, 0]]),
    ];
    for (processor, (name, loads, stores)) in (0..).zip(&accesses) {
        let thread = threads[processor as usize];
        let site = InterruptSite { ip: function(name), user: true, process: description.process, thread, weight: 1 };
        lab.wire.set_interrupt_sites(processor, &[site]).unwrap();
        lab.wire.set_accesses(processor, loads, stores).unwrap();
    }
    lab.run_in_real_time().unwrap();
    let arguments = ["mem", "record", "-a", "-C", "0,1", "-o", "C:\\shared.rec", "--duration", "0.5s"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();

    let shared = lab.client(&["c2c", "C:\\shared.rec", "--type", "--json"]).unwrap().json().unwrap();
    let lines = shared["lines"].as_array().unwrap();
    let addresses: Vec<&Value> = lines.iter().map(|line| &line["address"]).collect();
    let wanted = [head, ONE_THREAD].map(|address| json!(format!("{address:#018x}")));
    assert_eq!(addresses, wanted.iter().collect::<Vec<_>>(), "{shared:#}");
    let [first, other] = &lines[..] else { panic!("{shared:#}") };
    assert_eq!((&first["sharing"], &first["threads"]), (&json!("false"), &json!(2)), "{first:#}");
    assert_eq!((&other["sharing"], &other["threads"]), (&json!("one thread"), &json!(1)), "{other:#}");
    let places = first["places"].as_array().unwrap();
    let seen: BTreeSet<_> = places
        .iter()
        .map(|place| {
            let [symbol, variable] = ["symbol", "variable"].map(|name| place[name].as_str().unwrap());
            (place["offset"].as_u64().unwrap(), place["thread"].as_u64().unwrap(), symbol, variable)
        })
        .collect();
    let [alpha, beta] = ["alpha", "beta"].map(symbol);
    let wanted = [
        (0, threads[0].into(), &*alpha, "workload_data::QUEUE.head"),
        (8, threads[1].into(), &*beta, "workload_data::QUEUE.tail"),
    ];
    assert_eq!(seen, wanted.into(), "{first:#}");

    let report = lab.client(&["mem", "report", "C:\\shared.rec", "--type", "--json"]).unwrap().json().unwrap();
    let rows = report["events"].as_array().unwrap().iter().flat_map(|event| event["rows"].as_array().unwrap());
    let members: BTreeSet<_> =
        rows.map(|row| (row["columns"]["type"].as_str(), row["columns"]["member"].as_str())).collect();
    let queue = Some("workload_data::Queue");
    for member in ["head +0x0", "tail +0x8"] {
        assert!(members.contains(&(queue, Some(member))), "{report:#}");
    }
    drop(workload);
}

#[test]
fn each_sample_of_loads_and_stores_has_its_access_on_every_generation_and_core_type() {
    let mut lab = Lab::boot("nehalem-920").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, cases) in PROCESSORS {
        probe.service("unload", "halprof").unwrap().unwrap();
        lab.check_clean().unwrap();
        lab.become_processor(identity).unwrap();
        probe.service("load", "halprof").unwrap().unwrap();
        for (processor, ..) in cases {
            lab.wire.set_accesses(*processor, &LOADS, &STORES).unwrap();
        }
        let events = cases.iter().flat_map(|(_, events, ..)| events.iter().copied()).collect::<Vec<_>>().join(",");
        let processors = cases.iter().map(|(processor, ..)| processor.to_string()).collect::<Vec<_>>().join(",");
        lab.run_in_real_time().unwrap();
        let arguments =
            ["record", "-a", "-C", &processors, "-e", &events, "-o", "C:\\accesses.rec", "--duration", "0.3s"];
        lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let (accesses, precise) = read(&mut lab);
        assert!(precise > LOADS.len() && accesses.len() == precise, "{identity}: {precise}, {}", accesses.len());
        for (processor, events, [of_loads, of_stores], latencies) in cases {
            let own: Vec<_> = accesses.iter().filter(|access| access.processor == *processor).collect();
            let found: BTreeSet<Seen> = own
                .iter()
                .map(|access| {
                    let AccessRecord { address, source, latency, instruction_latency, operation, .. } = **access;
                    (address, source, latency, instruction_latency, operation as u8)
                })
                .collect();
            let has = |text: &str| events.iter().any(|event| event.contains(text));
            let loads = if has("ldlat") { &LOADS[..4] } else { &[] };
            let stores = if has("STORE") { &STORES[..] } else { &[] };
            let mut wanted = seen(AccessOperation::Load, loads, *latencies);
            wanted.extend(seen(AccessOperation::Store, stores, *latencies));
            assert_eq!(found, wanted.into_iter().collect(), "{identity} {processor}");
            let is_encoded = |access: &&AccessRecord| {
                let encoding = if access.operation == AccessOperation::Load { of_loads } else { of_stores };
                access.encoding == *encoding
            };
            assert!(own.iter().all(is_encoded), "{identity} {processor}: {:?}", own[0]);
        }
        check_export(&mut lab, &accesses);
        if identity == "skylake-6600k" {
            check_sharing(&mut lab, [0x7, 0], [0x1, 0]);
        }
    }
    drop(probe);
    lab.finish().unwrap();
}
