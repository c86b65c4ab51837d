//! The sources that an event stands for on the machine of a driver: a source of the HAL, a generic name of perf, or an
//! event by its maker's name.

use events::import::ImportedEvent;
use events::{CoreTable, CoreType, Counters, Event as VendorEvent, Generic, Identity, Target};
use pmu::Source;
use pmu::extra::Extra;
use pmu::source::RawEvent;
use protocol::{Event, EventRequest, ProcessorSet, modes};

use crate::Driver;
use crate::core_types::CoreTypeInfo;
use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::event::event_cache;
use crate::event::no_generic::NoGeneric;
use crate::event::raw_event::{ExtraTerm, term_of};
use crate::event::suggestions;
use crate::event::vendor_event::{self, CannotCount, CannotCountEvent};
use crate::event::{EventName, SourceName};
use crate::source::{SourceError, SourceInfo, Sources};
use crate::text::format;
use crate::text::unavailable::NoCounters;

/// UnhaltedReferenceCycles, the source of fixed counter 2.
const REFERENCE_CYCLES: u64 = 0x1B;

/// Both mode bits of an event select register.
const BOTH_MODES: u64 = (modes::BOTH as u64) << 16;

/// An event as a session counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEvent {
    /// Its name, with its core type and its modes: `TotalIssues:u`, `cpu_core/TotalCycles/`.
    pub name: String,
    /// The event in a request.
    pub request: EventRequest,
}

impl Driver {
    /// Returns the events that a text names, as `.\client stat -e` takes one: `instructions:u`,
    /// `cpu/event=0xc0,umask=0x01/`. If the text names no modes, they are those of `default_modes`, bits of
    /// [`modes`].
    ///
    /// On a hybrid, an event by its maker's name is one for each core type of `processors` that has it; an empty set is
    /// all processors.
    ///
    /// # Errors
    /// If the text is malformed, nothing has this name, or the driver cannot count the event.
    pub fn events(&self, text: &str, default_modes: u32, processors: &ProcessorSet) -> Result<Vec<NamedEvent>, Error> {
        let requests = requests(&EventName::parse(text, default_modes)?, processors, self)?;
        let sources = self.sources()?;
        Ok(requests.into_iter().map(|request| NamedEvent { name: sources.label(&request), request }).collect())
    }
}

/// Returns the events that a name stands for, as a request has them. On a hybrid, an event by its maker's name is one
/// for each core type of `processors` that has it; an empty set is all processors.
///
/// # Errors
/// If nothing has this name, or the driver cannot count the event.
pub fn requests(name: &EventName, processors: &ProcessorSet, driver: &Driver) -> Result<Vec<EventRequest>, Error> {
    let request = |SourceInfo { event, .. }: SourceInfo| EventRequest {
        event: Event { counters: if name.counters == 0 { event.counters } else { name.counters }, ..event },
        modes: name.modes,
        flags: name.flags,
        ..EventRequest::EMPTY
    };
    Ok(resolve(&name.source, name.modes, processors, driver)?.into_iter().map(request).collect())
}

/// Returns the source of an event that must be one, such as that of `query`: on a hybrid that of the first core type.
///
/// # Errors
/// If nothing has this name, or the driver cannot count the event.
pub fn one(wanted: &SourceName, driver: &Driver) -> Result<SourceInfo, Error> {
    let found = resolve(wanted, modes::BOTH, &ProcessorSet::EMPTY, driver)?;
    found.into_iter().next().ok_or_else(|| unknown(wanted, driver.sources(), &[]))
}

/// Returns the sources of an event, as [`find`] does, by the name that the user gave it: messages have it too.
///
/// # Errors
/// As for [`find`].
pub fn resolve(
    wanted: &SourceName,
    modes: u32,
    processors: &ProcessorSet,
    driver: &Driver,
) -> Result<Vec<SourceInfo>, Error> {
    let mut found = find(wanted, modes, processors, driver)?;
    if let word @ (SourceName::Name(_) | SourceName::Valued(..)) = wanted.source() {
        for source in &mut found {
            driver.sources()?.rename(source, &word.to_string());
        }
    }
    Ok(found)
}

/// Returns the sources of an event. On a hybrid an event by its maker's name is one for each core type that has it, as
/// in perf; with a set of processors, only those of these processors.
///
/// # Errors
/// If nothing has this name, the machine has no counters, or the driver cannot count the event or, with
/// [`modes::PRECISE`], record it.
pub fn find(
    wanted: &SourceName,
    modes: u32,
    processors: &ProcessorSet,
    driver: &Driver,
) -> Result<Vec<SourceInfo>, Error> {
    let found = in_tables(wanted, modes, processors, driver);
    let needs_counter = match &found {
        Ok(found) => found.iter().any(|one| one.event.source != Source::TIME.0),
        Err(error) => error.kind() == ErrorKind::UnsupportedSource,
    };
    match driver.unavailable()?.filter(|_| needs_counter) {
        Some(cause) => Err(NoCounters { name: wanted.to_string(), cause }.into()),
        None => found,
    }
}

/// Returns the sources of an event that the tables of the machine have.
fn in_tables(
    wanted: &SourceName,
    modes: u32,
    processors: &ProcessorSet,
    driver: &Driver,
) -> Result<Vec<SourceInfo>, Error> {
    let sources = driver.sources()?;
    let core_type = wanted.core_type();
    let error = match (sources.find(wanted), wanted.source()) {
        (Ok(source), _) => return Ok(vec![source]),
        (Err(error), SourceName::Name(name)) => (error, name, None),
        (Err(error), SourceName::Valued(name, value)) => (error, name, Some(*value)),
        (Err(error), _) => return Err(error.into()),
    };
    let (error, name, value) = error;
    let Some(identity) = vendor_event::identity_of(&driver.info()?) else { return Err(error.into()) };
    if let Some(generic) = Generic::from_name(name) {
        if let Some(value) = value {
            let cause = CannotCount::OtherValue(term_of(value.selector));
            return Err(CannotCountEvent { name: name.clone(), cause }.into());
        }
        let target = generic.target(identity).map_err(|cause| NoGeneric { name: name.clone(), cause })?;
        return Ok(vec![of_target(target, core_type, sources)?]);
    }
    let tables = vendor_event::tables(Some(identity), pmu::CoreType::from_number(core_type));
    let tables = on_processors(tables, driver.core_types()?, processors);
    let mut found = with_event(name, value, modes, identity, &tables, sources)?;
    if found.is_empty() {
        found = with_imported(name, value, modes, identity, &tables, driver)?;
    }
    if !found.is_empty() {
        return Ok(found);
    }
    match error {
        SourceError::Unknown { .. } => Err(unknown(wanted, Ok(sources), &tables)),
        other @ SourceError::OtherInterface { .. } => Err(other.into()),
    }
}

fn unknown(wanted: &SourceName, sources: Result<&Sources, Error>, tables: &[CoreTable]) -> Error {
    let given = wanted.source().to_string();
    let names = sources.map(Sources::names).unwrap_or_default();
    let near = suggestions::near(&given, &names, tables);
    SourceError::Unknown { given, near }.into()
}

/// Returns the tables of the core types that the machine has among these processors, an empty set being all. A machine
/// that is no hybrid has one table.
fn on_processors(tables: Vec<CoreTable>, core_types: &[CoreTypeInfo], processors: &ProcessorSet) -> Vec<CoreTable> {
    if core_types.is_empty() {
        return tables.into_iter().take(1).map(|one| CoreTable { core_type: None, ..one }).collect();
    }
    let has = |wanted: CoreType| {
        let of_type = core_types.iter().find(|one| one.number == wanted as u32);
        of_type.is_some_and(|one| {
            processors.is_empty() || one.processors.iter().any(|processor| processors.contains(*processor))
        })
    };
    tables.into_iter().filter(|one| one.core_type.is_some_and(has)).collect()
}

/// Returns the sources of an event in each of the tables that has it. If all of them are the same source of the HAL, it
/// is not restricted to a core type.
fn with_event(
    name: &str,
    value: Option<Extra>,
    modes: u32,
    identity: Identity,
    tables: &[CoreTable],
    sources: &Sources,
) -> Result<Vec<SourceInfo>, Error> {
    let mut found: Vec<SourceInfo> = Vec::new();
    let usual = || tables.iter().filter(|one| one.native_model == 0);
    for (one, event) in usual().filter_map(|one| Some((one, one.table.find(name)?))) {
        let core_type = one.core_type.map_or(0, |core_type| core_type as u32);
        let cannot = |cause| CannotCountEvent { name: event.name.clone(), cause };
        let request = vendor_event::request(&event, value, modes).map_err(cannot)?;
        if is_raw(&request) && has_other_event(&event, *one, identity) {
            return Err(cannot(CannotCount::LowPowerCores).into());
        }
        found.push(resolved(Event { core_type, ..request }, &event, value, sources)?);
    }
    if found.len() > 1 && !found.iter().any(|one| is_raw(&one.event)) {
        found.truncate(1);
        if let Some(one) = found.first_mut() {
            one.event.core_type = 0;
        }
    }
    Ok(found)
}

fn is_raw(event: &Event) -> bool {
    Source(event.source).is_raw()
}

/// Returns the source of an event of the maker, and remembers its name.
fn resolved(
    event: Event,
    of_maker: &VendorEvent,
    value: Option<Extra>,
    sources: &Sources,
) -> Result<SourceInfo, SourceError> {
    let mut source = listed(event, sources)?;
    if is_raw(&event) {
        let name = &of_maker.name;
        source.name = value.map_or_else(|| name.clone(), |value| format!("{name}:{}", ExtraTerm(value)));
        sources.remember(&source, of_maker.alone);
    }
    Ok(source)
}

/// Returns the source of an event that the tables of this machine have.
fn listed(event: Event, sources: &Sources) -> Result<SourceInfo, SourceError> {
    let unknown = || SourceError::Unknown { given: format!("{:#04x}", event.source), near: Vec::new() };
    sources.of_event(event).ok_or_else(unknown)
}

/// Returns the sources of an imported event, which the tables lack, on each core type.
fn with_imported(
    name: &str,
    value: Option<Extra>,
    modes: u32,
    identity: Identity,
    tables: &[CoreTable],
    driver: &Driver,
) -> Result<Vec<SourceInfo>, Error> {
    let (imported, sources) = (driver.imported()?, driver.sources()?);
    let mut found = Vec::new();
    for one in tables.iter().filter(|one| one.native_model == 0) {
        let core_type = one.core_type.map_or(0, |core_type| core_type as u32);
        let event = event_cache::find(imported.as_ref(), Some(identity), core_type, name);
        let Some(event) = event.and_then(ImportedEvent::event) else { continue };
        let cannot = |cause| CannotCountEvent { name: event.name.clone(), cause };
        let request = vendor_event::request(&event, value, modes).map_err(cannot)?;
        // The driver may not know an event that is newer than it.
        let mask = u32::from(event.counters.general_mask);
        let counters = if is_raw(&request) && event.counters != Counters::ANY { mask } else { 0 };
        found.push(resolved(Event { core_type, counters, ..request }, &event, value, sources)?);
    }
    Ok(found)
}

/// Returns whether cores that the driver does not distinguish from those of a table have another event of its encoding.
fn has_other_event(event: &VendorEvent, table: CoreTable, identity: Identity) -> bool {
    let all = events::core_tables(identity);
    let mut rarer = all.iter().filter(|one| one.core_type == table.core_type && one.native_model != 0);
    table.core_type.is_some()
        && rarer.any(|one| {
            let other = one.table.find(&event.name);
            other.is_none_or(|other| (other.encoding, &other.extra) != (event.encoding, &event.extra))
        })
}

/// Returns the source that a generic name stands for: one of the HAL if it has the same encoding.
fn of_target(target: Target, core_type: u32, sources: &Sources) -> Result<SourceInfo, SourceError> {
    let source = match target {
        Target::Time => Source::TIME.0,
        Target::Source(number) => number.into(),
        Target::Event { counters, .. } if counters.general_mask == 0 => REFERENCE_CYCLES,
        Target::Event { encoding, .. } => {
            let select = format::select(encoding.select() | BOTH_MODES);
            let is_it = |source: &&SourceInfo| {
                source.supported && source.event.source != Source::TIME.0 && source.select == select
            };
            let raw = || RawEvent::new().with_event(encoding.event).with_umask(encoding.umask).source().0;
            sources.iter().find(is_it).map_or_else(raw, |source| source.event.source)
        }
    };
    listed(Event { core_type, ..Event::of(source) }, sources)
}
