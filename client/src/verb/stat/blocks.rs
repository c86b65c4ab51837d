//! Counts of sets of processors: the whole machine, processors, cores, packages, core types.

use std::collections::BTreeMap;

use halprof::Driver;
use protocol::ProcessorSet;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::repeated::{self, Spread};
use crate::cli::Aggregation;
use counts::EventCount;
use counts::count_metric::{self, Metric};
use counts::requested_metrics::{MetricValue, Metrics};
use system::System;
use system::topology::CorePlace;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Why processors cannot be put together.
#[derive(Debug, ThisError)]
pub enum TopologyError {
    /// Windows does not report the cores and packages.
    #[error("Windows does not tell the cores and packages of the processors")]
    Unknown {
        /// Error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// A processor of the driver is not among those that Windows reports.
    #[error("Windows tells the cores of {reported} CPUs, and CPU {processor} is not among them")]
    Missing {
        /// The processor.
        processor: u32,
        /// Number of processors that Windows reports.
        reported: usize,
    },
}

impl UserError for TopologyError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn remedy(&self) -> Option<String> {
        Some("--per-cpu".to_owned())
    }
}

/// Processors that have a row together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// `CPU0`, `S0-C1`, `S0`, `cpu_core`.
    pub name: String,
    /// Its processors.
    pub processors: Vec<u32>,
}

/// An event with what follows from its count.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// The event.
    #[serde(flatten)]
    pub event: EventCount,
    /// Its metric.
    pub metric: Option<Metric>,
    /// The counts of repeated runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Spread<u64>>,
}

/// The events on some processors.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Block {
    /// Name of the processors; empty for all of them.
    pub name: String,
    /// The processors, in ascending order.
    pub processors: Vec<u32>,
    /// The events.
    pub events: Vec<Counted>,
    /// The metrics that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricValue>,
}

/// Returns the sets of processors that the user asks for, among `chosen` or, if it is empty, all; `None` for the
/// machine.
pub fn sets(
    aggregation: &Aggregation,
    chosen: &ProcessorSet,
    connection: &Driver,
    system: &dyn System,
) -> Result<Option<Vec<Set>>, Error> {
    let Aggregation { per_cpu, per_core, per_socket, per_core_type } = *aggregation;
    if ![per_cpu, per_core, per_socket, per_core_type].contains(&true) {
        return Ok(None);
    }
    let processors: Vec<u32> =
        if chosen.is_empty() { (0..connection.info()?.processors).collect() } else { chosen.iter().collect() };
    let one = |processor: &u32| Set { name: format!("CPU{processor}"), processors: vec![*processor] };
    if per_cpu {
        return Ok(Some(processors.iter().map(one).collect()));
    }
    if per_core_type {
        let core_types = connection.core_types()?.iter();
        let sets: Vec<Set> =
            core_types.map(|one| Set { name: one.name.clone(), processors: one.processors.clone() }).collect();
        let all = Set { name: "cpu".to_owned(), processors };
        return Ok(Some(if sets.is_empty() { vec![all] } else { sets }));
    }
    let places = places(&processors, system)?;
    let name = |CorePlace { package, core }: CorePlace| {
        if per_core { format!("S{package}-C{core}") } else { format!("S{package}") }
    };
    let key = |place: CorePlace| if per_core { place } else { CorePlace { core: 0, ..place } };
    let mut sets: BTreeMap<CorePlace, Set> = BTreeMap::new();
    for (processor, place) in places {
        let set = sets.entry(key(place)).or_insert_with(|| Set { name: name(place), processors: Vec::new() });
        set.processors.push(processor);
    }
    Ok(Some(sets.into_values().collect()))
}

fn places(processors: &[u32], system: &dyn System) -> Result<Vec<(u32, CorePlace)>, Error> {
    let topology = system.topology().map_err(|cause| TopologyError::Unknown { cause })?;
    let place = |processor: &u32| match topology.get(processor) {
        Some(place) => Ok((*processor, *place)),
        None => Err(TopologyError::Missing { processor: *processor, reported: topology.len() }.into()),
    };
    processors.iter().map(place).collect()
}

/// Returns the counts of all processors. `runs` are the events of each run, if they were repeated; `events` then are
/// their means.
pub fn whole(events: &[EventCount], runs: &[Vec<EventCount>], metrics: &Metrics) -> Block {
    block(Set { name: String::new(), processors: processors_of(events) }, events.to_vec(), runs, metrics)
}

/// Returns the counts of each set, for the same arguments.
pub fn blocks(events: &[EventCount], sets: &[Set], runs: &[Vec<EventCount>], metrics: &Metrics) -> Vec<Block> {
    let of = |set: &Set| {
        let on = |event: &EventCount| event.on(&set.processors);
        let runs: Vec<Vec<EventCount>> = runs.iter().map(|run| run.iter().filter_map(on).collect()).collect();
        block(set.clone(), events.iter().filter_map(on).collect(), &runs, metrics)
    };
    sets.iter().map(of).filter(|block| !block.events.is_empty() || events.is_empty()).collect()
}

fn block(set: Set, mut events: Vec<EventCount>, runs: &[Vec<EventCount>], metrics: &Metrics) -> Block {
    let key = |event: &EventCount| (event.index, event.event.core_type);
    let repeated: Vec<Option<Spread<u64>>> = events
        .iter_mut()
        .map(|event| {
            let same = runs.iter().filter_map(|run| run.iter().find(|other| key(other) == key(event)));
            let spread = Some(repeated::counts(same.map(|one| one.scaled).collect())).filter(|_| !runs.is_empty())?;
            event.scaled = repeated::rounded(&spread);
            event.error = None; // the runs tell it better
            Some(spread)
        })
        .collect();
    let seconds = events.iter().map(|event| event.enabled_seconds).fold(0.0, f64::max);
    let metrics = metrics.values(&events, seconds);
    let shares: Vec<Option<Metric>> = events.iter().map(|event| count_metric::of(event, &events)).collect();
    let counted = events.into_iter().zip(shares).zip(repeated);
    let events = counted.map(|((event, metric), repeated)| Counted { event, metric, repeated }).collect();
    Block { name: set.name, processors: set.processors, events, metrics }
}

/// Returns the rows of blocks in their order. With `per_cpu`, the processors of an event are together, as in perf;
/// otherwise the events of a block.
pub fn rows<'a>(events: &'a [Counted], blocks: &'a [Block], per_cpu: bool) -> Vec<(&'a Block, &'a Counted)> {
    let of = |block: &'a Block| block.events.iter().map(move |row| (block, row));
    if !per_cpu {
        return blocks.iter().flat_map(of).collect();
    }
    let key = |row: &Counted| (row.event.index, row.event.event.core_type);
    let of_event = |event: &'a Counted| {
        let same = move |(_, row): &(&'a Block, &'a Counted)| key(row) == key(event);
        blocks.iter().flat_map(of).filter(same)
    };
    events.iter().flat_map(of_event).collect()
}

/// Returns the processors on which the events were counted.
fn processors_of(events: &[EventCount]) -> Vec<u32> {
    let mut processors: Vec<u32> =
        events.iter().flat_map(|event| event.processors.iter().map(|one| one.processor)).collect();
    processors.sort_unstable();
    processors.dedup();
    processors
}
