//! Finds what the options of a selection name in a recording.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use halprof::core_types::qualified;
use halprof::event::SourceName;
use halprof::source;
use halprof::text::argument::argument;
use protocol::UNKNOWN;
use recording::{Reader, RecordedEvent};
use report::{Contents, Filter, NamePattern, ProcessKey, RecordedTime, SampleLocation, Slice, SymbolIndex};

use crate::cli::{ProcessName, SelectionArgs, TimeRange};
use crate::reading::open::{RecordingError, reader, unreadable};

/// What has no such name: the recording, or the part of it that the other options select.
const RECORDING: &str = "the recording";
const SELECTION: &str = "the selection";

/// Returns the processors, threads and time that `args` select of the recording at `path`.
pub fn slice(args: &SelectionArgs, path: &Path) -> Result<Slice, RecordingError> {
    let threads = (!args.threads.is_empty()).then(|| args.threads.iter().copied().collect());
    let time = args.time.as_ref().map(|wanted| {
        let recorded = RecordedTime::read(&mut reader(path)?).map_err(|cause| unreadable(path, cause))?;
        match recorded {
            Some(recorded) if recorded.at(wanted.from) <= recorded.last => {
                Ok(recorded.at(wanted.from)..wanted.to.map_or(u64::MAX, |to| recorded.at(to)))
            }
            recorded => Err(no_time(wanted, recorded)),
        }
    });
    let processors = args.processors.map(|wanted| wanted.0.iter().collect());
    Ok(Slice { processors, threads, time: time.transpose()? })
}

fn no_time(wanted: &TimeRange, recorded: Option<RecordedTime>) -> RecordingError {
    let recorded = recorded.map(|recorded| format!("0s-{:.3}s", recorded.duration().as_secs_f64()));
    let recorded = recorded.into_iter().collect();
    RecordingError::NotRecorded { place: RECORDING, what: "time", given: wanted.text.clone(), recorded }
}

/// Returns the filter for `args`, with the `slice` of which `contents` were read from `path`.
pub fn filter(args: &SelectionArgs, slice: Slice, contents: &Contents, path: &Path) -> Result<Filter, RecordingError> {
    check_processors(&slice, contents)?;
    check_threads(&slice, path)?;
    let events = args.event.as_ref().map(|wanted| events_of(wanted, contents)).transpose()?;
    let core_type = args.event.as_ref().map(SourceName::core_type).filter(|core_type| *core_type != 0);
    let processes =
        (!args.processes.is_empty()).then(|| processes_of(&args.processes, &slice, contents)).transpose()?;
    let patterns = |names: &[String]| names.iter().map(NamePattern::new).collect::<Vec<_>>();
    let (modules, symbols) = (patterns(&args.modules), patterns(&args.functions));
    Ok(Filter { events, core_type, processes, parallelism: Vec::new(), slice, modules, symbols })
}

fn check_processors(slice: &Slice, contents: &Contents) -> Result<(), RecordingError> {
    let recorded = &contents.session.processors;
    let absent = slice.processors.iter().flatten().find(|wanted| !recorded.contains(wanted));
    absent.map_or(Ok(()), |absent| {
        let recorded = recorded.iter().map(ToString::to_string).collect();
        Err(RecordingError::NotRecorded { place: RECORDING, what: "CPU", given: absent.to_string(), recorded })
    })
}

/// Reads the recording once more, because its contents have threads only if they are a column.
fn check_threads(slice: &Slice, path: &Path) -> Result<(), RecordingError> {
    let Some(wanted) = &slice.threads else { return Ok(()) };
    let recorded = threads(reader(path)?);
    let absent = wanted.iter().find(|wanted| !recorded.contains(wanted));
    absent.map_or(Ok(()), |absent| {
        let recorded = recorded.iter().filter(|id| **id != UNKNOWN).map(ToString::to_string).collect();
        Err(RecordingError::NotRecorded { place: RECORDING, what: "thread", given: absent.to_string(), recorded })
    })
}

/// Returns the threads that have samples.
fn threads(input: impl Read) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for block in Reader::new(input).into_iter().flatten().map_while(Result::ok) {
        let samples = block.samples().filter_map(|(record, _)| record.parse().ok()?.sample());
        found.extend(samples.map(|sample| sample.thread));
    }
    found
}

/// Returns the indexes of the events that the user named: they can differ in their modes and core types.
fn events_of(wanted: &SourceName, contents: &Contents) -> Result<BTreeSet<u32>, RecordingError> {
    let events = &contents.session.events;
    let core_type = wanted.core_type();
    let has_type = |of: u32| core_type == 0 || of == core_type;
    let is_sampled = has_type(0) || contents.session.core_types.iter().any(|one| has_type(one.core_type));
    let is_wanted = |(_, event): &(u32, &RecordedEvent)| {
        let is_type = event.core_type == 0 || has_type(event.core_type);
        is_sampled && is_type && source::is_named(wanted, event.source, &event.name)
    };
    let found: BTreeSet<u32> = (0..).zip(events).filter(is_wanted).map(|(index, _)| index).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let recorded = events.iter().map(|event| qualified(&event.name, event.core_type)).collect();
    Err(RecordingError::NotRecorded { place: RECORDING, what: "source", given: wanted.to_string(), recorded })
}

fn processes_of(
    wanted: &[ProcessName],
    slice: &Slice,
    contents: &Contents,
) -> Result<BTreeSet<ProcessKey>, RecordingError> {
    let sampled: BTreeSet<ProcessKey> =
        contents.sample_counts.locations().map(|(location, _)| location.process).collect();
    let mut all = BTreeSet::new();
    for one in wanted {
        let (given, meant): (String, BTreeSet<ProcessKey>) = match one {
            ProcessName::Number(number) => {
                let nameless = ProcessKey::from(*number);
                (number.to_string(), contents.processes.with_id(*number).chain([nameless]).collect())
            }
            ProcessName::Name(name) => (name.clone(), contents.processes.named(name).collect()),
        };
        // A process of the recording can have no samples in the slice.
        let is_outside = !slice.is_whole() && meant.iter().any(|process| contents.processes.name(*process).is_some());
        if meant.is_disjoint(&sampled) && !is_outside {
            let mut recorded: Vec<String> =
                sampled.iter().filter_map(|process| contents.processes.name(*process)).map(ToOwned::to_owned).collect();
            recorded.sort_unstable();
            recorded.dedup();
            return Err(RecordingError::NotRecorded { place: RECORDING, what: "process", given, recorded });
        }
        all.extend(meant);
    }
    Ok(all)
}

/// Checks that each pattern of the filter matches a module or symbol at one of the locations, of which `symbol_index`
/// has the names. Returns the patterns of symbols with what they mean.
pub fn resolved_names(
    filter: &Filter,
    locations: impl Iterator<Item = (SampleLocation, u64)>,
    symbol_index: &SymbolIndex,
) -> Result<Vec<NamePattern>, RecordingError> {
    let mut patterns = filter.symbols.clone();
    if filter.modules.is_empty() && patterns.is_empty() {
        return Ok(patterns);
    }
    let mut modules: BTreeMap<String, u64> = BTreeMap::new();
    let mut symbols: BTreeMap<[String; 2], u64> = BTreeMap::new();
    for (location, events) in locations {
        *modules.entry(symbol_index.module(&location).to_owned()).or_default() += events;
        for names in symbol_index.names(&location) {
            *symbols.entry(names.map(Cow::into_owned)).or_default() += events;
        }
    }
    let is_absent = |pattern: &&NamePattern| !modules.keys().any(|name| pattern.matches_file(name));
    let (what, given, names) = match filter.modules.iter().find(is_absent) {
        Some(module) => ("module", module, modules),
        None => match resolve(&mut patterns, symbols.keys())? {
            Some(symbol) => ("symbol", symbol, symbols.into_iter().map(|([name, _], events)| (name, events)).collect()),
            None => return Ok(patterns),
        },
    };
    let given = given.as_str().to_owned();
    let mut names: Vec<(String, u64)> = names.into_iter().collect();
    names.sort_by_key(|(_, events)| Reverse(*events));
    let recorded = names.into_iter().map(|(name, _)| name).collect();
    let is_all = filter.processes.is_none() && filter.events.is_none() && filter.slice.is_whole();
    let place = if is_all { RECORDING } else { SELECTION };
    Err(RecordingError::NotRecorded { place, what, given, recorded })
}

/// Finds out which of `names`, without and with their notes, the patterns mean. Returns the first that means none.
fn resolve<'a, 'b>(
    patterns: &'a mut [NamePattern],
    names: impl Iterator<Item = &'b [String; 2]>,
) -> Result<Option<&'a NamePattern>, RecordingError> {
    let all: Vec<&[String; 2]> = names.collect();
    for pattern in patterns {
        let mut found = pattern.resolve(&all, |pattern, names| names.iter().any(|name| pattern.matches(name)));
        found.dedup_by(|[one, _], [other, _]| one == other);
        match &found[..] {
            [] => return Ok(Some(pattern)),
            [[name, _]] if pattern.is_part() => pattern.choose(name),
            several if pattern.is_part() => {
                let names = several.iter().map(|[name, _]| name.clone()).collect();
                let (given, pattern) = (pattern.as_str().to_owned(), format!("*{}*", pattern.as_str()));
                let remedy = format!("--symbol {}", argument(&pattern));
                return Err(RecordingError::Ambiguous { given, names, remedy });
            }
            _ => {}
        }
    }
    Ok(None)
}
