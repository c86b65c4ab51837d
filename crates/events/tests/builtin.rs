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
    let mut without: BTreeSet<&str> = BTreeSet::new();
    for cores in CORES.iter() {
        let metrics = cores.metrics();
        let has = |name: &str| metrics.iter().any(|metric| metric.name == name);
        for name in ["IPC", "CPI", "Branch_Miss_Ratio", "Branch_MPKI", "Cache_Miss_Ratio", "Cache_MPKI"] {
            assert!(has(name), "{} has no {name}", cores.name);
        }
        let level_1 = metrics.iter().filter(|metric| metric.groups.iter().any(|group| group == "TopdownL1")).count();
        if level_1 == 0 {
            without.extend(cores.table.map(Table::name));
        } else {
            let is_amd = cores.table.is_some_and(|table| table.name().starts_with("amd_"));
            assert_eq!(level_1, if is_amd { 5 } else { 4 }, "{}", cores.name);
        }
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
