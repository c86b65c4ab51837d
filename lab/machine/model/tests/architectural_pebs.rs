//! Architectural PEBS: registers, records, and the product's reading of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use debug_store::pebs::{Format, Part, PebsRecord};
use model::{Fragments, GeneralProtection, Memory, Mode, Processor, RecordedAccess, Selected};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

const BASE: u32 = 0x3F4;
const INDEX: u32 = 0x3F5;
/// `IA32_PMC_GP2_CFG_C`, `IA32_PERFEVTSEL2`, `IA32_PMC2`.
const CONFIG: u32 = 0x190B;
const SELECT: u32 = 0x188;
const COUNTER: u32 = 0x4C3;
const GLOBAL_STATUS: u32 = 0x38E;
const GLOBAL_CTRL: u32 = 0x38F;

const PHYSICAL: u64 = 0x12_3456_7000;
const ENABLE: u64 = 1 << 32;
const RECORD: u64 = 1 << 63;
const AUX: u64 = 1 << 62;

/// Words at physical addresses, which are linear ones too.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<BTreeMap<u64, u64>>>);

impl Memory for Words {
    fn read(&self, address: u64) -> Option<u64> {
        self.0.lock().unwrap().get(&address).copied()
    }

    fn write(&self, address: u64, value: u64) -> bool {
        self.0.lock().unwrap().insert(address, value);
        true
    }

    fn linear(&self, physical: u64) -> Option<u64> {
        (physical >= PHYSICAL).then_some(physical)
    }
}

/// Returns a processor with one page for records, and its memory. Counter 2 counts branches, overflows at the tenth and
/// is loaded with 5 less than an overflow after each record.
fn recording(threshold: u64) -> (Processor, Words) {
    let words = Words::default();
    let dump = cpuid_dumps::find("panther-lake-355").unwrap().cpuid();
    let mut processor =
        Processor::new(Box::new(|leaf, subleaf| dump.cpuid(leaf, subleaf))).with_perf_capabilities(0x2F00);
    processor.set_memory(Box::new(words.clone()));
    for (register, value) in [
        (BASE, PHYSICAL),
        (INDEX, ENABLE | threshold << 36),
        (CONFIG, RECORD | 5_u64.wrapping_neg() & 0xFFFF_FFFF),
        (COUNTER, 10_u64.wrapping_neg() & 0xFFFF_FFFF_FFFF),
        (SELECT, 0xC4 | 1 << 16 | 1 << 22),
        (GLOBAL_CTRL, 1 << 2),
    ] {
        assert_eq!(processor.wrmsr(register, value), Ok(()), "{register:#x}");
    }
    (processor, words)
}

fn branches(selected: Selected) -> u64 {
    u64::from((selected.event, selected.umask) == (0xC4, 0))
}

#[test]
fn registers_refuse_what_the_enumeration_does_not_have() {
    let (mut processor, _) = recording(4);
    let refused = Err(GeneralProtection);
    for (register, value) in [
        (BASE, PHYSICAL + 0x1000), // while records are written
        (CONFIG, 1 << 32),
        (CONFIG, 1 << 39),
        (INDEX, 1 << 27),
        (INDEX, 1 << 63),
        (0x3F1, 0),
        (0x1903 + 4 * 10, 0),
        (0x1987, 0), // fixed counter 1 does not record on a P core
    ] {
        let written = processor.wrmsr(register, value);
        assert_eq!(written.is_err(), register != 0x1987, "{register:#x} {value:#x}");
    }
    processor.wrmsr(INDEX, 0).unwrap();
    assert_eq!(processor.wrmsr(BASE, 1 << 52), refused, "beyond the physical addresses");
    assert_eq!(processor.wrmsr(BASE, PHYSICAL | 1 << 4), refused);
    assert_eq!(processor.wrmsr(BASE, PHYSICAL | 15), Ok(()));
}

#[test]
fn the_event_after_the_overflow_writes_the_record_and_the_threshold_interrupts() {
    let (mut processor, words) = recording(8);
    processor.initialize_lvt();
    processor.set_place(0x4000, 77);
    for (events, index, status) in [(10, 0, 1 << 2), (1, 4, 0), (5, 4, 1 << 2), (1, 8, 1 << 54)] {
        processor.run(Mode::User, &|selected| branches(selected) * events);
        assert_eq!(processor.rdmsr(INDEX), Ok(ENABLE | 8 << 36 | index << 4));
        assert_eq!(processor.rdmsr(GLOBAL_STATUS), Ok(status));
    }
    assert!(processor.interrupt_due());
    assert_eq!(processor.stored().records.values().sum::<u64>(), 2);
    let record: Vec<u64> = (0..8).map(|word| words.read(PHYSICAL + 8 * word).unwrap()).collect();
    assert_eq!(record, [RECORD | 64, 0, 0x4000, 1 << 2, 77, 0, 0, 0]);
}

#[test]
fn a_full_buffer_says_so_and_takes_no_more_records() {
    let (mut processor, words) = recording(4);
    processor.run(Mode::User, &|selected| branches(selected) * 1_000);
    let stored = processor.stored().clone();
    assert_eq!(stored.records.values().sum::<u64>(), 64);
    assert!(stored.records_refused > 0 && stored.faults == 0);
    assert_eq!(processor.rdmsr(INDEX), Ok(ENABLE | 4 << 36 | 1 << 31 | 0x100 << 4));
    assert_eq!(words.read(PHYSICAL + 0x1000), None, "nothing behind the page");
    processor.wrmsr(INDEX, ENABLE | 4 << 36).unwrap();
    processor.run(Mode::User, &|selected| branches(selected));
    assert_eq!(processor.rdmsr(INDEX), Ok(ENABLE | 4 << 36 | 4 << 4), "the next event writes the record");
}

const ACCESS: RecordedAccess =
    RecordedAccess { address: 0xFFFF_F800_0000_1008, source: 0x3C, latency: 300, instruction_latency: 0x1_0007 };

/// Returns the words of the access as a record has them: latencies have 16 bits.
const RECORDED: debug_store::pebs::RecordedAccess =
    debug_store::pebs::RecordedAccess { address: ACCESS.address, source: ACCESS.source, latency: 300 << 32 | 7 };

#[test]
fn the_product_reads_records_in_one_piece_and_in_fragments() {
    for (config, access) in [(0, None), (AUX, Some(RECORDED))] {
        let (mut processor, words) = recording(4);
        processor.set_fragments(Fragments::ByTurns);
        processor.set_accesses(Vec::new(), vec![ACCESS]);
        // MEM_TRANS_RETIRED.STORE_SAMPLE, which counters 0 and 1 record; and branches.
        processor.wrmsr(0x186, 0x02CD | 1 << 16 | 1 << 22).unwrap();
        processor.wrmsr(0x4C1, 1_u64.wrapping_neg() & 0xFFFF_FFFF_FFFF).unwrap();
        processor.wrmsr(0x1903, RECORD | AUX).unwrap();
        processor.wrmsr(GLOBAL_CTRL, 1).unwrap();
        processor.run(Mode::User, &|_| 1);
        processor.wrmsr(INDEX, ENABLE | 4 << 36).unwrap();
        processor.wrmsr(GLOBAL_CTRL, 1 << 2).unwrap();
        let reload = processor.rdmsr(CONFIG).unwrap();
        processor.wrmsr(CONFIG, reload | config).unwrap();
        processor.run(Mode::User, &|selected| branches(selected) * 5);
        for ip in 0..8 {
            processor.set_place(0x4000 + ip, 77);
            processor.run(Mode::User, &|selected| branches(selected) * 6);
        }
        let written = (processor.rdmsr(INDEX).unwrap() >> 4 & 0x7F_FFFF) as usize * 16;
        let (mut begin, mut found) = (0, Vec::new());
        while begin < written {
            let word = |offset: usize| words.read(PHYSICAL + (begin + offset) as u64).unwrap();
            let (part, size) = Format::Architectural.part(written - begin, word);
            found.push(part);
            begin += size;
        }
        let record = |ip| Part::Record(PebsRecord { ip, is_exact: true, counters: Some(0b100), access });
        assert_eq!((begin, found), (written, (0x4000..0x4008).map(record).collect::<Vec<_>>()), "{config:#x}");
    }
}

#[test]
fn a_late_record_arrives_when_the_counters_stop_or_with_the_next_code() {
    let (mut processor, words) = recording(4);
    processor.set_late_records(true);
    processor.initialize_lvt();
    processor.run(Mode::User, &|selected| branches(selected) * 11);
    assert_eq!((processor.rdmsr(INDEX), words.read(PHYSICAL)), (Ok(ENABLE | 4 << 36), None));
    processor.wrmsr(GLOBAL_CTRL, 0).unwrap();
    assert_eq!(processor.rdmsr(INDEX), Ok(ENABLE | 4 << 36 | 4 << 4));
    assert_eq!(processor.rdmsr(GLOBAL_STATUS), Ok(1 << 54));
    assert!(processor.interrupt_due() && words.read(PHYSICAL).is_some());
    processor.wrmsr(GLOBAL_CTRL, 1 << 2).unwrap();
    processor.run(Mode::User, &|selected| branches(selected) * 6);
    processor.run(Mode::User, &|_| 0);
    assert_eq!(processor.rdmsr(INDEX), Ok(ENABLE | 4 << 36 | 8 << 4));
}
