//! `list PATTERN`: searches the events of a processor by name, without a driver.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use events::Generic;
use events::import::Imported;
use halprof::event::{EventName, SourceName, suggestions, vendor_event};
use halprof::text::argument::argument;
use pmu::{Cpuid, Hal, Support};
use report::NamePattern;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::ListArgs;
use crate::machine::dump;
use crate::verb::encode::{counters, lines};
use counts::cpuid;
use counts::descriptions;
use counts::encoding::{CoreEncoding, encode};
use counts::processor_metrics::{self, MetricInfo};
use terminal::context::Context;
use terminal::document::Document;
use user_error::exit::Exit;
use user_error::{Error, OutOfMemory, UserError};

/// Widths of the columns, which fill 80 characters with two spaces between them.
const NAME: usize = 45;
const CORES: usize = 12;
const COUNTERS: usize = 9;
const LINE: usize = 80;

/// No event has a name that matches.
#[derive(Debug, ThisError)]
#[error("no event of this processor matches {pattern}{}", suggestions::elsewhere(.pattern, .near))]
struct NoMatch {
    pattern: String,
    near: Vec<String>,
}

impl UserError for NoMatch {
    fn exit(&self) -> Exit {
        Exit::UnknownSource
    }

    fn remedy(&self) -> Option<String> {
        Some(".\\client list \"*\"   (lists every event)".to_owned())
    }
}

/// What a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A generic name of perf.
    Generic,
    /// A profile source of the HAL.
    Source,
    /// An event of the processor's maker.
    Event,
}

/// An event on a kind of cores, as `--json` shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Match {
    kind: Kind,
    deprecated: bool,
    description: Option<String>,
    #[serde(flatten)]
    encoding: CoreEncoding,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Matches {
    events: Vec<Match>,
    metrics: Vec<MetricInfo>,
}

impl Document for Matches {
    const SCHEMA: &'static str = "halprof.events/1";
}

/// A name of a processor.
struct Name {
    text: String,
    kind: Kind,
    deprecated: bool,
    /// What its maker says about it.
    description: String,
}

impl Name {
    fn new(text: &str, kind: Kind, deprecated: bool) -> Self {
        Self { text: text.to_owned(), kind, deprecated, description: String::new() }
    }

    /// Returns whether name or description match.
    fn matches(&self, pattern: &NamePattern) -> bool {
        pattern.matches(&self.text) || pattern.is_part() && pattern.matches(&self.description)
    }
}

pub fn run(pattern: &str, args: &ListArgs, context: &mut Context) -> Result<(), Error> {
    let imported = context.cache.load()?;
    let imported = imported.as_ref();
    let found = match &args.cpuid {
        Some(path) => search(pattern, args.all, &cpuid::of_dump(&dump::read(path, context.input)?), imported)?,
        None => search(pattern, args.all, &cpuid::this_processor(), imported)?,
    };
    let Found { events: matches, metrics, hidden } = found;
    if args.format.json {
        return context.json(&Matches { events: matches, metrics });
    }
    if !matches.is_empty() {
        context.say(&table(&matches))?;
    }
    if !metrics.is_empty() {
        let gap = if matches.is_empty() {
            ""
        } else {
            "
"
        };
        context.say(&format!("{gap}{}", crate::verb::list::metrics::table(&metrics)))?;
    }
    if matches.iter().any(|one| one.encoding.error.is_some()) {
        context.say("\nrefused: the driver cannot count it; .\\client encode NAME says why")?;
    }
    if hidden > 0 {
        let are = if hidden == 1 { "name is" } else { "names are" };
        context.say(&format!("\n{hidden} deprecated {are} left out: .\\client list {} --all", argument(pattern)))?;
    }
    Ok(())
}

/// What a search found.
struct Found {
    /// The events on each kind of cores that has them.
    events: Vec<Match>,
    /// The metrics.
    metrics: Vec<MetricInfo>,
    /// Number of deprecated names that are left out.
    hidden: usize,
}

/// Returns the events and metrics that match.
fn search(pattern: &str, all: bool, cpu: &impl Cpuid, imported: Option<&Imported>) -> Result<Found, Error> {
    let identity = cpuid::vendor_identity(cpu);
    let tables = vendor_event::tables(identity, None);
    let names = names(cpu, &tables, imported)?;
    let wanted = NamePattern::part(pattern);
    let mut matching: Vec<&Name> = names.iter().filter(|name| name.matches(&wanted)).collect();
    // Two names of one generic event are shown as one.
    matching.dedup_by_key(|name| Generic::from_name(&name.text).map_or(name.text.as_str(), |one| one.name()));
    let metrics = processor_metrics::all(cpu, imported, &|metric| {
        let name = Name { description: metric.brief.clone(), ..Name::new(&metric.name, Kind::Event, false) };
        name.matches(&wanted) || metric.groups.iter().any(|group| group.eq_ignore_ascii_case(pattern))
    })?;
    if matching.is_empty() && metrics.is_empty() {
        let texts: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
        let near = events::nearest(pattern, texts.into_iter(), suggestions::MOST);
        return Err(NoMatch { pattern: pattern.to_owned(), near }.into());
    }
    let hidden = matching.iter().filter(|name| name.deprecated && !all).count();
    let mut matches = Vec::new();
    for name in matching.into_iter().filter(|name| !name.deprecated || all) {
        let event = EventName {
            source: SourceName::Name(name.text.clone()),
            modes: protocol::modes::BOTH,
            counters: 0,
            flags: 0,
        };
        let found = encode(&event, cpu, &tables, imported)?
            .into_iter()
            .filter(|one| one.select.is_some() || one.note.is_some());
        matches.extend(found.map(|encoding| Match {
            kind: name.kind,
            deprecated: name.deprecated,
            description: encoding.description.clone(),
            encoding,
        }));
    }
    Ok(Found { events: matches, metrics, hidden })
}

/// Returns the names of a processor: those of perf, the supported sources of the HAL, and the events of its tables and
/// of imported files.
fn names(cpu: &impl Cpuid, tables: &[events::CoreTable], imported: Option<&Imported>) -> Result<Vec<Name>, Error> {
    let generic = Generic::ALL.iter().flat_map(|generic| generic.names());
    let mut names: Vec<Name> = generic.map(|name| Name::new(name, Kind::Generic, false)).collect();
    let hal = Hal::new(cpu, 1).map_err(|_| OutOfMemory)?;
    let supported = hal.source_list().filter(|source| source.support == Support::Supported);
    names.extend(supported.map(|source| Name::new(source.source.name, Kind::Source, false)));
    let mut events: BTreeMap<String, Name> = BTreeMap::new();
    for event in tables.iter().flat_map(|one| one.table.events()) {
        let description = descriptions::of(&event.name).unwrap_or_default().to_owned();
        let name = Name { description, ..Name::new(&event.name, Kind::Event, event.deprecated) };
        let known = events.entry(event.name.to_ascii_uppercase()).or_insert(name);
        known.deprecated &= event.deprecated;
    }
    let files = imported.zip(cpuid::vendor_identity(cpu)).map(|(imported, identity)| imported.of(identity, None));
    for event in files.into_iter().flatten().flat_map(|file| &file.events) {
        let is_deprecated = || event.event().is_some_and(|event| event.deprecated);
        let known = events
            .entry(event.name().to_ascii_uppercase())
            .or_insert_with(|| Name::new(event.name(), Kind::Event, is_deprecated()));
        known.description = format!("{} {}", event.brief, event.description);
    }
    names.extend(events.into_values());
    Ok(names)
}

/// Formats the matches in 80 columns; a long name has a line of its own.
fn table(matches: &[Match]) -> String {
    let line = |name: &str, cores: &str, counting: &str, precise: &str| {
        let line = format!("{name:NAME$}  {cores:CORES$}  {counting:COUNTERS$}  {precise}");
        line.trim_end().to_owned()
    };
    let rule = "-";
    let mut text = line("Name", "Cores", "Counters", "Precise");
    let rules = line(&rule.repeat(NAME), &rule.repeat(CORES), &rule.repeat(COUNTERS), &rule.repeat(7));
    let _ = write!(text, "\n{rules}"); // a string takes everything
    for (index, Match { encoding, .. }) in matches.iter().enumerate() {
        let mut rest = encoding.event.as_str();
        while rest.len() > NAME {
            let (first, behind) = rest.split_at(rest.len().min(LINE - 2));
            let _ = write!(text, "\n{first}");
            rest = behind;
        }
        let counting = match &encoding.error {
            Some(_) => "refused".to_owned(),
            None if encoding.select.is_none() => "a timer".to_owned(),
            None => counters(&encoding.counters),
        };
        let precise =
            if encoding.pebs_counters.is_empty() { "no".to_owned() } else { counters(&encoding.pebs_counters) };
        let _ = write!(text, "\n{}", line(rest, &encoding.core_type, &counting, &precise));
        // Once below the rows of all core types.
        let same = |next: &Match| next.encoding.event == encoding.event && next.description == encoding.description;
        let description = encoding.description.iter().filter(|_| !matches.get(index + 1).is_some_and(same));
        for part in description.flat_map(|description| lines(description, LINE - 4)) {
            let _ = write!(text, "\n    {part}");
        }
        if !encoding.errata.is_empty() {
            let _ = write!(text, "\n    counted wrongly, errata {}", encoding.errata.join(", "));
        }
    }
    text
}
