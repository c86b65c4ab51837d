//! Makes the facts from a folder with tables of events: `intel/*_core.csv` and `amd/fam15h.csv`.
//!
//! What these tables lack is in `crates/pmu/facts/import`, and in files that the import does not write: those of Core,
//! Core 2, P6 and family 15h, whose counters come from Linux.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};

use super::HEADER;
use crate::table::{AMD, INTEL, flag, hexadecimal, list, read, rows};

/// The generation of each table of Intel's, and its columns.
const FILES: (&str, &str) = ("import/files.csv", "generation,file");
/// Counters that Intel's tables do not have, and the columns of that file.
const COUNTERS: (&str, &str) = ("import/counters.csv", "generation,event,umask,listed,counters");
/// Counters of events that Intel's tables do not name, and the columns of that file.
const UNLISTED: (&str, &str) = ("import/unlisted.csv", "generation,first,last,umask,counters");
/// The table of family 15h, and its facts.
const FAMILY_15: (&str, &str) = ("amd/fam15h.csv", "bulldozer.csv");

/// A row of a file of facts. The order of the fields is that of the rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    event: u16,
    umask: u16,
    cmask: u8,
    /// INV, edge and AnyThread.
    flags: [bool; 3],
    name: String,
    counters: Counters,
    /// Complemented, so that rows that record come first.
    not_precise: u16,
    needs_second: bool,
}

/// The counters of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counters {
    General(u16),
    Fixed(u8),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, umask, cmask, name, .. } = self;
        let [inv, edge, any] = self.flags.map(u8::from);
        write!(f, "{name},{event:02X},{umask:02X},{cmask},{inv},{edge},{any},")?;
        match self.counters {
            Counters::General(mask) => write!(f, "{mask:X}")?,
            Counters::Fixed(number) => write!(f, "fixed{number}")?,
        }
        write!(f, ",{:X},{}", !self.not_precise, u8::from(self.needs_second))
    }
}

/// Counters to take instead of those that the tables of a generation list.
struct Replacement {
    generation: String,
    /// `None`: every event.
    event: Option<u16>,
    /// `None`: every unit mask.
    umask: Option<u16>,
    listed: u16,
    counters: u16,
}

/// Makes the facts.
pub fn run(folder: &Path, facts: &Path) -> Result<()> {
    let generations = generations(&read(&facts.join(FILES.0))?).context(FILES.0)?;
    let replacements = replacements(&read(&facts.join(COUNTERS.0))?).context(COUNTERS.0)?;
    for entry in fs::read_dir(folder.join("intel")).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_known = generations.values().flatten().any(|file| *file == name);
        ensure!(is_known || name == "map.csv", "{name} belongs to no generation: add it to {}", FILES.0);
    }
    let unlisted = rows(&read(&facts.join(UNLISTED.0))?, UNLISTED.1, unlisted).context(UNLISTED.0)?;
    let mut texts = Vec::new();
    for (generation, files) in generations {
        let mut merged_rows = BTreeSet::new();
        for file in files {
            let path = folder.join("intel").join(file);
            let lines = rows(&read(&path)?, INTEL, intel).with_context(|| path.display().to_string())?;
            merged_rows.extend(lines.into_iter().flatten());
        }
        let rows = merged_rows.into_iter().map(|row| replaced(row, &generation, &replacements)).collect();
        let nameless = unlisted.iter().filter(|(of, _)| *of == generation).flat_map(|(_, lines)| lines.iter().cloned());
        texts.push((format!("{generation}.csv"), text(merged(rows), nameless)));
    }
    check_names(&read(&folder.join(FAMILY_15.0))?, &read(&facts.join(FAMILY_15.1))?)?;
    // Nothing is changed unless every file is right.
    for (name, text) in texts {
        fs::write(facts.join(&name), text).with_context(|| name)?;
    }
    Ok(())
}

/// Returns the files of each generation.
fn generations(text: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut generations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for [generation, file] in rows(text, FILES.1, |fields: [&str; 2]| Ok(fields.map(str::to_owned)))? {
        generations.entry(generation).or_default().push(file);
    }
    Ok(generations)
}

fn replacements(text: &str) -> Result<Vec<Replacement>> {
    let any_or = |text: &str| if text == "*" { Ok(None) } else { u16::from_str_radix(text, 16).map(Some) };
    rows(text, COUNTERS.1, |[generation, event, umask, listed, counters]| {
        Ok(Replacement {
            generation: generation.to_owned(),
            event: any_or(event)?,
            umask: any_or(umask)?,
            listed: u16::from_str_radix(listed, 16)?,
            counters: u16::from_str_radix(counters, 16)?,
        })
    })
}

/// Returns the rows of an event: one for each of its encodings.
fn intel(fields: [&str; 15]) -> Result<Vec<Row>> {
    let [name, event, umask, cmask, inv, edge, any, counters, pebs, recording, msr, ..] = fields;
    let counters = match counters.strip_prefix('F') {
        Some(number) => Counters::Fixed(number.parse()?),
        None => Counters::General(u16::try_from(hexadecimal(counters)?)?),
    };
    let needs_second = list(msr)?.into_iter().any(|msr| msr != 0);
    let precise = match counters {
        Counters::General(mask) if pebs != "0" && !needs_second => match recording {
            // The first four counters record if the table does not say which do.
            "" => mask & 0xF,
            // Fixed counters are in bits 63:32.
            recording => u16::try_from(hexadecimal(recording)? & 0xFFFF_FFFF)?,
        },
        _ => 0,
    };
    // Events that need a second register differ by its value, which no request can select.
    let name = if needs_second { name.split('.').next().unwrap_or(name) } else { name };
    let (events, umasks) = (list(event)?, list(umask)?);
    let encodings = events.iter().flat_map(|event| umasks.iter().map(move |umask| (*event, *umask)));
    let row = |(event, umask): (u16, u16)| {
        Ok(Row {
            event,
            umask,
            cmask: cmask.parse()?,
            flags: [flag(inv)?, flag(edge)?, flag(any)?],
            name: name.to_owned(),
            counters,
            not_precise: !precise,
            needs_second,
        })
    };
    encodings.map(row).collect()
}

/// Returns the row with other counters if there is a replacement for it: the last one that fits.
fn replaced(row: Row, generation: &str, replacements: &[Replacement]) -> Row {
    let fits = |replacement: &&Replacement| {
        replacement.generation == generation
            && replacement.event.is_none_or(|event| event == row.event)
            && replacement.umask.is_none_or(|umask| umask == row.umask)
            && row.counters == Counters::General(replacement.listed)
    };
    match replacements.iter().rfind(fits) {
        Some(Replacement { counters, .. }) => {
            // A counter that does not count records nothing.
            Row { counters: Counters::General(*counters), not_precise: row.not_precise | !counters, ..row }
        }
        None => row,
    }
}

/// Merges an event `X_P` and its precise form `X_PS` if they have the same encoding.
fn merged(mut rows: BTreeSet<Row>) -> BTreeSet<Row> {
    let forms: Vec<Row> = rows.iter().filter(|row| row.name.ends_with("_PS")).cloned().collect();
    for form in forms {
        let encoding = |row: &Row| (row.event, row.umask, row.cmask, row.flags);
        let is_event = |row: &&Row| encoding(row) == encoding(&form) && form.name.strip_suffix('S') == Some(&row.name);
        if let Some(event) = rows.iter().find(is_event).cloned() {
            rows.remove(&event);
            rows.remove(&form);
            rows.insert(Row { not_precise: form.not_precise, ..event });
        }
    }
    rows
}

/// Returns a generation, and a nameless row for each event number of a range.
fn unlisted([generation, first, last, umask, counters]: [&str; 5]) -> Result<(String, Vec<String>)> {
    let (first, last, counters) = (hexadecimal(first)?, hexadecimal(last)?, hexadecimal(counters)?);
    let row = |event| format!(",{event:02X},{umask},0,0,0,0,{counters:X},0,0");
    Ok((generation.to_owned(), (first..=last).map(row).collect()))
}

/// Formats a file of facts.
fn text(rows: impl IntoIterator<Item = Row>, nameless: impl Iterator<Item = String>) -> String {
    let rows = rows.into_iter().map(|row| row.to_string());
    let mut lines: Vec<String> = [HEADER.to_owned()].into_iter().chain(rows).chain(nameless).collect();
    lines.push(String::new());
    lines.join("\n")
}

/// Checks that the facts of family 15h name exactly the events of the table. Their counters come from Linux.
fn check_names(table: &str, facts: &str) -> Result<()> {
    let listed = rows(table, AMD, |[name, sub, event, umask]| {
        let name = if sub.is_empty() { name.to_owned() } else { format!("{name}.{sub}") };
        Ok((hexadecimal(event)?, hexadecimal(umask)?, name))
    });
    let listed: BTreeSet<_> = listed.context(FAMILY_15.0)?.into_iter().collect();
    let named = rows(facts, HEADER, |[name, event, umask, ..]: [&str; 10]| {
        let is_encoding = !name.is_empty() && umask != "*";
        let encoding = || Ok((hexadecimal(event)?, hexadecimal(umask)?, name.to_owned()));
        is_encoding.then(encoding).transpose()
    });
    let named: BTreeSet<_> = named.context(FAMILY_15.1)?.into_iter().flatten().collect();
    if let Some((event, umask, name)) = listed.symmetric_difference(&named).next() {
        bail!(
            "{name} ({event:02X}/{umask:02X}) is in one of {} and {} only: mend the latter, whose counters are not imported",
            FAMILY_15.0,
            FAMILY_15.1
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
