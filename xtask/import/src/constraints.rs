//! Generates the tables of event constraints (`crates/pmu/src/constraints/tables.rs`) from the facts about events in
//! `crates/events/facts`, and from those about their counters that these lack, in `crates/pmu/facts`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use anyhow::{Context, Result, ensure};
use events::{Counters, Event};

use xtask::workspace::Workspace;

use crate::{
    events as event_facts,
    table::{self, hexadecimal, list},
};

/// Folder of the facts, from the root of the repository.
const FACTS: &str = "crates/pmu/facts";
/// The tables of events of each generation, and the columns of that file.
const TABLES_OF: (&str, &str) = ("tables.csv", "generation,table");
/// Counters that replace those of the tables, and the columns of that file.
const COUNTERS: (&str, &str) = ("counters.csv", "generation,event,umask,listed,counters");
/// Counters that only Linux's source names, and the columns of that file.
const LINUX: (&str, &str) = ("linux.csv", "generation,first,last,umask,counters,name");
/// The generated file.
const TABLES: &str = "crates/pmu/src/constraints/tables.rs";

/// An encoding of an event, and the counters of a generation that count it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "fields of the event select register")]
pub struct Fact {
    /// The maker's name; may be empty.
    pub name: String,
    /// The event select.
    pub event: u16,
    /// Unit mask with its extension; `None` for every unit mask without a row of its own.
    pub umask: Option<u16>,
    /// The counter mask.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Whether edges are counted.
    pub edge: bool,
    /// Whether both threads of the core count.
    pub any: bool,
    /// Zero if only a fixed counter counts the event.
    pub counters: u16,
    /// Counters that record the event precisely.
    pub precise: u16,
    /// The event needs a second register.
    pub second: bool,
}

impl Fact {
    /// Returns a row for each encoding of an event: that of each second register, if it needs one.
    fn of(event: &Event) -> Vec<Self> {
        let Event { encoding, extra, .. } = event;
        let encodings = extra.as_ref().map_or_else(
            || vec![(encoding.event, encoding.umask)],
            |extra| extra.registers.iter().map(|register| (register.event, register.umask)).collect(),
        );
        let row = |(number, umask)| Self {
            name: event.name.clone(),
            event: number,
            umask: Some(umask),
            cmask: encoding.cmask,
            inv: encoding.inv,
            edge: encoding.edge,
            any: encoding.any,
            counters: event.counters.general_mask,
            // The driver does not record events that need a second register, nor those of fixed counters.
            precise: if extra.is_some() || event.is_fixed() { 0 } else { event.precise_counters.general_mask },
            second: extra.is_some(),
        };
        encodings.into_iter().map(row).collect()
    }

    /// Returns whether the row selects event and unit mask and nothing else.
    const fn is_plain(&self) -> bool {
        self.cmask == 0 && !self.inv && !self.edge
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

/// The facts of every generation.
pub struct Facts {
    /// Tables of events, by generation.
    tables: BTreeMap<String, Vec<Event>>,
    replacements: Vec<Replacement>,
    /// Rows of Linux, by generation.
    linux: BTreeMap<String, Vec<Fact>>,
}

impl Facts {
    /// Reads the facts.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let read = |name: &str| table::read(&workspace.root().join(FACTS).join(name));
        let tables = event_facts::tables(&workspace.root().join(event_facts::FACTS))?;
        Self::of(tables, &read(TABLES_OF.0)?, &read(COUNTERS.0)?, &read(LINUX.0)?)
    }

    /// Combines tables of events with the texts of the three files.
    fn of(tables: Vec<(String, Vec<Event>)>, tables_of: &str, counters: &str, linux: &str) -> Result<Self> {
        let mut all: BTreeMap<String, Vec<Event>> = tables.into_iter().collect();
        let mut tables: BTreeMap<String, Vec<Event>> = BTreeMap::new();
        for [generation, table] in
            table::rows(tables_of, TABLES_OF.1, |fields: [&str; 2]| Ok(fields.map(str::to_owned)))
                .context(TABLES_OF.0)?
        {
            let events = all.remove(&table).with_context(|| format!("{}: there is no table {table}", TABLES_OF.0))?;
            tables.entry(generation).or_default().extend(events);
        }
        // All counters of AMD's other processors are alike.
        let left: Vec<&String> = all.keys().filter(|name| !name.starts_with("amd_")).collect();
        ensure!(left.is_empty(), "{left:?} belong to no generation: add them to {}", TABLES_OF.0);
        let replacements = table::rows(counters, COUNTERS.1, replacement).context(COUNTERS.0)?;
        let mut rows: BTreeMap<String, Vec<Fact>> = BTreeMap::new();
        for (generation, row) in table::rows(linux, LINUX.1, linux_rows).context(LINUX.0)? {
            rows.entry(generation).or_default().extend(row);
        }
        Ok(Self { tables, replacements, linux: rows })
    }

    /// Returns the names of the generations, in alphabetical order.
    fn generations(&self) -> BTreeSet<&str> {
        self.tables.keys().chain(self.linux.keys()).map(String::as_str).collect()
    }

    /// Returns the rows of a generation.
    pub fn of_generation(&self, generation: &str) -> Result<Vec<Fact>> {
        let linux = self.linux.get(generation).map(Vec::as_slice).unwrap_or_default();
        let events = self.tables.get(generation).into_iter().flatten();
        let mut rows = Vec::new();
        // No event select register takes Linux's encodings of the metrics of fixed counter 3.
        for event in events.filter(|event| !event.name.starts_with("PERF_METRICS.")) {
            for mut row in Fact::of(event) {
                if event.counters == Counters::ANY {
                    row.counters = by_linux(&row, linux).with_context(|| format!("{} has no counters", row.name))?;
                } else if let Some(counters) = self.replacement(generation, &row) {
                    // A counter that does not count records nothing.
                    (row.counters, row.precise) = (counters, row.precise & counters);
                }
                rows.push(row);
            }
        }
        rows.extend(linux.iter().cloned());
        Ok(rows)
    }

    /// Returns the counters of the last replacement that fits.
    fn replacement(&self, generation: &str, row: &Fact) -> Option<u16> {
        let fits = |replacement: &&Replacement| {
            replacement.generation == generation
                && replacement.event.is_none_or(|event| event == row.event)
                && replacement.umask.is_none_or(|umask| Some(umask) == row.umask)
                && replacement.listed == row.counters
        };
        self.replacements.iter().rfind(fits).map(|replacement| replacement.counters)
    }
}

/// Returns the counters of an event by the row of Linux with its unit mask, or else by that with every unit mask.
fn by_linux(row: &Fact, linux: &[Fact]) -> Option<u16> {
    let of = |umask| linux.iter().find(|other| other.event == row.event && other.umask == umask);
    of(row.umask).or_else(|| of(None)).map(|found| found.counters)
}

fn number(text: &str) -> Result<u16> {
    u16::try_from(hexadecimal(text)?).context("more than 16 bits")
}

fn number_or_all(text: &str) -> Result<Option<u16>> {
    if text == "*" { Ok(None) } else { number(text).map(Some) }
}

fn replacement([generation, event, umask, listed, counters]: [&str; 5]) -> Result<Replacement> {
    Ok(Replacement {
        generation: generation.to_owned(),
        event: number_or_all(event)?,
        umask: number_or_all(umask)?,
        listed: number(listed)?,
        counters: number(counters)?,
    })
}

/// Returns a generation, and a row for each event number of a range with each of its unit masks.
fn linux_rows([generation, first, last, umask, counters, name]: [&str; 6]) -> Result<(String, Vec<Fact>)> {
    let umasks = if umask == "*" { vec![None] } else { list(umask)?.into_iter().map(Some).collect() };
    let counters = number(counters)?;
    let row = |event, umask| Fact {
        name: name.to_owned(),
        event,
        umask,
        cmask: 0,
        inv: false,
        edge: false,
        any: false,
        counters,
        precise: 0,
        second: false,
    };
    let events = number(first)?..=number(last)?;
    Ok((generation.to_owned(), events.flat_map(|event| umasks.iter().map(move |umask| row(event, *umask))).collect()))
}

/// Generates the tables.
pub fn run(workspace: &Workspace) -> Result<()> {
    fs::write(workspace.root().join(TABLES), generated(&Facts::read(workspace)?)?)?;
    Ok(())
}

/// Counters and precise counters.
type Class = (u16, u16);

/// Returns the text of the generated file.
fn generated(all: &Facts) -> Result<String> {
    let mut text = String::from(
        "//! Event constraints of each generation. `cargo xtask constraints` makes them from the facts that\n\
         //! `crates/pmu/facts/README.md` describes.\n\nuse super::{Class, Exception, Table};\n",
    );
    for name in all.generations() {
        let facts = all.of_generation(name).with_context(|| name.to_owned())?;
        let (classes, groups) = packed(&facts).with_context(|| name.to_owned())?;
        let constant = name.to_uppercase().replace('-', "_");
        let list: Vec<_> =
            classes.iter().map(|(counters, precise)| format!("Class::new({counters:#X}, {precise:#X})")).collect();
        write!(
            text,
            "\n/// The constraints of the generation `{name}`.\npub static {constant}: Table = Table::new(\n    &[{}],\n    &[\n",
            list.join(", ")
        )?;
        for group in groups {
            let bytes: Vec<_> = group.iter().map(|byte| format!("{byte:#04X}")).collect();
            writeln!(text, "        {},", bytes.join(", "))?;
        }
        text.push_str("    ],\n)");
        let exceptions = exceptions(&facts);
        if !exceptions.is_empty() {
            write!(text, "\n.except(&[\n    {},\n])", exceptions.join(",\n    "))?;
        }
        text.push_str(";\n");
    }
    Ok(text)
}

/// Returns the classes and the groups of a generation.
fn packed(facts: &[Fact]) -> Result<(Vec<Class>, Vec<Vec<u8>>)> {
    let mut encodings: BTreeMap<(u16, Option<u8>), Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        let Some(umask) = fact.umask.map(|umask| u8::try_from(umask).ok()) else {
            encodings.entry((fact.event, None)).or_default().push(fact);
            continue;
        };
        // Unit masks of more than 8 bits are exceptions.
        if let Some(umask) = umask {
            encodings.entry((fact.event, Some(umask))).or_default().push(fact);
        }
    }
    let mut umasks: BTreeMap<(u16, Class), BTreeSet<u8>> = BTreeMap::new();
    let mut wildcards: BTreeMap<u16, Class> = BTreeMap::new();
    for ((event, umask), rows) in encodings {
        let class = class(&rows);
        match umask {
            Some(umask) => {
                umasks.entry((event, class)).or_default().insert(umask);
            }
            None => {
                wildcards.insert(event, class);
            }
        }
    }
    // A wildcard covers unit masks of its own class too.
    umasks.retain(|(event, class), _| wildcards.get(event) != Some(class));
    let used: BTreeSet<Class> = umasks.keys().map(|(_, class)| *class).chain(wildcards.values().copied()).collect();
    let classes: Vec<Class> = used.into_iter().collect();
    ensure!(classes.len() <= 16, "{} classes, and a group has four bits for them", classes.len());
    let head = |event: u16, class: Class, length: usize| -> Result<Vec<u8>> {
        let index = classes.iter().position(|other| *other == class).context("a class that no table has")?;
        let [low, high] = event.to_le_bytes();
        ensure!(high < 16, "event {event:#x} has more than 12 bits");
        Ok(vec![low, high << 4 | u8::try_from(index)?, u8::try_from(length).context("more than 255 unit masks")?])
    };
    let mut groups: BTreeMap<(u16, bool, Class), Vec<u8>> = BTreeMap::new();
    for ((event, class), list) in umasks {
        let mut group = head(event, class, list.len())?;
        group.extend(list);
        groups.insert((event, false, class), group);
    }
    for (event, class) in wildcards {
        groups.insert((event, true, class), head(event, class, 0)?);
    }
    Ok((classes, groups.into_values().collect()))
}

/// Returns the encodings that no group can tell: those that other counters count if CMASK is not 0, and those with a
/// unit mask of more than 8 bits.
fn exceptions(facts: &[Fact]) -> Vec<String> {
    let mut encodings: BTreeMap<(u16, u16), Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        if let Some(umask) = fact.umask {
            encodings.entry((fact.event, umask)).or_default().push(fact);
        }
    }
    let mut found = Vec::new();
    for ((event, umask), rows) in encodings {
        let mut add = |kind: &str, (counters, precise): Class| {
            found.push(format!(
                "Exception::{kind}({event:#04X}, {umask:#04X}, Class::new({counters:#X}, {precise:#X}))"
            ));
        };
        if umask > 0xFF {
            add("wide", class(&rows));
        }
        let (plain, filtered): (Vec<&Fact>, Vec<&Fact>) = rows.into_iter().partition(|fact| fact.cmask == 0);
        if plain.is_empty() || filtered.is_empty() {
            continue;
        }
        let counters = filtered.iter().fold(u16::MAX, |all, fact| all & fact.counters);
        let precise = filtered.iter().fold(0, |all, fact| all | fact.precise);
        if counters != class(&plain).0 {
            add("with_cmask", (counters, precise));
        }
    }
    found
}

/// Returns the class of an encoding: by the rows without CMASK, INV and edge if there are any. If they disagree, it
/// counts where all of them count, and records where one of them records.
fn class(rows: &[&Fact]) -> Class {
    let has_plain = rows.iter().any(|fact| fact.is_plain());
    let chosen = || rows.iter().filter(|fact| !has_plain || fact.is_plain());
    let counters = chosen().map(|fact| fact.counters).fold(u16::MAX, |all, counters| all & counters);
    let precise =
        chosen().filter(|fact| fact.is_plain()).map(|fact| fact.precise).fold(0, |all, precise| all | precise);
    (counters, precise)
}

#[cfg(test)]
mod tests;
