//! The metrics of our own: their events are in the tables, their groups fit the counters, and level 1 of the top-down
//! method finds the slots again from which its events are made.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::common::{core_type, identity};
use events::metric::{Metric, MetricSet, Values, builtin, groups};
use events::{Counters, Generic, Identity, Table, Target, core_tables};
use proptest::prelude::*;

/// A kind of cores of the bench.
struct Cores {
    name: &'static str,
    identity: Identity,
    table: Option<Table>,
    /// Number of general counters of a thread.
    general: u32,
    /// Bit n: the driver counts with fixed counter n.
    fixed: u16,
    /// The processor or its hypervisor offers MSR_PERF_METRICS.
    has_perf_metrics: bool,
}

/// Every processor of the bench that has counters, with its table.
static CORES: LazyLock<Vec<Cores>> = LazyLock::new(all_cores);

fn all_cores() -> Vec<Cores> {
    let mut found = Vec::new();
    for processor in cpuid_dumps::all() {
        let Some(identity) = identity(processor) else { continue };
        let of_core = core_type(processor);
        let tables = core_tables(identity);
        let table = match of_core {
            Some((wanted, native)) => tables
                .iter()
                .filter(|one| one.core_type.is_none_or(|core_type| core_type == wanted))
                .min_by_key(|one| (u32::from(one.native_model) != native, one.native_model)),
            None => tables.first(),
        };
        let table = table.map(|one| one.table);
        let dump = processor.cpuid();
        let [eax, _, _, edx] = dump.cpuid(0xA, 0);
        let (general, fixed) = if table.is_some_and(|table| table.name().starts_with("amd_")) {
            (if identity.family >= 0x15 { 6 } else { 4 }, 0)
        } else if eax & 0xFF > 0 {
            (eax >> 8 & 0xFF, if eax & 0xFF > 1 && edx & 0x1F >= 3 { 7 } else { 0 })
        } else {
            continue;
        };
        // Makers and families without generic events have no metrics.
        if general == 0 || Generic::Cycles.target(identity).is_err() {
            continue;
        }
        let cores = Cores { name: processor.name, identity, table, general, fixed, has_perf_metrics: true };
        if table.is_some_and(|table| table.find("PERF_METRICS.RETIRING").is_some()) {
            found.push(Cores { has_perf_metrics: false, ..cores });
        }
        found.push(cores);
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

impl Cores {
    fn metrics(&self) -> Vec<Metric> {
        builtin(self.identity, self.table, self.has_perf_metrics)
    }

    /// Returns the counters of an event by its name.
    fn counters(&self, name: &str) -> Option<Counters> {
        match Generic::from_name(name).and_then(|generic| generic.target(self.identity).ok()) {
            Some(Target::Event { counters, .. }) => Some(counters),
            Some(_) => None,
            None => self.table?.find(name).map(|event| event.counters),
        }
    }

    /// Returns whether the events fit on the counters: a search of this test. Fixed counter 3 serves slots and the
    /// metrics that it is divided into.
    fn fits(&self, events: &[&str]) -> bool {
        let general = u16::try_from((1_u32 << self.general) - 1).unwrap();
        let masks: Vec<(u16, u16)> = events
            .iter()
            .filter(|name| !name.starts_with("PERF_METRICS.") && **name != "TOPDOWN.SLOTS")
            .map(|name| self.counters(name).unwrap_or_else(|| panic!("{}: {name}", self.name)))
            .map(|counters| (counters.general_mask & general, counters.fixed_mask & self.fixed))
            .collect();
        place(&masks, 0, 0)
    }
}

fn place(masks: &[(u16, u16)], general: u16, fixed: u16) -> bool {
    let Some(((of_general, of_fixed), rest)) = masks.split_first() else { return true };
    let bits = |mask: u16| (0..16).map(|bit| 1_u16 << bit).filter(move |bit| mask & bit != 0);
    bits(of_fixed & !fixed).any(|bit| place(rest, general, fixed | bit))
        || bits(of_general & !general).any(|bit| place(rest, general | bit, fixed))
}

/// Returns the constants for cores with one thread or two.
fn constants(has_two_threads: bool) -> Values {
    let mut values = Values::default();
    values.set("#SMT_on", f64::from(u8::from(has_two_threads)));
    values.set("#system_tsc_freq", 2e9);
    values
}

#[test]
fn every_event_of_every_metric_is_one_of_the_processor() {
    let mut checked = 0;
    for cores in CORES.iter() {
        for metric in cores.metrics() {
            for name in metric.inputs().into_iter().filter(|name| !name.starts_with('#')) {
                assert!(cores.counters(name).is_some(), "{}: {} needs {name}", cores.name, metric.name);
                checked += 1;
            }
            assert!(metric.name.len() <= 24 && metric.brief.len() <= 70, "{}", metric.name);
        }
    }
    assert!(checked > 2_000, "{checked}");
}

#[test]
fn each_generation_has_the_metrics_that_it_can() {
    let (mut without, mut with_level_2): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    for cores in CORES.iter() {
        let metrics = cores.metrics();
        let has = |name: &str| metrics.iter().any(|metric| metric.name == name);
        for name in ["IPC", "CPI", "Branch_Miss_Ratio", "Branch_MPKI", "Cache_Miss_Ratio", "Cache_MPKI"] {
            assert!(has(name), "{} has no {name}", cores.name);
        }
        let of = |group: &str| metrics.iter().filter(|metric| metric.groups.iter().any(|one| one == group)).count();
        let is_amd = cores.table.is_some_and(|table| table.name().starts_with("amd_"));
        if of("TopdownL1") == 0 {
            without.extend(cores.table.map(Table::name));
        } else {
            assert_eq!(of("TopdownL1"), if is_amd { 5 } else { 4 }, "{}", cores.name);
        }
        // Ice Lake and its relatives have four fields in MSR_PERF_METRICS.
        let has_fields = cores.has_perf_metrics
            && cores.table.is_some_and(|table| table.find("PERF_METRICS.MEMORY_BOUND").is_some());
        let has_level_2 = has_fields || is_amd && of("TopdownL1") > 0;
        assert_eq!(of("TopdownL2"), if has_level_2 { 8 } else { 0 }, "{}", cores.name);
        with_level_2.extend(cores.table.map(Table::name).filter(|_| has_level_2));
    }
    let expected = [
        "amd_fam15h",
        "amd_fam17h_zen1",
        "amd_fam17h_zen2",
        "amd_fam19h_zen3",
        "bonnell",
        "goldmont",
        "goldmontplus",
        "knightslanding",
        "nehalemep",
        "nehalemex",
        "silvermont",
        "westmereep-dp",
        "westmereep-sp",
        "westmereex",
    ];
    assert_eq!(without.into_iter().collect::<Vec<_>>(), expected);
    let expected = [
        "alderlake_goldencove",
        "amd_fam19h_zen4",
        "amd_fam1ah_zen5",
        "amd_fam1ah_zen6",
        "arrowlake_lioncove",
        "emeraldrapids",
        "graniterapids",
        "lunarlake_lioncove",
        "meteorlake_redwoodcove",
        "novalake_coyotecove",
        "pantherlake_cougarcove",
        "sapphirerapids",
    ];
    assert_eq!(with_level_2.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_events_of_each_metric_run_together_where_they_fit() {
    let mut split: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for cores in CORES.iter() {
        for has_two_threads in [false, true] {
            let constants = constants(has_two_threads);
            let mut metrics = cores.metrics();
            // Reference cycles have fixed counter 2 only.
            metrics.retain(|metric| {
                cores.fixed != 0
                    || cores.counters("ref-cycles").is_none_or(|counters| counters.fixed_mask == 0)
                    || metric.name != "Frequency"
            });
            let inputs: Vec<Vec<&str>> = metrics.iter().map(|metric| metric.events(&constants)).collect();
            let fits = |events: &[&str]| cores.fits(events);
            let planned = groups(&inputs, &fits);
            assert!(planned.iter().all(|group| fits(group)), "{}: {planned:?}", cores.name);
            for (metric, events) in metrics.iter().zip(&inputs) {
                let is_in = |group: &Vec<&str>| events.iter().all(|event| group.contains(event));
                if !planned.iter().any(is_in) {
                    assert!(!fits(events), "{}: {} is split", cores.name, metric.name);
                    let table = cores.table.map_or("", Table::name);
                    split.insert((table, metric.name.clone()), events.len());
                }
            }
        }
    }
    // With two threads, the clocks of the core need a general counter, and each thread has four.
    assert!(split.keys().all(|(_, name)| name == "Backend_Bound"), "{split:?}");
    assert!(split.values().all(|events| *events == 5), "{split:?}");
    assert_eq!(split.len(), 12, "{split:?}");
}

/// The slots of a processor: those that each part of level 1 has.
#[derive(Debug, Clone, Copy)]
struct Slots {
    front: u32,
    recovery: u32,
    thrown_away: u32,
    back: u32,
    retiring: u32,
    contention: u32,
}

/// Returns the counts of the events for slots, from the definitions of the events.
fn counts(slots: Slots, width: f64, has_two_threads: bool) -> Values {
    let Slots { front, recovery, thrown_away, back, retiring, contention } = slots;
    let [front, recovery, thrown_away, back, retiring, contention] =
        [front, recovery, thrown_away, back, retiring, contention].map(f64::from);
    let bad = recovery + thrown_away;
    let total = front + bad + back + retiring + contention;
    let mut values = constants(has_two_threads);
    let threads = if has_two_threads { 2.0 } else { 1.0 };
    for (name, value) in [
        ("cycles", total / width),
        ("CPU_CLK_UNHALTED.THREAD_P_ANY", threads * total / width),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", front),
        ("IDQ_BUBBLES.CORE", front),
        ("UOPS_ISSUED.ANY", retiring + thrown_away),
        ("UOPS_RETIRED.RETIRE_SLOTS", retiring),
        ("UOPS_RETIRED.SLOTS", retiring),
        ("INT_MISC.RECOVERY_CYCLES", recovery / width),
        ("INT_MISC.RECOVERY_CYCLES_ANY", threads * recovery / width),
        ("TOPDOWN.SLOTS_P", total),
        ("TOPDOWN.SLOTS", total),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", back),
        ("PERF_METRICS.FRONTEND_BOUND", front),
        ("PERF_METRICS.BAD_SPECULATION", bad),
        ("PERF_METRICS.BACKEND_BOUND", back),
        ("PERF_METRICS.RETIRING", retiring),
        ("TOPDOWN_FE_BOUND.ALL", front),
        ("TOPDOWN_FE_BOUND.ALL_P", front),
        ("TOPDOWN_BAD_SPECULATION.ALL_P", bad),
        ("TOPDOWN_BE_BOUND.ALL", back),
        ("TOPDOWN_BE_BOUND.ALL_P", back),
        ("TOPDOWN_RETIRING.ALL", retiring),
        ("TOPDOWN_RETIRING.ALL_P", retiring),
        ("DISPATCH_STALLS_1.FE_NO_OPS", front),
        ("DISPATCH_STALLS_1.BE_STALLS", back),
        ("DISPATCH_STALLS_1.SMT_CONTENTION", contention),
        ("RETIRED_OPS", retiring),
        ("DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND", front),
        ("DE_NO_DISPATCH_PER_SLOT.BACKEND_STALLS", back),
        ("DE_NO_DISPATCH_PER_SLOT.SMT_CONTENTION", contention),
        ("EX_RET_OPS", retiring),
        ("OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL", retiring + bad),
        ("DE_SRC_OP_DISP.ALL", retiring + bad),
    ] {
        values.set(name, value);
    }
    values
}

/// Returns the slots per clock, by a table of this test.
fn width(table: &str) -> f64 {
    match table {
        "alderlake_gracemont" => 5.0,
        "meteorlake_crestmont" | "arrowlake_crestmont" | "sierraforest" | "grandridge" | "amd_fam19h_zen4" => 6.0,
        "amd_fam1ah_zen5" | "amd_fam1ah_zen6" => 8.0,
        // Elkhart Lake and Snow Ridge, too.
        _ => 4.0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn level_1_finds_the_slots_again_and_sums_to_100_percent(
        parts in prop::array::uniform6(0_u32..1_000_000_000), has_two_threads: bool,
    ) {
        let [front, recovery, thrown_away, back, retiring, contention] = parts;
        let mut seen = BTreeSet::new();
        for cores in CORES.iter() {
            let Some(table) = cores.table.filter(|table| seen.insert(table.name())) else { continue };
            let is_amd = table.name().starts_with("amd_");
            let contention = if is_amd { contention } else { 0 };
            let slots = Slots { front, recovery, thrown_away, back, retiring, contention };
            let total: f64 = [front, recovery, thrown_away, back, retiring, contention].map(f64::from).iter().sum();
            prop_assume!(total > 0.0);
            let mut metrics = cores.metrics();
            metrics.retain(|metric| metric.groups.iter().any(|group| group == "TopdownL1"));
            if metrics.is_empty() {
                continue;
            }
            let set = MetricSet::new(metrics);
            let values = set.evaluate(&counts(slots, width(table.name()), has_two_threads));
            let mut sum = 0.0;
            for (metric, value) in set.metrics().iter().zip(values) {
                let value = metric.scale * value.unwrap_or_else(|reason| panic!("{}: {reason}", metric.name));
                sum += value;
                let part = match metric.name.as_str() {
                    "Frontend_Bound" => f64::from(front),
                    "Bad_Speculation" => f64::from(recovery) + f64::from(thrown_away),
                    "Backend_Bound" => f64::from(back),
                    "Retiring" => f64::from(retiring),
                    "SMT_Contention" => f64::from(contention),
                    other => panic!("{other}"),
                };
                let expected = 100.0 * part / total;
                prop_assert!((value - expected).abs() < 1e-6, "{}: {} is {value}, not {expected}", table.name(), metric.name);
            }
            prop_assert!((sum - 100.0).abs() < 1e-6, "{}: the sum is {sum}", table.name());
        }
    }
}

/// Returns the counts of the events of level 2 beside those of level 1: of each of the first four parts, `shares` is
/// what one half of level 2 has of it, in thousandths.
fn counts_2(slots: Slots, width: f64, shares: [u32; 4]) -> Values {
    let mut values = counts(slots, width, false);
    let [front, bad, back, retiring] = shares.map(|share| f64::from(share) / 1000.0);
    let lost = f64::from(slots.recovery) + f64::from(slots.thrown_away);
    let (part, one) = (|of: u32, share: f64| f64::from(of) * share, 1e6);
    for (name, value) in [
        ("PERF_METRICS.FETCH_LATENCY", part(slots.front, front)),
        ("PERF_METRICS.BRANCH_MISPREDICTS", lost * bad),
        ("PERF_METRICS.MEMORY_BOUND", part(slots.back, back)),
        ("PERF_METRICS.HEAVY_OPERATIONS", part(slots.retiring, retiring)),
        ("DISPATCH_STALLS_1.FE_NO_OPS_CYCLES", part(slots.front, front) / width),
        ("DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND_CYCLES", part(slots.front, front) / width),
        ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", one * bad),
        ("EX_RET_BRN_MISP", one * bad),
        ("RESYNCS", one * (1.0 - bad)),
        ("BP_REDIRECTS.RESYNC", one * (1.0 - bad)),
        ("BP_FE_REDIR.RESYNC", one * (1.0 - bad)),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", one),
        ("EX_NO_RETIRE.NOT_COMPLETE", one),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", one * back),
        ("EX_NO_RETIRE.LOAD_NOT_COMPLETE", one * back),
        ("RETIRED_UCODE_OPS", part(slots.retiring, retiring)),
        ("EX_RET_UCODE_OPS", part(slots.retiring, retiring)),
    ] {
        values.set(name, value);
    }
    values
}

/// Returns the values of a processor's metrics of levels 1 and 2, by their names.
fn levels(cores: &Cores, values: &Values) -> BTreeMap<String, Result<f64, String>> {
    let mut metrics = cores.metrics();
    metrics.retain(|metric| metric.groups.iter().any(|group| group.starts_with("TopdownL")));
    let set = MetricSet::new(metrics);
    set.metrics()
        .iter()
        .zip(set.evaluate(values))
        .map(|(metric, value)| {
            (metric.name.clone(), value.map(|value| metric.scale * value).map_err(|reason| reason.to_string()))
        })
        .collect()
}

/// The halves of each part of level 1, by Intel and by AMD.
const HALVES: [(&str, [&str; 2], [&str; 2]); 4] = [
    ("Frontend_Bound", ["Fetch_Latency", "Fetch_Bandwidth"], ["Fetch_Latency", "Fetch_Bandwidth"]),
    ("Bad_Speculation", ["Branch_Mispredicts", "Machine_Clears"], ["Branch_Mispredicts", "Machine_Clears"]),
    ("Backend_Bound", ["Memory_Bound", "Core_Bound"], ["Memory_Bound", "Core_Bound"]),
    ("Retiring", ["Heavy_Operations", "Light_Operations"], ["Microcode_Operations", "Fastpath_Operations"]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_halves_of_level_2_sum_to_their_part_of_level_1_and_have_their_shares(
        parts in prop::array::uniform6(0_u32..1_000_000_000), shares in prop::array::uniform4(0_u32..=1000),
    ) {
        let [front, recovery, thrown_away, back, retiring, contention] = parts;
        let mut seen = BTreeSet::new();
        for cores in CORES.iter() {
            let Some(table) = cores.table.filter(|table| cores.has_perf_metrics && seen.insert(table.name())) else {
                continue;
            };
            let is_amd = table.name().starts_with("amd_");
            let contention = if is_amd { contention } else { 0 };
            let slots = Slots { front, recovery, thrown_away, back, retiring, contention };
            prop_assume!(parts.iter().take(5).any(|part| *part > 0));
            let values = levels(cores, &counts_2(slots, width(table.name()), shares));
            if !values.contains_key("Core_Bound") {
                continue;
            }
            for ((whole, intel, amd), share) in HALVES.into_iter().zip(shares) {
                let value = |name: &str| values[name].clone().unwrap_or_else(|reason| panic!("{name}: {reason}"));
                let (whole, [first, second]) = (value(whole), (if is_amd { amd } else { intel }).map(value));
                prop_assert!((first + second - whole).abs() < 1e-6, "{}: {first} + {second}, {whole}", table.name());
                let expected = whole * f64::from(share) / 1000.0;
                prop_assert!((first - expected).abs() < 1e-6, "{}: {first}, not {expected}", table.name());
            }
        }
    }
}

/// Returns the cores of the bench with this table.
fn with_table(name: &str) -> &'static Cores {
    let is_it = |cores: &&Cores| cores.has_perf_metrics && cores.table.is_some_and(|table| table.name() == name);
    CORES.iter().find(is_it).unwrap_or_else(|| panic!("no processor has {name}"))
}

fn set_all(known: &[(&str, f64)]) -> Values {
    let mut values = Values::default();
    for (name, value) in known {
        values.set(name, *value);
    }
    values
}

/// Asserts that the metrics have these values, and no others.
fn assert_values(cores: &Cores, counts: &[(&str, f64)], expected: &[(&str, f64)]) {
    let found = levels(cores, &set_all(counts));
    assert_eq!(found.len(), expected.len(), "{}: {found:?}", cores.name);
    for (name, percent) in expected {
        let value = found[*name].clone().unwrap_or_else(|reason| panic!("{}: {name}: {reason}", cores.name));
        assert!((value - percent).abs() < 1e-9, "{}: {name} is {value}, not {percent}", cores.name);
    }
}

#[test]
fn levels_1_and_2_of_zen_are_those_worked_out_by_hand() {
    // 1,000 clocks with six slots. 50 clocks without any op are 300 of the 900 slots that the front end left empty.
    // 2,700 ops were dispatched, and 2,400 retired, of which 60 were microcode. Nine restarts of ten are mispredicted
    // branches; in three clocks of four that waited, it was for a load.
    assert_values(
        with_table("amd_fam19h_zen4"),
        &[
            ("cycles", 1000.0),
            ("DISPATCH_STALLS_1.FE_NO_OPS", 900.0),
            ("DISPATCH_STALLS_1.FE_NO_OPS_CYCLES", 50.0),
            ("DISPATCH_STALLS_1.BE_STALLS", 1800.0),
            ("DISPATCH_STALLS_1.SMT_CONTENTION", 600.0),
            ("OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL", 2700.0),
            ("RETIRED_OPS", 2400.0),
            ("RETIRED_UCODE_OPS", 60.0),
            ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 9.0),
            ("RESYNCS", 1.0),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 400.0),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 300.0),
        ],
        &[
            ("Frontend_Bound", 15.0),
            ("Bad_Speculation", 5.0),
            ("Backend_Bound", 30.0),
            ("Retiring", 40.0),
            ("SMT_Contention", 10.0),
            ("Fetch_Latency", 5.0),
            ("Fetch_Bandwidth", 10.0),
            ("Branch_Mispredicts", 4.5),
            ("Machine_Clears", 0.5),
            ("Memory_Bound", 22.5),
            ("Core_Bound", 7.5),
            ("Microcode_Operations", 1.0),
            ("Fastpath_Operations", 39.0),
        ],
    );
    // 1,000 clocks with eight slots: 25 clocks are 200 of the 1,200.
    let zen_5 = [
        ("cycles", 1000.0),
        ("DISPATCH_STALLS_1.FE_NO_OPS", 1200.0),
        ("DISPATCH_STALLS_1.FE_NO_OPS_CYCLES", 25.0),
        ("DISPATCH_STALLS_1.BE_STALLS", 2000.0),
        ("DISPATCH_STALLS_1.SMT_CONTENTION", 0.0),
        ("OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL", 4800.0),
        ("RETIRED_OPS", 4000.0),
        ("RETIRED_UCODE_OPS", 400.0),
        ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 30.0),
        ("BP_REDIRECTS.RESYNC", 10.0),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 500.0),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 100.0),
    ];
    let expected = [
        ("Frontend_Bound", 15.0),
        ("Bad_Speculation", 10.0),
        ("Backend_Bound", 25.0),
        ("Retiring", 50.0),
        ("SMT_Contention", 0.0),
        ("Fetch_Latency", 2.5),
        ("Fetch_Bandwidth", 12.5),
        ("Branch_Mispredicts", 7.5),
        ("Machine_Clears", 2.5),
        ("Memory_Bound", 5.0),
        ("Core_Bound", 20.0),
        ("Microcode_Operations", 5.0),
        ("Fastpath_Operations", 45.0),
    ];
    assert_values(with_table("amd_fam1ah_zen5"), &zen_5, &expected);
    // The events of Zen 6 have the same encodings by other names.
    let (zen_5_events, zen_6_events) = ("amd_fam1ah_zen5", "amd_fam1ah_zen6");
    let encoding = |table: &str, name: &str| with_table(table).table.unwrap().find(name).unwrap().encoding;
    let names = |wanted| {
        let events = with_table(zen_6_events).table.unwrap().events();
        let inputs: Vec<Metric> = with_table(zen_6_events).metrics();
        let is_input = |name: &str| inputs.iter().any(|metric| metric.inputs().contains(&name));
        events
            .filter(move |event| event.encoding == wanted)
            .map(|event| event.name)
            .find(|name| is_input(name))
            .unwrap()
    };
    let renamed: Vec<(String, f64)> = zen_5
        .into_iter()
        .map(|(name, value)| match name {
            "cycles" => (name.to_owned(), value),
            _ => (names(encoding(zen_5_events, name)), value),
        })
        .collect();
    let zen_6: Vec<(&str, f64)> = renamed.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_values(with_table(zen_6_events), &zen_6, &expected);
}

#[test]
fn level_2_of_intel_is_that_worked_out_by_hand_and_no_part_is_negative() {
    // Of 1,000 slots. A field of level 2 is rounded on its own and can exceed that of level 1.
    let counts = |fetch_latency: f64| {
        [
            ("TOPDOWN.SLOTS", 1000.0),
            ("PERF_METRICS.FRONTEND_BOUND", 200.0),
            ("PERF_METRICS.BAD_SPECULATION", 100.0),
            ("PERF_METRICS.BACKEND_BOUND", 400.0),
            ("PERF_METRICS.RETIRING", 300.0),
            ("PERF_METRICS.FETCH_LATENCY", fetch_latency),
            ("PERF_METRICS.BRANCH_MISPREDICTS", 50.0),
            ("PERF_METRICS.MEMORY_BOUND", 260.0),
            ("PERF_METRICS.HEAVY_OPERATIONS", 70.0),
        ]
    };
    let expected = |fetch_latency: f64, fetch_bandwidth: f64| {
        [
            ("Frontend_Bound", 20.0),
            ("Bad_Speculation", 10.0),
            ("Backend_Bound", 40.0),
            ("Retiring", 30.0),
            ("Fetch_Latency", fetch_latency),
            ("Fetch_Bandwidth", fetch_bandwidth),
            ("Branch_Mispredicts", 5.0),
            ("Machine_Clears", 5.0),
            ("Memory_Bound", 26.0),
            ("Core_Bound", 14.0),
            ("Heavy_Operations", 7.0),
            ("Light_Operations", 23.0),
        ]
    };
    for table in ["sapphirerapids", "lunarlake_lioncove", "novalake_coyotecove"] {
        assert_values(with_table(table), &counts(120.0), &expected(12.0, 8.0));
        assert_values(with_table(table), &counts(204.0), &expected(20.4, 0.0));
    }
}

#[test]
fn level_1_without_slots_has_no_value() {
    for cores in CORES.iter() {
        let set = MetricSet::new(cores.metrics());
        let slots = Slots { front: 0, recovery: 0, thrown_away: 0, back: 0, retiring: 0, contention: 0 };
        for (metric, value) in set.metrics().iter().zip(set.evaluate(&counts(slots, 4.0, false))) {
            assert!(value.is_err(), "{}: {} is {value:?}", cores.name, metric.name);
        }
    }
}
