//! `encode`: shows how an event is encoded on each kind of cores of a processor.

use halprof::text::processors::ranges;
use serde::Serialize;

use crate::cli::EncodeArgs;
use crate::machine::dump;
use counts::encoding::{CoreEncoding, CounterName};
use counts::{cpuid, known_event};
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::properties;
use user_error::Error;

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
        Some(path) => known_event::encode(event, &cpuid::of_dump(&dump::read(path, context.input)?), imported)?,
        None => known_event::encode(event, &cpuid::this_processor(), imported)?,
    };
    if args.format.json {
        return context.json(&Encodings { cores });
    }
    let texts: Vec<String> = cores.iter().map(text).collect();
    context.say(&texts.join("\n\n"))
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
