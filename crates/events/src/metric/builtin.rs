//! Metrics of our own, for processors by the events of their tables.
//!
//! # References
//! - Ratios of the architectural events: SDM Vol. 3B, Table 21-1; of AMD's: the sources of [`Generic::target`].
//! - The frequency: SDM Vol. 3B 21.2.3 (reference cycles at the rate of the time stamp counter).
//! - Level 1 of the top-down method: Yasin, A Top-Down Method for Performance Analysis and Counters Architecture
//!   (ISPASS 2014), Table 1, with four slots per clock and, with two threads, clocks of the core (Intel 64 and IA-32
//!   Architectures Optimization Reference Manual, B.1).
//! - MSR_PERF_METRICS: SDM Vol. 3B 21.3.9.3.
//! - E cores: the slots per clock are those of Linux's `tma_info_core_slots`
//!   (tools/perf/pmu-events/arch/x86/{elkhartlake,alderlaken,sierraforest}). The slots of uops that were thrown away
//!   are in no event before Skymont, so bad speculation is what the others leave. Later ones count the architectural
//!   events of top-down level 1 (SDM Vol. 3B, Table 21-1).
//! - Zen 4 and 5: Processor Programming References of family 19h models 10h to 1Fh and of family 1Ah, Pipeline
//!   Utilization Analysis, with six and eight slots per clock.

use super::Metric;
use crate::database::Table;
use crate::expression::Expression;
use crate::generic::{Generic, Target};
use crate::identity::Identity;

/// Name of the group of level 1 of the top-down method.
const LEVEL_1: &str = "TopdownL1";

/// Metrics of generic events: name, group, unit, scale, text and formula.
const GENERAL: [(&str, &str, &str, f64, &str, &str); 8] = [
    ("IPC", "Summary", "", 1.0, "Instructions per clock", "instructions / cycles"),
    ("CPI", "Summary", "", 1.0, "Clocks per instruction", "cycles / instructions"),
    (
        "Frequency",
        "Summary",
        "GHz",
        1e-9,
        "Mean frequency of the processors while they run",
        r"cycles / ref\-cycles * #system_tsc_freq",
    ),
    (
        "Branch_Miss_Ratio",
        "Branches",
        "%",
        100.0,
        "Mispredicted branches of all branches",
        r"branch\-misses / branches",
    ),
    (
        "Branch_MPKI",
        "Branches",
        "",
        1.0,
        "Mispredicted branches per 1,000 instructions",
        r"1000 * branch\-misses / instructions",
    ),
    (
        "Cache_Miss_Ratio",
        "Caches",
        "%",
        100.0,
        "References to the last-level cache (AMD: level 2) that miss",
        r"cache\-misses / cache\-references",
    ),
    (
        "Cache_MPKI",
        "Caches",
        "",
        1.0,
        "Misses of the last-level cache (AMD: level 2) per 1,000 instructions",
        r"1000 * cache\-misses / instructions",
    ),
    ("Branch_Density", "Branches", "%", 100.0, "Branches of all instructions", "branches / instructions"),
];

/// Names and texts of level 1: what the slots for uops were used for.
const NAMES: [(&str, &str); 5] = [
    ("Frontend_Bound", "Slots that the front end left empty"),
    ("Bad_Speculation", "Slots lost to uops that never retire, and to recovery"),
    ("Backend_Bound", "Slots that the back end could not take"),
    ("Retiring", "Slots of uops that retire"),
    ("SMT_Contention", "Slots that the other thread of the core took"),
];

/// Returns the metrics of a processor with this table. Where the processor or its hypervisor does not offer
/// MSR_PERF_METRICS, `has_perf_metrics` is false, and level 1 is that of general counters.
#[must_use]
pub fn builtin(identity: Identity, table: Option<Table>, has_perf_metrics: bool) -> Vec<Metric> {
    let general = GENERAL.into_iter().filter_map(|(name, group, unit, scale, brief, formula)| {
        metric(name, group, unit, scale, brief, formula.to_owned())
    });
    let level_1 = table.and_then(|table| level_1(table, has_perf_metrics)).unwrap_or_default();
    let level_1 = NAMES
        .into_iter()
        .zip(level_1)
        .filter_map(|((name, brief), formula)| metric(name, LEVEL_1, "%", 100.0, brief, formula));
    general.chain(level_1).filter(|metric| metric.inputs().iter().all(|name| is_known(name, identity, table))).collect()
}

fn metric(name: &str, group: &str, unit: &str, scale: f64, brief: &str, formula: String) -> Option<Metric> {
    let expression = Expression::parse(&formula).ok()?;
    Some(Metric {
        name: name.to_owned(),
        groups: vec![group.to_owned()],
        unit: unit.to_owned(),
        scale,
        brief: brief.to_owned(),
        cores: String::new(),
        formula,
        expression,
        aliases: Vec::new(),
    })
}

/// Returns whether a name is a constant, a generic event that the processor counts, or an event of the table.
fn is_known(name: &str, identity: Identity, table: Option<Table>) -> bool {
    let is_generic = || match Generic::from_name(name)?.target(identity) {
        Ok(Target::Event { .. } | Target::Source(_)) => Some(()),
        _ => None,
    };
    name.starts_with('#') || is_generic().is_some() || table.is_some_and(|table| table.find(name).is_some())
}

/// Returns the formulas of level 1 in the order of [`NAMES`].
fn level_1(table: Table, has_perf_metrics: bool) -> Option<Vec<String>> {
    let has = |name: &str| table.find(name).is_some();
    if has_perf_metrics && has("PERF_METRICS.RETIRING") {
        return Some(perf_metrics());
    }
    if has("TOPDOWN.BACKEND_BOUND_SLOTS") {
        let undelivered = ["IDQ_BUBBLES.CORE", "IDQ_UOPS_NOT_DELIVERED.CORE"].into_iter().find(|name| has(name))?;
        return Some(slots(undelivered));
    }
    if has("UOPS_RETIRED.RETIRE_SLOTS") && has("IDQ_UOPS_NOT_DELIVERED.CORE") {
        return Some(four_slots());
    }
    // Some tables have the events of general counters by one name, some by the other.
    let suffix = if has("TOPDOWN_RETIRING.ALL_P") { "ALL_P" } else { "ALL" };
    if let Some(width) = slots_of_e_core(table) {
        return Some(e_core(width, suffix));
    }
    if has("TOPDOWN_BAD_SPECULATION.ALL_P") {
        return Some(architectural());
    }
    let width = match table.name() {
        "amd_fam19h_zen4" => 6,
        "amd_fam1ah_zen5" | "amd_fam1ah_zen6" => 8,
        _ => return None,
    };
    Some(if has("EX_RET_OPS") { zen(width, ZEN6_NAMES) } else { zen(width, ZEN4_NAMES) })
}

/// Returns how many slots an E core has per clock if no event counts all slots of bad speculation.
fn slots_of_e_core(table: Table) -> Option<u8> {
    match table.name() {
        "elkhartlake" | "snowridgex" => Some(4),
        "alderlake_gracemont" => Some(5),
        "meteorlake_crestmont" | "arrowlake_crestmont" | "sierraforest" | "grandridge" => Some(6),
        _ => None,
    }
}

/// Returns the formulas for parts of which all but one are counted, with the one between them.
fn with_rest(front: &str, bad: Option<&str>, back: Option<&str>, retiring: &str) -> Vec<String> {
    let known = [Some(front), bad, back, Some(retiring)];
    let rest = known.into_iter().flatten().fold("1".to_owned(), |rest, part| format!("{rest} - {part}"));
    known.into_iter().map(|part| part.map_or_else(|| rest.clone(), str::to_owned)).collect()
}

/// Sandy Bridge to Cascade Lake.
fn four_slots() -> Vec<String> {
    let slots = "(4 * (CPU_CLK_UNHALTED.THREAD_P_ANY / 2 if #SMT_on else cycles))";
    let recovery = "(INT_MISC.RECOVERY_CYCLES_ANY / 2 if #SMT_on else INT_MISC.RECOVERY_CYCLES)";
    let bad = format!("(UOPS_ISSUED.ANY - UOPS_RETIRED.RETIRE_SLOTS + 4 * {recovery}) / {slots}");
    let front = format!("IDQ_UOPS_NOT_DELIVERED.CORE / {slots}");
    with_rest(&front, Some(&bad), None, &format!("UOPS_RETIRED.RETIRE_SLOTS / {slots}"))
}

/// Ice Lake and later P cores by MSR_PERF_METRICS: each part is of the sum, which is the slots without rounding.
fn perf_metrics() -> Vec<String> {
    let names =
        ["FRONTEND_BOUND", "BAD_SPECULATION", "BACKEND_BOUND", "RETIRING"].map(|name| format!("PERF_METRICS.{name}"));
    // SLOTS leads the group: the metrics have no counter of their own.
    names
        .iter()
        .map(|name| format!("{name} / ({}) if TOPDOWN.SLOTS else 0 / TOPDOWN.SLOTS", names.join(" + ")))
        .collect()
}

/// Ice Lake and later P cores by events of general counters.
fn slots(undelivered: &str) -> Vec<String> {
    let slots = "TOPDOWN.SLOTS_P";
    let (front, back) = (format!("{undelivered} / {slots}"), format!("TOPDOWN.BACKEND_BOUND_SLOTS / {slots}"));
    with_rest(&front, None, Some(&back), &format!("UOPS_RETIRED.SLOTS / {slots}"))
}

/// E cores before Skymont.
fn e_core(width: u8, suffix: &str) -> Vec<String> {
    let part = |name: &str| format!("TOPDOWN_{name}.{suffix} / ({width} * cycles)");
    with_rest(&part("FE_BOUND"), None, Some(&part("BE_BOUND")), &part("RETIRING"))
}

/// Skymont and later E cores.
fn architectural() -> Vec<String> {
    let names = ["FE_BOUND", "BAD_SPECULATION", "BE_BOUND", "RETIRING"].map(|name| format!("TOPDOWN_{name}.ALL_P"));
    names.iter().map(|name| format!("{name} / ({})", names.join(" + "))).collect()
}

/// Events of the slots that the front end left empty, the back end could not take and the other thread took, and of
/// those that retire: the names of Zen 4 and Zen 5.
const ZEN4_NAMES: [&str; 4] =
    ["DISPATCH_STALLS_1.FE_NO_OPS", "DISPATCH_STALLS_1.BE_STALLS", "DISPATCH_STALLS_1.SMT_CONTENTION", "RETIRED_OPS"];
/// The same of Zen 6.
const ZEN6_NAMES: [&str; 4] = [
    "DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND",
    "DE_NO_DISPATCH_PER_SLOT.BACKEND_STALLS",
    "DE_NO_DISPATCH_PER_SLOT.SMT_CONTENTION",
    "EX_RET_OPS",
];

/// Zen 4 and later.
fn zen(width: u8, names: [&str; 4]) -> Vec<String> {
    let [front, back, contention, retiring] = names.map(|name| format!("{name} / ({width} * cycles)"));
    let mut formulas = with_rest(&front, None, Some(&back), &retiring);
    if let Some(bad) = formulas.get_mut(1) {
        *bad = format!("{bad} - {contention}");
    }
    formulas.push(contention);
    formulas
}
