//! `encode`: shows how an event is encoded on each kind of cores of a processor.

use events::CoreTable;
use events::import::Imported;
use halprof::event::{EventName, SourceName, suggestions, vendor_event};
use halprof::text::processors::ranges;
use pmu::Cpuid;
use serde::Serialize;

use crate::cli::EncodeArgs;
use crate::machine::dump;
use counts::cpuid;
use counts::encoding::{CoreEncoding, CounterName, encode};
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::properties;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// No cores of a processor have an event.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The processor has no cores of this type.
    #[error("this processor has no cores of the type {0}")]
    NoSuchCores(String),
    /// No cores have the event.
    #[error("no event is called {given}{}", suggestions::elsewhere(.given, .near))]
    UnknownEvent {
        /// The name, as the user typed it.
        given: String,
        /// The most similar names, best first.
        near: Vec<String>,
        /// Why it is not found.
        #[source]
        cause: NotFound,
    },
}

/// Why an event is not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotFound(String);

impl UserError for EncodeError {
    fn exit(&self) -> Exit {
        Exit::UnknownSource
    }

    fn remedy(&self) -> Option<String> {
        let Self::UnknownEvent { given, .. } = self else { return None };
        events::other_of_perf(given).map(|(_, who)| who.to_owned())
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Encodings {
    cores: Vec<CoreEncoding>,
}

impl Document for Encodings {
    const SCHEMA: &'static str = "halprof.encode/1";
}

pub fn run(args: &EncodeArgs, context: &mut Context) -> Result<(), Error> {
    let event = &args.event.event;
    let imported = context.cache.load()?;
    let imported = imported.as_ref();
    let cores = match &args.cpuid {
        Some(path) => on(event, &cpuid::of_dump(&dump::read(path, context.input)?), imported)?,
        None => on(event, &cpuid::this_processor(), imported)?,
    };
    if args.format.json {
        return context.json(&Encodings { cores });
    }
    let texts: Vec<String> = cores.iter().map(text).collect();
    context.say(&texts.join("\n\n"))
}

fn on(event: &EventName, cpu: &impl Cpuid, imported: Option<&Imported>) -> Result<Vec<CoreEncoding>, Error> {
    let identity = cpuid::vendor_identity(cpu);
    let cores = encode(event, cpu, &vendor_event::tables(identity, None), imported)?;
    let Some(first) = cores.first() else {
        let core_type = pmu::CoreType::from_number(event.source.core_type());
        return Err(EncodeError::NoSuchCores(core_type.map_or("cpu", pmu::CoreType::name).to_owned()).into());
    };
    // An event without a select is known if it is a source of the HAL.
    let is_known = |core: &CoreEncoding| core.select.is_some() || core.note.is_some();
    match event.source.source() {
        SourceName::Name(given) if !cores.iter().any(is_known) && events::Generic::from_name(given).is_none() => {
            let core_type = pmu::CoreType::from_number(event.source.core_type());
            let near = near(given, cpu, &vendor_event::tables(identity, core_type));
            let cause = NotFound(first.error.clone().unwrap_or_default());
            Err(EncodeError::UnknownEvent { given: given.clone(), near, cause }.into())
        }
        _ => Ok(cores),
    }
}

fn near(given: &str, cpu: &impl Cpuid, tables: &[CoreTable]) -> Vec<String> {
    let sources: Vec<&str> = pmu::Hal::new(cpu, 1).map_or_else(
        |_| Vec::new(),
        |hal| {
            let supported = hal.source_list().filter(|source| source.support == pmu::Support::Supported);
            supported.map(|source| source.source.name).collect()
        },
    );
    suggestions::near(given, &sources, tables)
}

fn text(core: &CoreEncoding) -> String {
    let mut rows = vec![("Cores", core.core_type.clone()), ("Event", core.event.clone())];
    rows.extend(core.select.clone().map(|select| ("Select", select)));
    rows.extend(core.extra.as_ref().map(|extra| ("Register", format!("{} = {}", extra.msr, extra.value))));
    if core.select.is_some() {
        rows.push(("Counters", counters(&core.counters)));
        let precise = core.not_recorded.as_ref().filter(|_| core.error.is_none());
        rows.push(("Precise", precise.map_or_else(|| counters(&core.pebs_counters), |why| format!("none: {why}"))));
    }
    if !core.errata.is_empty() {
        rows.push(("Errata", core.errata.join(", ")));
    }
    rows.extend(core.note.clone().map(|note| ("Note", note)));
    rows.extend(core.description.iter().filter(|text| !text.is_empty()).map(|text| ("About", wrapped(text))));
    rows.extend(core.error.clone().map(|error| ("Refused", error)));
    properties(&rows)
}

/// Breaks a text at 80 columns behind the widest name of a row.
fn wrapped(text: &str) -> String {
    const INDENT: &str = "\n          ";
    lines(text, 70).join(INDENT)
}

/// Breaks a text into lines of at most this many characters; longer words are left whole.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Formats counters: `0-3, F1`.
pub fn counters(counters: &[CounterName]) -> String {
    let general = counters.iter().filter_map(|counter| match counter {
        CounterName::General(number) => Some(u32::from(*number)),
        CounterName::Fixed(_) => None,
    });
    let mut parts = vec![ranges(general)];
    parts.extend(counters.iter().filter_map(|counter| match counter {
        CounterName::General(_) => None,
        CounterName::Fixed(number) => Some(format!("F{number}")),
    }));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}
