//! Metrics that `stat` counts: `-M`.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt::Write as _;

use events::metric::{Metric, MetricSet, Values, builtin, groups};
use events::{CoreTable, Generic, Identity, Target, nearest};
use halprof::event::{SourceName, find, suggestions, vendor_event};
use halprof::{Driver, Refusal};
use protocol::{EventRequest, ProcessorSet, modes};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::EventCount;
use crate::encoding::CounterName;
use crate::processor_metrics::{fit, is_of_slots};
use system::System;
use user_error::exit::Exit;
use user_error::{Error, UserError, why};

/// No metric or group has a name.
#[derive(Debug, ThisError)]
#[error("no metric or group of metrics of this processor is called {name}{}", suggestions::did_you_mean(.near))]
pub struct NoMetric {
    name: String,
    near: Vec<String>,
}

impl UserError for NoMetric {
    fn exit(&self) -> Exit {
        Exit::UnknownSource
    }

    fn remedy(&self) -> Option<String> {
        Some(".\\client list metrics".to_owned())
    }
}

/// None of the metrics can be computed.
#[derive(Debug, ThisError)]
#[error("{metric} cannot be computed here")]
pub struct NothingToCount {
    metric: String,
    #[source]
    cause: Reason,
}

/// Why a metric has no value.
#[derive(Debug, ThisError)]
#[error("{0}")]
struct Reason(String);

impl UserError for NothingToCount {
    fn exit(&self) -> Exit {
        Exit::UnsupportedSource
    }

    fn remedy(&self) -> Option<String> {
        Some(".\\client list metrics".to_owned())
    }
}

/// Source of a refusal that is about all counters.
const NO_EVENT: u64 = 0;

/// Events that the driver refused when they were started, with the reason.
#[derive(Debug, Default)]
pub struct Refused(Vec<(u64, String)>);

impl Refused {
    /// Adds those of `events` that a refusal concerns, and returns whether there are any.
    pub fn add(&mut self, refusal: &Refusal, events: &[EventRequest]) -> bool {
        let before = self.0.len();
        let concerned = events.iter().filter(|event| concerns(refusal, event));
        self.0.extend(concerned.map(|event| (event.event.source, why_refused(refusal))));
        self.0.len() > before
    }

    fn reason(&self, source: u64) -> Option<&str> {
        self.0.iter().find(|(refused, _)| *refused == source).map(|(_, reason)| reason.as_str())
    }

    /// Returns whether slots or one of the parts into which the processor divides them was refused: event 0.
    fn has_slots(&self) -> bool {
        self.0.iter().any(|(source, _)| pmu::Source(*source).raw().is_some_and(|raw| raw.event() == 0))
    }
}

/// Returns whether the machine does not count this event, by the refusal of a session that has it: the refusal is about
/// the event, or about all counters.
#[must_use]
pub fn concerns(refusal: &Refusal, event: &EventRequest) -> bool {
    let (refused, source) = (refusal.header.source, event.event.source);
    let is_meant = if refused == NO_EVENT { source != pmu::Source::TIME.0 } else { source == refused };
    is_meant && refusal.exit() == Exit::UnsupportedSource
}

/// Returns why the events that a refusal concerns are not counted.
#[must_use]
pub fn why_refused(refusal: &Refusal) -> String {
    match refusal.header.source {
        NO_EVENT => refusal.to_string().replace("\n  because: ", ": "),
        _ => why(refusal),
    }
}

/// The value of a metric, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct MetricValue {
    /// Name of the metric.
    pub name: String,
    /// Core type of its processors, on a hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_type: Option<String>,
    /// The value in its unit.
    pub value: Option<f64>,
    /// The unit; may be empty.
    pub unit: String,
    /// Why it has no value.
    pub unavailable: Option<String>,
}

impl MetricValue {
    /// Returns the name, on a hybrid with the core type.
    #[must_use]
    pub fn label(&self) -> String {
        self.core_type.as_ref().map_or_else(|| self.name.clone(), |core_type| format!("{core_type}/{}/", self.name))
    }
}

/// The metrics that were asked for, with the events that they need.
#[derive(Default)]
pub struct Metrics(Vec<Kind>);

/// The metrics of a kind of cores.
struct Kind {
    /// The core type, on a hybrid.
    core_type: Option<pmu::CoreType>,
    set: MetricSet,
    /// Positions in the set of the metrics that were asked for.
    chosen: Vec<usize>,
    /// Constants, and the reasons of events that cannot be counted.
    known: Values,
    /// Groups of events by name, with their positions in the request.
    groups: Vec<Vec<(String, usize)>>,
    /// Events that cannot be counted, with the reason.
    unavailable: Vec<(String, String)>,
}

impl Metrics {
    /// Finds metrics by their names or groups, and adds their events to a request.
    ///
    /// # Errors
    /// If no metric has a name. A metric of which an event cannot be counted has no value.
    pub fn new(
        names: &[String],
        requested: &mut Vec<EventRequest>,
        processors: &ProcessorSet,
        refused: &Refused,
        connection: &Driver,
        system: &dyn System,
    ) -> Result<Self, Error> {
        let Some(first) = names.first() else { return Ok(Self::default()) };
        let info = connection.info()?;
        let Some(identity) = vendor_event::identity_of(&info) else { return Err(unknown(first, &[])) };
        let mut constants = Values::default();
        constants.set("#num_cpus", info.processors.into());
        if let Some(hertz) = system.tsc_frequency() {
            constants.set("#system_tsc_freq", terminal::format::real(hertz));
        }
        if let Some(has_threads) = has_threads(system) {
            constants.set("#SMT_on", f64::from(u8::from(has_threads)));
        }
        let mut kinds = Vec::new();
        for (core_type, metrics, counters) in metrics_of_cores(identity, !refused.has_slots(), connection)? {
            let set = MetricSet::new(metrics);
            let known = constants.clone();
            let (chosen, groups, unavailable) = Default::default();
            let kind = Kind { core_type, set, chosen, known, groups, unavailable };
            kinds.push((kind, counters));
        }
        for name in names {
            let mut is_known = false;
            for (kind, _) in &mut kinds {
                is_known |= kind.choose(name);
            }
            if !is_known {
                let sets: Vec<&MetricSet> = kinds.iter().map(|(kind, _)| &kind.set).collect();
                return Err(unknown(name, &sets));
            }
        }
        let mut metrics = Self::default();
        for (mut kind, counters) in kinds {
            kind.request(&counters, requested, processors, refused, connection)?;
            metrics.0.push(kind);
        }
        Ok(metrics)
    }

    /// Checks that events are requested, if metrics are.
    ///
    /// # Errors
    /// Why the first metric cannot be computed.
    pub fn check(&self, requested: &[EventRequest]) -> Result<(), NothingToCount> {
        if !requested.is_empty() {
            return Ok(());
        }
        match self.values(&[], 0.0).into_iter().find_map(|one| Some((one.label(), one.unavailable?))) {
            Some((metric, cause)) => Err(NothingToCount { metric, cause: Reason(cause) }),
            None => Ok(()),
        }
    }

    /// Returns the values for counts of so many seconds. A pure function.
    #[must_use]
    pub fn values(&self, counts: &[EventCount], seconds: f64) -> Vec<MetricValue> {
        self.0.iter().flat_map(|kind| kind.values(counts, seconds)).collect()
    }
}

impl Kind {
    /// Chooses the metrics of a name or a group. Of two with the same name, the first is the client's own.
    fn choose(&mut self, wanted: &str) -> bool {
        let has_name = |metric: &Metric| metric.name.eq_ignore_ascii_case(wanted);
        let is_in = |metric: &Metric| metric.groups.iter().any(|group| group.eq_ignore_ascii_case(wanted));
        let metrics = self.set.metrics();
        let found: Vec<usize> = match metrics.iter().position(has_name) {
            Some(index) => vec![index],
            None => (0..metrics.len()).filter(|index| metrics.get(*index).is_some_and(is_in)).collect(),
        };
        for index in &found {
            let name = metrics.get(*index).map(|metric| &metric.name);
            let is_there = |other: &usize| metrics.get(*other).map(|metric| &metric.name) == name;
            if !self.chosen.iter().any(is_there) {
                self.chosen.push(*index);
            }
        }
        !found.is_empty()
    }

    /// Adds the events of the chosen metrics to a request, in groups.
    fn request(
        &mut self,
        counters: &Counters,
        requested: &mut Vec<EventRequest>,
        processors: &ProcessorSet,
        refused: &Refused,
        connection: &Driver,
    ) -> Result<(), Error> {
        let (mut inputs, mut unavailable): (Vec<Vec<&str>>, Vec<(String, String)>) = (Vec::new(), Vec::new());
        for metric in self.chosen.iter().filter_map(|index| self.set.metrics().get(*index)) {
            let mut events = self.set.events(metric, &self.known);
            // These are known when the counting ends.
            events.retain(|name| !TIMES.iter().any(|time| time.eq_ignore_ascii_case(name)));
            for name in &events {
                let source = source(name, self.core_type);
                match find(&source, modes::BOTH, processors, connection) {
                    Err(error) => unavailable.push(((*name).to_owned(), why(&error))),
                    Ok(found) if found.is_empty() => {
                        unavailable.push(((*name).to_owned(), "the chosen processors have no such event".to_owned()));
                    }
                    Ok(_) if !counters.can_count(name) => {
                        unavailable.push(((*name).to_owned(), "no counter of this machine counts it".to_owned()));
                    }
                    Ok(found) => {
                        let reason = found.iter().find_map(|one| refused.reason(one.event.source));
                        unavailable.extend(reason.map(|why| ((*name).to_owned(), why.to_owned())));
                    }
                }
            }
            // A metric without one of its events needs none of them.
            if !events.iter().any(|name| unavailable.iter().any(|(other, _)| other == name)) {
                inputs.push(events);
            }
        }
        let mut positions = Vec::new();
        for group in groups(&inputs, &|events| counters.fit(events)) {
            let number = 1 + requested.iter().map(|event| event.group).max().unwrap_or_default();
            let mut events = Vec::new();
            for name in &group {
                for found in
                    find(&source(name, self.core_type), modes::BOTH, processors, connection)?.into_iter().take(1)
                {
                    let event = EventRequest {
                        event: found.event,
                        modes: modes::BOTH,
                        group: if group.len() > 1 { number } else { 0 },
                        ..EventRequest::EMPTY
                    };
                    let position = requested.iter().position(|other| *other == event);
                    events.push(((*name).to_owned(), position.unwrap_or(requested.len())));
                    if position.is_none() {
                        requested.push(event);
                    }
                }
            }
            positions.push(events);
        }
        self.groups = positions;
        for (name, reason) in &unavailable {
            self.known.set_unavailable(name, reason);
        }
        self.unavailable = unavailable;
        Ok(())
    }

    fn values(&self, counts: &[EventCount], seconds: f64) -> Vec<MetricValue> {
        let is_own =
            |count: &EventCount| self.core_type.is_none_or(|core_type| core_type.number() == count.event.core_type);
        if !counts.is_empty() && !self.groups.is_empty() && !counts.iter().any(is_own) {
            return Vec::new(); // none of these processors is of this kind
        }
        let mut known = self.known.clone();
        known.set("duration_time", seconds);
        known.set("DURATIONTIMEINMILLISECONDS", 1_000.0 * seconds);
        let value = |index: &usize| {
            let metric = self.set.metrics().get(*index)?;
            let value = self.set.evaluate(&self.counted(metric, counts, &known)).into_iter().nth(*index)?;
            Some(MetricValue {
                name: metric.name.clone(),
                core_type: self.core_type.map(|core_type| core_type.name().to_owned()),
                value: value.as_ref().ok().map(|value| metric.scale * value),
                unit: metric.unit.clone(),
                unavailable: value.as_ref().err().map(|error| self.reason(metric).unwrap_or(error.to_string())),
            })
        };
        self.chosen.iter().filter_map(value).collect()
    }

    /// Adds the counts of a metric's events to `known`. An event of several groups was counted at different times in
    /// each, so that all are of the group with the most events of the metric that ran. What did not fit into it has the
    /// count of the first other group that ran.
    fn counted(&self, metric: &Metric, counts: &[EventCount], known: &Values) -> Values {
        let needed = self.set.events(metric, &self.known);
        let is_needed = |name: &str| needed.contains(&name);
        let ran = |position: usize| {
            let count = counts.iter().find(|count| usize::try_from(count.index) == Ok(position));
            count.filter(|count| !count.times.is_uncounted())
        };
        let number = |group: &&Vec<(String, usize)>| {
            group.iter().filter(|(name, position)| is_needed(name) && ran(*position).is_some()).count()
        };
        let mut groups: Vec<&Vec<(String, usize)>> = self.groups.iter().collect();
        groups.sort_by_key(|group| Reverse(number(group)));
        let mut values = known.clone();
        let mut counted = HashSet::new();
        for (name, position) in groups.into_iter().flatten().filter(|(name, _)| is_needed(name)) {
            match ran(*position) {
                _ if counted.contains(name) => {}
                Some(count) => {
                    values.set(name, terminal::format::real(count.scaled));
                    counted.insert(name);
                }
                None => values.set_unavailable(name, "it never had a counter"),
            }
        }
        values
    }
}

impl Kind {
    /// Returns which event of a metric cannot be counted: the others of the metric were then left out.
    fn reason(&self, metric: &Metric) -> Option<String> {
        let of_metric = self.set.events(metric, &self.known);
        let (event, reason) = self.unavailable.iter().find(|(event, _)| of_metric.contains(&event.as_str()))?;
        Some(format!("{event} was not counted: {reason}"))
    }
}

/// Constants that are known when the counting ends.
const TIMES: [&str; 2] = ["duration_time", "DURATIONTIMEINMILLISECONDS"];

/// Formats metrics below the counts, each with `lead` in front.
pub fn text(lead: &str, values: &[MetricValue]) -> String {
    let mut text = String::new();
    for metric in values {
        let MetricValue { value, unit, unavailable, .. } = metric;
        let number = value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.3}"));
        let width = if lead.is_empty() { 20 } else { 10 };
        let reason = unavailable.as_ref().map_or_else(String::new, |reason| format!("  # {reason}"));
        let line = format!("{lead}{number:>width$} {unit:8} {}{reason}", metric.label());
        let _ = writeln!(text, "{}", line.trim_end()); // a string takes everything
    }
    text
}

/// A kind of cores: its core type on a hybrid, its metrics and its counters.
pub(crate) type CoreMetrics = (Option<pmu::CoreType>, Vec<Metric>, Counters);

/// Returns the kinds of cores that the machine has.
pub(crate) fn metrics_of_cores(
    identity: Identity,
    has_slots: bool,
    connection: &Driver,
) -> Result<Vec<CoreMetrics>, Error> {
    let imported = connection.imported()?;
    let of_cores = |(core_type, table, general, fixed): Cores| {
        let mut metrics = builtin(identity, table.map(|one| one.table), has_slots);
        let of_import = imported.as_ref().map(|one| one.metrics_of(identity, core_type.map(pmu::CoreType::number)));
        metrics.extend(of_import.into_iter().flatten());
        (core_type, metrics, Counters { identity, table, general, fixed })
    };
    Ok(cores(identity, connection)?.into_iter().map(of_cores).collect())
}

/// The counters of a kind of cores.
pub(crate) struct Counters {
    identity: Identity,
    table: Option<CoreTable>,
    general: u32,
    fixed: u32,
}

impl Counters {
    /// Returns the counters of an event, the fixed ones in bits 31:16; `None` if only the driver knows them.
    fn mask(&self, name: &str) -> Option<u32> {
        let counters = match Generic::from_name(name).map(|generic| generic.target(self.identity)) {
            Some(Ok(Target::Event { counters, .. })) => counters,
            Some(_) => return None,
            None => self.table?.table.find(name)?.counters,
        };
        let below = |count: u32| u16::try_from((1_u32 << count.min(16)) - 1).unwrap_or(u16::MAX);
        let general = counters.general_mask & below(self.general);
        Some(u32::from(general) | u32::from(counters.fixed_mask & below(self.fixed)) << 16)
    }

    fn can_count(&self, name: &str) -> bool {
        is_of_slots(name) || self.mask(name) != Some(0)
    }

    /// Returns whether events can be counted at the same time.
    fn fit(&self, events: &[&str]) -> bool {
        let others = events.iter().filter(|name| !is_of_slots(name));
        let counters: Option<Vec<Vec<CounterName>>> = others.map(|name| self.mask(name).map(names_of)).collect();
        counters.is_some_and(|counters| fit(&counters.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    }
}

/// Returns the counters of a mask, the fixed ones in bits 31:16. Fixed counters first: fewer events can have them.
fn names_of(mask: u32) -> Vec<CounterName> {
    let number = |bit: u32| u8::try_from(bit % 16).unwrap_or_default();
    let name = |bit| if bit < 16 { CounterName::General(number(bit)) } else { CounterName::Fixed(number(bit)) };
    (0..32).rev().filter(|bit| mask >> bit & 1 == 1).map(name).collect()
}

/// A kind of cores: core type, table, and numbers of general and fixed counters.
type Cores = (Option<pmu::CoreType>, Option<CoreTable>, u32, u32);

/// Returns the kinds of cores that the machine has.
fn cores(identity: Identity, connection: &Driver) -> Result<Vec<Cores>, Error> {
    let tables = vendor_event::tables(Some(identity), None);
    let core_types = connection.request_core_types()?;
    if core_types.is_empty() {
        let info = connection.info()?;
        let general = info.least_counters.saturating_sub(info.fixed_counters);
        return Ok(vec![(None, tables.first().copied(), general, info.fixed_counters)]);
    }
    let of_type = |one: &CoreTable| {
        let core_type = pmu::CoreType::from_number(one.core_type? as u32)?;
        let found = core_types.iter().find(|found| found.name == core_type.name())?;
        let general = found.counters.saturating_sub(found.fixed_counters);
        Some((Some(core_type), Some(*one), general, found.fixed_counters))
    };
    Ok(tables.iter().filter(|one| one.native_model == 0).filter_map(of_type).collect())
}

/// Returns the source of an event by its name, on a core type of a hybrid.
pub(crate) fn source(name: &str, core_type: Option<pmu::CoreType>) -> SourceName {
    let source = SourceName::Name(name.to_owned());
    match core_type {
        Some(core_type) => SourceName::OnCoreType(core_type, Box::new(source)),
        None => source,
    }
}

/// Returns whether a core has two threads; `None` if Windows does not report it.
fn has_threads(system: &dyn System) -> Option<bool> {
    let mut places: Vec<_> = system.topology().ok()?.into_values().collect();
    let number = places.len();
    places.sort_unstable();
    places.dedup();
    (number > 0).then_some(places.len() < number)
}

fn unknown(name: &str, sets: &[&MetricSet]) -> Error {
    let metrics = || sets.iter().flat_map(|set| set.metrics());
    let mut names: Vec<&str> = metrics().map(|metric| metric.name.as_str()).collect();
    names.extend(metrics().flat_map(|metric| metric.groups.iter().map(String::as_str)));
    names.sort_unstable();
    names.dedup();
    NoMetric { name: name.to_owned(), near: nearest(name, names.into_iter(), suggestions::MOST) }.into()
}
