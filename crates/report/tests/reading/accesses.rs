//! The accesses of samples of load latency.

use std::io::Cursor;

use protocol::{AccessEncoding, AccessKind, AccessOperation, AccessRecord, PreciseKind, PreciseSample, SampleRecord};
use report::{Filter, NamePattern, Slice, samples_csv};

use super::last_branches::recorded;
use super::support::{APP, CYCLES, MISSES, NTDLL, precise, read, sample, symbol_index};

/// Returns a precise sample and its access, whose address is the number of the sample.
fn load(number: u64, process: u32, ip: u64) -> (PreciseSample, AccessRecord) {
    let sample = precise(PreciseKind::Precise, number, sample(MISSES, process, ip, 1009));
    let PreciseSample { time, process, thread, processor, event, .. } = sample;
    let low = u16::try_from(number & 0xFFFF).unwrap();
    let kind = AccessKind::Access;
    let access = AccessRecord {
        time,
        address: number,
        process,
        thread,
        processor,
        event,
        latency: 30,
        kind,
        number: low,
        source: 1,
        instruction_latency: 0,
        encoding: AccessEncoding::Skylake,
        operation: AccessOperation::Load,
    };
    (sample, access)
}

/// Returns the addresses of the samples and the data of the accesses in the lines of a filter, in their order.
fn lines(records: &[SampleRecord], filter: &Filter) -> Vec<(String, u64)> {
    let file = recorded(records.to_vec());
    let contents = read(&file);
    let mut text = Vec::new();
    samples_csv(&contents, &symbol_index(&contents), filter, &mut Cursor::new(&file), &mut text).unwrap();
    let mut lines = csv::Reader::from_reader(&text[..]);
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let line = |line: csv::StringRecord| {
        let field = |index: usize| line.get(index).unwrap().to_owned();
        let kind = field(1);
        let address = number(&field(if kind == "access" { 26 } else { 9 }));
        assert!([4, 5, 6].iter().all(|place| !field(*place).is_empty()), "process, its name and thread of {kind}");
        (kind, address)
    };
    lines.records().map(|record| line(record.unwrap())).collect()
}

#[test]
fn an_access_is_selected_with_its_sample() {
    let loads = [load(0, 8, APP + 0x1000), load(1, 12, NTDLL + 0x20), load(0x1_0002, 8, NTDLL + 0x40)];
    let records: Vec<SampleRecord> =
        loads.iter().flat_map(|(sample, access)| [SampleRecord::from(*sample), (*access).into()]).collect();
    let of = |filter: Filter| {
        let accesses = lines(&records, &filter).into_iter().filter(|(kind, _)| kind == "access");
        accesses.map(|(_, address)| address).collect::<Vec<u64>>()
    };
    assert_eq!(of(Filter::default()), [0, 1, 0x1_0002]);
    assert_eq!(of(Filter { processes: Some([12.into()].into()), ..Filter::default() }), [1]);
    assert_eq!(of(Filter { modules: vec![NamePattern::new("ntdll")], ..Filter::default() }), [1, 0x1_0002]);
    assert!(of(Filter { events: Some([CYCLES].into()), ..Filter::default() }).is_empty());
    let slice = Slice { threads: Some([loads[0].0.thread].into()), ..Slice::default() };
    assert_eq!(of(Filter { slice, ..Filter::default() }), [0, 0x1_0002]);
}

/// A line follows the sample whose load it is, and a ring can lose either.
#[test]
fn an_access_without_its_sample_is_not_shown() {
    let ((sample, access), (lost, without)) = (load(8, 8, APP + 0x1000), load(9, 8, APP + 0x1000));
    let other = AccessRecord { address: 99, ..access };
    for record in [
        without,
        AccessRecord { processor: 1, ..other },
        AccessRecord { time: access.time + 1, ..other },
        AccessRecord { event: CYCLES, ..other },
        AccessRecord { process: 12, ..other },
        AccessRecord { thread: 12, ..other },
    ] {
        let wanted = [("precise".to_owned(), APP + 0x1000), ("access".to_owned(), 8)];
        assert_eq!(lines(&[sample.into(), record.into()], &Filter::default()), wanted[..1], "{record:?}");
        assert_eq!(lines(&[sample.into(), record.into(), access.into()], &Filter::default()), wanted, "{record:?}");
    }
    let alone = lines(&[access.into(), access.into(), lost.into()], &Filter::default());
    assert_eq!(alone, [("precise".to_owned(), APP + 0x1000)]);
    let twice = lines(&[sample.into(), access.into(), access.into()], &Filter::default());
    assert_eq!(twice.len(), 2, "one load has one access");
}
