//! The metrics of a processor: those of the client's own and imported ones, with the groups of their events.

use std::collections::HashMap;

use events::CoreTable;
use events::import::Imported;
use events::metric::{Metric, MetricSet, Values, builtin, groups};
use halprof::event::{EventName, SourceName, vendor_event};
use pmu::Cpuid;
use protocol::modes;
use serde::Serialize;
use x86_defs::cpuid::leaf;

use crate::cpuid;
use crate::encoding::{CounterName, encode};
use user_error::Error;

/// Counters of events, by their names.
type Known = HashMap<String, Vec<CounterName>>;

/// A metric on a kind of cores, as `--json` shows it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct MetricInfo {
    /// Name.
    pub name: String,
    /// The kind of cores: the name of their PMU in perf.
    pub core_type: String,
    /// Groups of metrics, which name all of theirs.
    pub groups: Vec<String>,
    /// Unit of the scaled value.
    pub unit: String,
    /// What the value of the expression is multiplied by.
    pub scale: f64,
    /// Description; may be empty.
    pub description: String,
    /// The expression.
    pub formula: String,
    /// The events, in groups that are counted at the same time.
    pub events: Vec<Vec<String>>,
}

/// Returns the metrics of each kind of cores of a processor that are wanted. An imported metric does not replace one of
/// the client's own.
///
/// # Errors
/// If a file of imported events cannot be used.
pub fn all(
    cpu: &impl Cpuid,
    imported: Option<&Imported>,
    is_wanted: &dyn Fn(&Metric) -> bool,
) -> Result<Vec<MetricInfo>, Error> {
    let Some(identity) = cpuid::vendor_identity(cpu) else { return Ok(Vec::new()) };
    let tables = vendor_event::tables(Some(identity), None);
    let kinds: Vec<Option<CoreTable>> = match tables.len() {
        0 => vec![None],
        // A processor that is no hybrid has one table.
        _ if !pmu::core_type::is_hybrid(cpu) => tables.iter().take(1).copied().map(Some).collect(),
        _ => tables.iter().copied().map(Some).collect(),
    };
    let constants = constants(cpu);
    let mut found = Vec::new();
    for kind in kinds {
        let mut metrics = builtin(identity, kind.map(|one| one.table), true);
        let core_type = kind.and_then(|one| one.core_type).map(|core_type| core_type as u32);
        for metric in imported.map(|imported| imported.metrics_of(identity, core_type)).unwrap_or_default() {
            if !metrics.iter().any(|known| known.name.eq_ignore_ascii_case(&metric.name)) {
                metrics.push(metric);
            }
        }
        let cores = kind.map_or("cpu", vendor_event::cores);
        let only: Vec<CoreTable> = kind.into_iter().collect();
        let set = MetricSet::new(metrics);
        let mut known = Known::default();
        for metric in set.metrics().iter().filter(|metric| is_wanted(metric)) {
            let events = set.events(metric, &constants);
            for event in &events {
                if !known.contains_key(*event) {
                    known.insert((*event).to_owned(), counters(event, cpu, &only, imported)?);
                }
            }
            found.push(info(metric, cores, &events, &known));
        }
    }
    Ok(found)
}

/// Returns the constants that choose between events: whether cores have two threads (SDM Vol. 2A, CPUID leaf 0BH).
fn constants(cpu: &impl Cpuid) -> Values {
    let mut constants = Values::default();
    let threads = cpu.cpuid(leaf::EXTENDED_TOPOLOGY, 0);
    // Level type 1 is that of the threads of a core.
    if cpu.cpuid(0, 0).eax >= leaf::EXTENDED_TOPOLOGY && threads.ecx >> 8 & 0xFF == 1 {
        constants.set("#SMT_on", f64::from(u8::from(threads.ebx & 0xFFFF > 1)));
    }
    constants
}

/// Returns the counters of an event; none if the driver cannot count it.
fn counters(
    event: &str,
    cpu: &impl Cpuid,
    tables: &[CoreTable],
    imported: Option<&Imported>,
) -> Result<Vec<CounterName>, Error> {
    let source = SourceName::Name(event.to_owned());
    let name = EventName { source, modes: modes::BOTH, counters: 0, flags: 0 };
    let encoded = encode(&name, cpu, tables, imported)?;
    Ok(encoded.into_iter().find(|one| one.error.is_none()).map(|one| one.counters).unwrap_or_default())
}

fn info(metric: &Metric, cores: &str, events: &[&str], known: &Known) -> MetricInfo {
    let counters_of = |event: &&str| known.get(*event).map_or(&[][..], Vec::as_slice);
    let fits = |group: &[&str]| {
        let others = group.iter().filter(|event| !is_of_slots(event));
        fit(&others.map(counters_of).collect::<Vec<_>>())
    };
    let groups = groups(&[events.to_vec()], &fits);
    MetricInfo {
        name: metric.name.clone(),
        core_type: cores.to_owned(),
        groups: metric.groups.clone(),
        unit: metric.unit.clone(),
        scale: metric.scale,
        description: metric.brief.clone(),
        formula: metric.formula.clone(),
        events: groups.into_iter().map(|group| group.into_iter().map(str::to_owned).collect()).collect(),
    }
}

/// Returns whether an event is slots or one of the metrics into which they are divided. Fixed counter 3 has them all.
#[must_use]
pub fn is_of_slots(event: &str) -> bool {
    let event = event.to_ascii_uppercase();
    event.starts_with("PERF_METRICS.") || event == "TOPDOWN.SLOTS"
}

/// Returns whether each event can have a counter of its own: a matching by augmenting paths.
#[must_use]
pub fn fit(events: &[&[CounterName]]) -> bool {
    let mut taken: Vec<(CounterName, usize)> = Vec::new();
    (0..events.len()).all(|event| place(event, events, &mut taken, &mut Vec::new()))
}

/// Gives an event a counter; others may move.
fn place(
    event: usize,
    events: &[&[CounterName]],
    taken: &mut Vec<(CounterName, usize)>,
    seen: &mut Vec<CounterName>,
) -> bool {
    for counter in events.get(event).into_iter().copied().flatten() {
        if seen.contains(counter) {
            continue;
        }
        seen.push(*counter);
        let Some(index) = taken.iter().position(|(one, _)| one == counter) else {
            taken.push((*counter, event));
            return true;
        };
        let holder = taken.get(index).map_or(event, |(_, holder)| *holder);
        if place(holder, events, taken, seen) {
            // The holder has another counter now.
            if let Some(entry) = taken.iter_mut().find(|(one, _)| one == counter) {
                entry.1 = event;
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_fit_if_each_can_have_a_counter_of_its_own() {
        let general = |numbers: &[u8]| numbers.iter().map(|number| CounterName::General(*number)).collect::<Vec<_>>();
        let (zero, both, fixed) =
            (general(&[0]), general(&[0, 1]), vec![CounterName::Fixed(1), CounterName::General(0)]);
        assert!(fit(&[&both, &zero]));
        assert!(fit(&[&zero, &both, &fixed]));
        assert!(!fit(&[&zero, &both, &both]));
        assert!(!fit(&[&zero, &zero]));
        assert!(!fit(&[&[]]));
        assert!(fit(&[]));
    }
}
