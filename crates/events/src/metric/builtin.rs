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
//! - Level 2 of MSR_PERF_METRICS: the same section; what its fields leave of level 1 is the other part.
//! - Zen 4 to 6: AMD's recommended metrics (Pipeline Utilization in the Processor Programming References of family 19h
//!   models 10h to 1Fh and of family 1Ah; Linux, `pipeline.json` in tools/perf/pmu-events/arch/x86/amdzen4, amdzen5 and
//!   amdzen6), with six and eight slots per clock.

use super::Metric;
use crate::database::Table;
use crate::expression::Expression;
use crate::generic::{Generic, Target};
use crate::identity::Identity;

/// Names of the groups of levels 1 and 2 of the top-down method.
const LEVEL_1: &str = "TopdownL1";
const LEVEL_2: &str = "TopdownL2";

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

/// Names and texts of level 2: two parts of each of the first four of level 1.
const PARTS: [(&str, &str); 8] = [
    ("Fetch_Latency", "Slots that the front end left empty in clocks without any uop"),
    ("Fetch_Bandwidth", "Slots that the front end left empty in other clocks"),
    ("Branch_Mispredicts", "Slots lost to mispredicted branches"),
    ("Machine_Clears", "Slots lost to other restarts of the pipeline"),
    ("Memory_Bound", "Slots that the back end could not take because of loads and stores"),
    ("Core_Bound", "Slots that the back end could not take for other reasons"),
    ("Heavy_Operations", "Slots of instructions of several uops, and of microcode, that retire"),
    ("Light_Operations", "Slots of other instructions that retire"),
];

/// Those that AMD's processors have instead of the parts of the same position.
const AMD_PARTS: [(usize, &str, &str); 3] = [
    (4, "Memory_Bound", "Slots that the back end could not take because of loads"),
    (6, "Microcode_Operations", "Slots of microcode that retires"),
    (7, "Fastpath_Operations", "Slots of other uops that retire"),
];

/// Returns the metrics of a processor with this table. Where the processor or its hypervisor does not offer
/// MSR_PERF_METRICS, `has_perf_metrics` is false, level 1 is that of general counters, and Intel's have no level 2.
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
    let level_2 = table.and_then(|table| level_2(table, has_perf_metrics)).unwrap_or_default();
    let level_2 =
        level_2.into_iter().filter_map(|(name, brief, formula)| metric(name, LEVEL_2, "%", 100.0, brief, formula));
    general
        .chain(level_1)
        .chain(level_2)
        .filter(|metric| metric.inputs().iter().all(|name| is_known(name, identity, table)))
        .collect()
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
    Zen::of(table).map(Zen::level_1)
}

/// Returns the names, texts and formulas of level 2.
fn level_2(table: Table, has_perf_metrics: bool) -> Option<Vec<(&'static str, &'static str, String)>> {
    let mut parts = PARTS;
    let formulas = match Zen::of(table) {
        Some(zen) => {
            for (index, name, brief) in AMD_PARTS {
                if let Some(part) = parts.get_mut(index) {
                    *part = (name, brief);
                }
            }
            zen.level_2()
        }
        None if has_perf_metrics && table.find("PERF_METRICS.FETCH_LATENCY").is_some() => perf_metrics_2(),
        None => return None,
    };
    Some(parts.into_iter().zip(formulas).map(|((name, brief), formula)| (name, brief, formula)).collect())
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

/// The fields of level 1 in MSR_PERF_METRICS, and from Golden Cove on a field of level 2 for each.
const FIELDS: [(&str, &str); 4] = [
    ("PERF_METRICS.FRONTEND_BOUND", "PERF_METRICS.FETCH_LATENCY"),
    ("PERF_METRICS.BAD_SPECULATION", "PERF_METRICS.BRANCH_MISPREDICTS"),
    ("PERF_METRICS.BACKEND_BOUND", "PERF_METRICS.MEMORY_BOUND"),
    ("PERF_METRICS.RETIRING", "PERF_METRICS.HEAVY_OPERATIONS"),
];

/// Ice Lake and later P cores by MSR_PERF_METRICS.
fn perf_metrics() -> Vec<String> {
    FIELDS.iter().map(|(name, _)| of_slots(name)).collect()
}

/// Golden Cove and later P cores by MSR_PERF_METRICS.
fn perf_metrics_2() -> Vec<String> {
    FIELDS.iter().flat_map(|(whole, part)| [of_slots(part), of_slots(&rest(whole, part))]).collect()
}

/// Returns the share of fields of MSR_PERF_METRICS in the sum of level 1, which is the slots without rounding.
fn of_slots(fields: &str) -> String {
    let sum = FIELDS.map(|(name, _)| name).join(" + ");
    // SLOTS leads the group: the metrics have no counter of their own.
    format!("{fields} / ({sum}) if TOPDOWN.SLOTS else 0 / TOPDOWN.SLOTS")
}

/// Returns what a part leaves of a whole. Both are rounded or have turns of their own, so the part can be the larger.
fn rest(whole: &str, part: &str) -> String {
    format!("max(0, {whole} - {part})")
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

/// Zen 4 and later: slots per clock, and the names of events.
#[derive(Debug, Clone, Copy)]
struct Zen {
    width: u8,
    /// Slots that the front end left empty, and clocks without any other.
    front: [&'static str; 2],
    /// Slots that the back end could not take, and those that the other thread took.
    back: &'static str,
    contention: &'static str,
    /// Uops that were dispatched, that retired, and those of microcode among these.
    dispatched: &'static str,
    retired: &'static str,
    microcode: &'static str,
    /// What throws uops away: mispredicted branches, and other restarts.
    mispredicts: &'static str,
    restarts: &'static str,
    /// Clocks in which nothing retires because something, or a load, is not complete.
    incomplete: [&'static str; 2],
}

const ZEN_4: Zen = Zen {
    width: 6,
    front: ["DISPATCH_STALLS_1.FE_NO_OPS", "DISPATCH_STALLS_1.FE_NO_OPS_CYCLES"],
    back: "DISPATCH_STALLS_1.BE_STALLS",
    contention: "DISPATCH_STALLS_1.SMT_CONTENTION",
    dispatched: "OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL",
    retired: "RETIRED_OPS",
    microcode: "RETIRED_UCODE_OPS",
    mispredicts: "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
    restarts: "RESYNCS",
    incomplete: ["CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD"],
};
const ZEN_5: Zen = Zen { width: 8, restarts: "BP_REDIRECTS.RESYNC", ..ZEN_4 };
const ZEN_6: Zen = Zen {
    width: 8,
    front: ["DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND", "DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND_CYCLES"],
    back: "DE_NO_DISPATCH_PER_SLOT.BACKEND_STALLS",
    contention: "DE_NO_DISPATCH_PER_SLOT.SMT_CONTENTION",
    dispatched: "DE_SRC_OP_DISP.ALL",
    retired: "EX_RET_OPS",
    microcode: "EX_RET_UCODE_OPS",
    mispredicts: "EX_RET_BRN_MISP",
    restarts: "BP_FE_REDIR.RESYNC",
    incomplete: ["EX_NO_RETIRE.NOT_COMPLETE", "EX_NO_RETIRE.LOAD_NOT_COMPLETE"],
};

impl Zen {
    fn of(table: Table) -> Option<Self> {
        match table.name() {
            "amd_fam19h_zen4" => Some(ZEN_4),
            "amd_fam1ah_zen5" => Some(ZEN_5),
            "amd_fam1ah_zen6" => Some(ZEN_6),
            _ => None,
        }
    }

    fn slots(self) -> String {
        format!("({} * cycles)", self.width)
    }

    fn level_1(self) -> Vec<String> {
        let Self { front: [front, _], back, contention, dispatched, retired, .. } = self;
        let thrown_away = format!("({dispatched} - {retired})");
        let parts = [front, &thrown_away, back, retired, contention];
        parts.map(|part| format!("{part} / {}", self.slots())).into()
    }

    fn level_2(self) -> Vec<String> {
        let Self { width, front: [front, empty], back, dispatched, retired, microcode, mispredicts, restarts, .. } =
            self;
        let [any, load] = self.incomplete;
        let (latency, slots) = (format!("{width} * {empty}"), self.slots());
        let share = |part: &str| format!("({dispatched} - {retired}) * {part} / ({mispredicts} + {restarts})");
        [
            latency.clone(),
            rest(front, &latency),
            share(mispredicts),
            share(restarts),
            format!("{back} * {load} / {any}"),
            format!("{back} * {} / {any}", rest(any, load)),
            microcode.to_owned(),
            rest(retired, microcode),
        ]
        .map(|part| format!("{part} / {slots}"))
        .into()
    }
}
