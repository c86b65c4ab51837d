//! Accesses by columns, against scripts with known shares and latencies.

use std::io::Cursor;

use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, CounterSample, PreciseKind, PreciseSample, SampleRecord,
    UNKNOWN,
};
use report::{
    Access, AccessColumn, AccessNames, AccessRow, AccessStats, AccessTable, Accesses, Contents, Filter, NamePattern,
    SampledSource, SymbolIndex,
};

use super::last_branches::recorded;
use super::support::{APP, MISSES, NT, NTDLL, precise, read, sample, symbol_index};

/// What an instruction does in a script.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub process: u32,
    pub thread: u32,
    pub processor: u32,
    pub ip: u64,
    pub address: u64,
    pub source: u32,
    pub latency: u32,
    pub interval: u32,
    pub encoding: AccessEncoding,
    pub operation: AccessOperation,
}

impl Step {
    /// Returns a load on processor 0 by Skylake's encoding.
    pub fn load(source: u32, latency: u32) -> Self {
        Self {
            process: 8,
            thread: 80,
            processor: 0,
            ip: APP + 0x1000,
            address: 0x5000_0000,
            source,
            latency,
            interval: 1009,
            encoding: AccessEncoding::Skylake,
            operation: AccessOperation::Load,
        }
    }

    pub fn records(&self, number: u64) -> (PreciseSample, AccessRecord) {
        let Self { process, thread, processor, ip, address, source, latency, interval, encoding, operation } = *self;
        let time = 1000 + number;
        let counter = CounterSample { thread, processor, time, ..sample(MISSES, process, ip, interval) };
        let access = AccessRecord {
            time,
            address,
            process,
            thread,
            processor,
            event: MISSES,
            latency,
            kind: AccessKind::Access,
            number: u16::try_from(number & 0xFFFF).unwrap(),
            source,
            instruction_latency: 0,
            encoding,
            operation,
        };
        (precise(PreciseKind::Precise, number, counter), access)
    }
}

/// Returns the recording of a script.
pub fn recording(steps: &[Step]) -> Vec<u8> {
    let pairs = (0..).zip(steps).map(|(number, step)| step.records(number));
    recorded(pairs.flat_map(|(sample, access)| [SampleRecord::from(sample), access.into()]).collect())
}

/// Reads what a filter selects.
pub fn accesses(file: &[u8], filter: &Filter) -> (Contents, SymbolIndex, Accesses) {
    let contents = read(file);
    let symbol_index = symbol_index(&contents);
    let mut accesses = Accesses::read(&contents, filter, &mut Cursor::new(file)).unwrap();
    accesses.retain(filter, &symbol_index);
    (contents, symbol_index, accesses)
}

fn rows(steps: &[Step], columns: &[AccessColumn]) -> Vec<AccessRow> {
    let (contents, symbol_index, accesses) = accesses(&recording(steps), &Filter::default());
    AccessTable::new(accesses.all().iter(), columns, &contents, &symbol_index, &AccessNames::default()).first(None).0
}

/// Numbers without a pattern (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Code, probability in percent, lowest latency and the number of different ones.
const SCRIPT: [(u32, u64, u32, u32); 5] =
    [(1, 60, 4, 3), (3, 20, 12, 6), (4, 12, 40, 30), (7, 3, 90, 40), (0xB, 5, 200, 300)];

/// What the rows of the script would be without an error, by code.
fn truth() -> Vec<(f64, f64)> {
    let cycles = |(_, percent, low, width): &(u32, u64, u32, u32)| {
        f64::from(u32::try_from(*percent).unwrap()) * (f64::from(*low) + f64::from(width - 1) / 2.0)
    };
    let all: f64 = SCRIPT.iter().map(cycles).sum();
    SCRIPT.iter().map(|one| (f64::from(u32::try_from(one.1).unwrap()) / 100.0, cycles(one) / all)).collect()
}

/// The shares of 200 recordings of a script differ from the true ones by about as much as their errors say.
#[test]
fn shares_are_those_of_the_script_within_their_errors() {
    let (mut within, mut all) = (0, 0);
    for seed in 0..200 {
        let mut random = Random(seed);
        let steps: Vec<Step> = (0..1_500)
            .map(|_| {
                let mut at = random.below(100);
                let one = SCRIPT.iter().find(|(_, percent, ..)| {
                    let is_it = at < *percent;
                    at = at.saturating_sub(*percent);
                    is_it
                });
                let (code, _, low, width) = *one.unwrap();
                let latency = low + u32::try_from(random.below(width.into())).unwrap();
                // A session that follows a frequency has different intervals.
                Step { interval: 1000 + u32::try_from(random.below(500)).unwrap(), ..Step::load(code, latency) }
            })
            .collect();
        let rows = rows(&steps, &[AccessColumn::Source, AccessColumn::Snoop]);
        assert_eq!(rows.iter().map(|row| row.samples).sum::<u64>(), 1_500);
        for ((code, ..), (share, cycles)) in SCRIPT.iter().zip(truth()) {
            let name = ["L1 none", "L2 none", "L3 none", "L3 HITM", "remote DRAM not reported"];
            let place = SCRIPT.iter().position(|one| one.0 == *code).unwrap();
            let row = rows.iter().find(|row| row.cells.join(" ") == name[place]).unwrap();
            let deviations =
                [(row.share - share) / row.error, (row.latency_share.unwrap() - cycles) / row.latency_error.unwrap()];
            assert!(deviations.iter().all(|one| one.abs() < 5.0), "{name:?} {deviations:?}");
            within += deviations.iter().filter(|one| one.abs() < 2.0).count();
            all += deviations.len();
        }
    }
    // 95.4 % of a normal distribution are within two standard deviations.
    let percent = within * 1000 / all;
    assert!((930..=970).contains(&percent), "{within} of {all}");
}

#[test]
fn a_row_has_mean_percentile_locks_and_page_walks() {
    let steps: Vec<Step> =
        (1..=100).map(|latency| Step::load(if latency <= 25 { 0x31 } else { 0x01 }, latency)).collect();
    let rows = rows(&steps, &[AccessColumn::Source]);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.samples, row.mean, row.percentile), (100, Some(50.5), Some(90)));
    assert_eq!((row.locked, row.walked, row.share, row.error), (0.25, Some(0.25), 1.0, 0.0));
    let with = |step: Step| AccessRow { cells: Vec::new(), ..rows_of(step) };
    let store = Step { encoding: AccessEncoding::Store, operation: AccessOperation::Store, ..Step::load(1, 0) };
    assert_eq!((with(store).latency_share, with(store).mean, with(store).percentile), (None, None, None));
    let nehalem = Step { encoding: AccessEncoding::Nehalem, ..Step::load(1, 3) };
    assert_eq!(with(nehalem).walked, None);
}

fn rows_of(step: Step) -> AccessRow {
    rows(&[step], &[AccessColumn::Source]).remove(0)
}

/// Samples that represent more events have more weight.
#[test]
fn intervals_weigh_samples() {
    let steps = [Step { interval: 300, ..Step::load(1, 10) }, Step { interval: 100, ..Step::load(0xB, 90) }];
    let rows = rows(&steps, &[AccessColumn::Source]);
    let found: Vec<(&str, f64, f64)> =
        rows.iter().map(|row| (&*row.cells[0], row.share, row.latency_share.unwrap())).collect();
    assert_eq!(found, [("remote DRAM", 0.25, 0.75), ("L1", 0.75, 0.25)]);
}

#[test]
fn latencies_are_in_classes_in_their_order() {
    let steps: Vec<Step> = [0, 1, 2, 3, 4, 7, 8, u32::MAX].map(|latency| Step::load(1, latency)).into();
    let rows = rows(&steps, &[AccessColumn::Latency]);
    let found: Vec<(&str, u64)> = rows.iter().map(|row| (&*row.cells[0], row.samples)).collect();
    let last = ("2147483648-4294967295", 1);
    assert_eq!(found, [("not reported", 1), ("1", 1), ("2-3", 2), ("4-7", 2), ("8-15", 1), last]);
}

fn with_owner(row: &AccessRow) -> String {
    let owner = row.owner.as_ref().map_or_else(String::new, |owner| format!(" of {owner}"));
    row.cells.concat() + &owner
}

#[test]
fn addresses_of_user_mode_belong_to_a_process_and_those_of_the_kernel_to_all() {
    let of = |process, address| Step { process, address, ..Step::load(1, 10) };
    let heap = 0x7000_1000;
    let steps = [
        of(8, heap + 1),
        of(8, heap + 0x3F),
        of(12, heap),
        of(8, heap + 0x40),
        of(8, NT + 0x2000),
        of(12, NT + 0x2010),
        of(8, APP + 0x4010),
        of(UNKNOWN, heap),
        of(8, 0),
    ];
    let names = |column| {
        let mut names: Vec<(String, u64)> =
            rows(&steps, &[column]).into_iter().map(|row| (with_owner(&row), row.samples)).collect();
        names.sort();
        names
    };
    let wanted = [
        ("0x70001000 of app.exe (8)", 2),
        ("0x70001000 of other.exe (12)", 1),
        ("0x70001040 of app.exe (8)", 1),
        ("[no address]", 1),
        ("[process unknown]", 1),
        ("app.exe+0x4000 of app.exe (8)", 1),
        ("ntoskrnl.exe+0x2000", 2),
    ];
    let own =
        |list: &[(&str, u64)]| list.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect::<Vec<_>>();
    assert_eq!(names(AccessColumn::Line), own(&wanted));
    assert_eq!(names(AccessColumn::Data).len(), 9);
    assert!(names(AccessColumn::Page).contains(&("0x70001000 of app.exe (8)".to_owned(), 3)));
}

#[test]
fn accesses_are_selected_by_code_and_those_of_no_memory_are_counted() {
    let steps = [
        Step::load(1, 10),
        Step { process: 12, ip: NTDLL + 0x20, ..Step::load(1, 10) },
        Step { operation: AccessOperation::None, ..Step::load(0, 0) },
    ];
    let file = recording(&steps);
    let stats = |filter: &Filter| {
        let (_, _, accesses) = accesses(&file, filter);
        (accesses.stats(SampledSource::from(MISSES)), accesses.all().len())
    };
    let all = AccessStats { samples: 3, accesses: 2, without_memory: 1 };
    assert_eq!(stats(&Filter::default()), (all, 2));
    let modules = vec![NamePattern::new("ntdll")];
    assert_eq!(stats(&Filter { modules, ..Filter::default() }), (all, 1));
    let processes = Some([12.into()].into());
    let one = AccessStats { samples: 1, accesses: 1, without_memory: 0 };
    assert_eq!(stats(&Filter { processes, ..Filter::default() }), (one, 1));
    let (_, _, accesses) = accesses(&file, &Filter { events: Some([0].into()), ..Filter::default() });
    assert!(accesses.is_empty() && accesses.sources().is_empty());
}

#[test]
fn a_column_can_be_of_the_instruction_or_of_the_access() {
    use AccessColumn as Column;
    let steps = [Step { operation: AccessOperation::Store, thread: UNKNOWN, ..Step::load(0xE7, 10) }];
    let columns = [
        Column::Process,
        Column::Thread,
        Column::Module,
        Column::Symbol,
        Column::Operation,
        Column::Snoop,
        Column::Translation,
        Column::Locked,
        Column::Blocked,
    ];
    let wanted =
        ["app.exe (8)", "unknown", "app.exe", "app.exe+0x1000", "store", "HITM", "hit", "yes", "data and address"];
    assert_eq!(rows(&steps, &columns)[0].cells, wanted);
    let unknown = [Step { process: UNKNOWN, ..Step::load(1, 10) }];
    assert_eq!(rows(&unknown, &[Column::Process, Column::Symbol])[0].cells, ["[unknown]", "[unknown]"]);
}

/// The share of the omitted rows follows from the total.
#[test]
fn a_table_has_at_most_as_many_rows_as_wanted() {
    let steps = [1, 3, 4].map(|code| Step::load(code, 10 * code));
    let (contents, symbol_index, accesses) = accesses(&recording(&steps), &Filter::default());
    let first = |limit| {
        let all: Vec<Access> = accesses.all().to_vec();
        AccessTable::new(all.iter(), &[AccessColumn::Source], &contents, &symbol_index, &AccessNames::default())
            .first(limit)
    };
    let (rows, number) = first(Some(2));
    assert_eq!((rows.len(), number, &*rows[0].cells[0]), (2, 3, "L3"));
    assert_eq!(first(None).0.len(), 3);
}
