//! `list`: shows the profile sources, in the format of `wpr -profilesources`.

pub mod metrics;
pub mod own_hal;
pub mod search;
pub mod tables;

use halprof::errata;
use halprof::precise::{PreciseBy, PreciseSources};
use halprof::source::SourceInfo;
use halprof::text::support;
use serde::Serialize;

use self::own_hal::Differences;
use crate::cli::ListArgs;
use crate::verb::encode::lines;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::table;
use user_error::Error;

/// Width of sentences in characters.
const LINE: usize = 80;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct List<'a> {
    sources: &'a [SourceInfo],
    /// How the list of Windows' own HAL differs from the driver's, if it was listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Differences>,
    /// Which of the listed sources can be precise, if the driver says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    precise: Option<PreciseSources>,
}

impl Document for List<'_> {
    const SCHEMA: &'static str = "halprof.list/1";
}

pub fn run(args: &ListArgs, context: &mut Context) -> Result<(), Error> {
    match (args.interface, &args.pattern) {
        (Some(interface), _) => tables::run(interface.into(), args.format.json, context),
        (None, Some(pattern)) if pattern == metrics::ALL => metrics::run(args, context),
        (None, Some(pattern)) => search::run(pattern, args, context),
        (None, None) => sources(args, context),
    }
}

fn sources(args: &ListArgs, context: &mut Context) -> Result<(), Error> {
    let connection = args.backend.open(context)?;
    let limits = connection.backend().limits;
    let sources = connection.sources()?;
    let info = connection.info()?;
    let listed = sources.iter().filter(|source| args.all || source.supported).cloned();
    let mut listed: Vec<SourceInfo> = listed.map(|source| source.with_errata(&info, 0)).collect();
    for source in &mut listed {
        source.core_types = connection.on_core_types(source.event.source)?;
    }
    let differences = limits.map(|_| Differences::on_this_processor(&listed)).transpose()?;
    let precise = if limits.is_none() { PreciseSources::of(&info, &listed) } else { None };
    if args.format.json {
        return context.json(&List { sources: &listed, differences, precise });
    }
    if listed.is_empty() {
        return context.say("no source is supported on this machine; why: .\\client info, .\\client list --all");
    }
    context.say(&sources_table(&listed))?;
    if let Some(sentence) = simultaneous_sources(&listed) {
        context.say(&format!("\n{sentence}"))?;
    }
    if let Some(precise) = &precise {
        context.say(&format!("\n{}", precise_text(precise)))?;
    }
    if let (Some(_), Some(reason)) = (limits, connection.unavailable()?) {
        context.say(&format!("\n{}", reason.paragraph()))?;
    }
    for sentence in differences.iter().flat_map(Differences::sentences) {
        context.say(&format!("\n{sentence}"))?;
    }
    let hidden = sources.iter().count() - listed.len();
    if hidden > 0 {
        let are = if hidden == 1 { "is" } else { "are" };
        context.say(&format!("\n{hidden} more {are} not supported on this machine: .\\client list --all"))?;
    }
    footnotes(listed.iter().flat_map(supports), context)?;
    if listed.iter().any(|source| !source.core_types.is_empty()) {
        context.say("\ncpu_core/NAME/ and cpu_atom/NAME/ count on processors of one core type.")?;
    }
    let wrong = listed.iter().filter(|source| !source.errata.is_empty());
    for (index, source) in wrong.enumerate() {
        let heading = if index == 0 { "\nErrata of this processor:\n" } else { "" };
        context.say(&format!("{heading}{}: {}", source.name, errata::numbers(source.errata.iter())))?;
    }
    Ok(())
}

/// Returns how many sources can be counted at the same time, if all of them use the same counters.
fn simultaneous_sources(listed: &[SourceInfo]) -> Option<String> {
    let mut counted = listed.iter().filter(|source| source.supported && !source.counters.is_empty());
    let counters = &counted.next()?.counters;
    let alike = counted.all(|source| source.counters == *counters && source.core_types.is_empty());
    alike.then(|| format!("At the same time on a processor: any {} of them, and Time.", counters.len()))
}

/// Formats which sources can be precise, or why none can.
fn precise_text(PreciseSources { by, sources, reason }: &PreciseSources) -> String {
    if let Some(reason) = reason {
        return format!("No source can be precise (:p)\n  because: {reason}");
    }
    let by = match by {
        PreciseBy::Pebs => "PEBS, if .\\client control-area shows it",
        PreciseBy::Ibs => "IBS",
    };
    let text = format!("With :p, samples are of the instruction itself ({by}): {}.", sources.join(", "));
    lines(&text, LINE).join("\n")
}

/// Formats the sources. If the support differs between them, it has a column; the range of the interval has no room
/// beside it.
fn sources_table(listed: &[SourceInfo]) -> String {
    let differs = listed.iter().map(supported).any(|support| support != support::word(0));
    let row = |source: &SourceInfo| {
        let mut row = vec![source.event.source.to_string(), source.name.clone(), source.interval.to_string()];
        if differs {
            row.push(supported(source));
        } else {
            row.extend([source.minimum.to_string(), source.maximum.to_string()]);
        }
        row
    };
    let headings: &[&str] =
        if differs { &["Id", "Name", "Interval", "Supported"] } else { &["Id", "Name", "Interval", "Min", "Max"] };
    table(headings, &["Id", "Interval", "Min", "Max"], &listed.iter().map(row).collect::<Vec<_>>())
}

/// Returns the support of a source on each core type, or on the whole machine.
fn supports(source: &SourceInfo) -> Vec<u32> {
    if source.core_types.is_empty() {
        return vec![source.support];
    }
    source.core_types.iter().map(|one| one.support).collect()
}

/// Formats whether a source is supported. On a hybrid the core types that have it are named.
fn supported(source: &SourceInfo) -> String {
    let has_it: Vec<&str> = source.core_types.iter().filter(|one| one.supported).map(|one| one.name.as_str()).collect();
    if has_it.is_empty() || has_it.len() == source.core_types.len() {
        return support::word(source.support).to_owned();
    }
    format!("on {}", has_it.join(", "))
}

/// Explains the texts in the last column, each once.
pub fn footnotes(answers: impl Iterator<Item = u32>, context: &mut Context) -> Result<(), Error> {
    let mut reasons: Vec<u32> = answers.filter(|answer| !support::is_supported(*answer)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for (index, reason) in reasons.into_iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        context.say(&format!("{gap}{}: {}", support::word(reason), support::sentence(reason)))?;
    }
    Ok(())
}
