//! Generates the tables of event constraints (`crates/pmu/src/constraints/tables.rs`) from the facts in
//! `crates/pmu/facts`.

mod import;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};

use crate::{
    table::{self, flag},
    workspace::Workspace,
};

/// Folder of the facts, from the root of the repository.
pub const FACTS: &str = "crates/pmu/facts";
/// The columns of a file of facts.
const HEADER: &str = "name,event,umask,cmask,inv,edge,any,counters,precise,second";
/// The generated file.
const TABLES: &str = "crates/pmu/src/constraints/tables.rs";

/// A row of a file of facts; the README there explains the columns.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the file")]
pub struct Fact {
    /// The vendor's name; may be empty.
    pub name: String,
    pub event: u16,
    /// Unit mask with its extension; `None` for every unit mask without a row of its own.
    pub umask: Option<u16>,
    pub cmask: u8,
    pub inv: bool,
    pub edge: bool,
    pub any: bool,
    /// Zero if only a fixed counter counts the event.
    pub counters: u16,
    pub precise: u16,
    /// The event needs a second register.
    pub second: bool,
}

impl Fact {
    fn parse(fields: [&str; 10]) -> Result<Self> {
        let [name, event, umask, cmask, inv, edge, any, counters, precise, second] = fields;
        let hexadecimal = |text| u16::try_from(table::hexadecimal(text)?).context("more than 16 bits");
        Ok(Self {
            name: String::from(name),
            event: hexadecimal(event)?,
            umask: if umask == "*" { None } else { Some(hexadecimal(umask)?) },
            cmask: cmask.parse()?,
            inv: flag(inv)?,
            edge: flag(edge)?,
            any: flag(any)?,
            counters: if counters.starts_with("fixed") { 0 } else { hexadecimal(counters)? },
            precise: hexadecimal(precise)?,
            second: flag(second)?,
        })
    }

    /// Returns whether the row selects event and unit mask and nothing else.
    const fn is_plain(&self) -> bool {
        self.cmask == 0 && !self.inv && !self.edge
    }
}

/// Returns the rows of a generation.
pub fn facts(workspace: &Workspace, generation: &str) -> Result<Vec<Fact>> {
    let path = workspace.root().join(FACTS).join(generation).with_extension("csv");
    table::rows(&table::read(&path)?, HEADER, Fact::parse).with_context(|| path.display().to_string())
}

/// Returns the names of the generations, in alphabetical order.
pub fn generations(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace.root().join(FACTS))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// Generates the tables; with a folder, the facts first.
pub fn run(workspace: &Workspace, import: Option<&Path>) -> Result<()> {
    if let Some(folder) = import {
        import::run(folder, &workspace.root().join(FACTS))?;
    }
    fs::write(workspace.root().join(TABLES), generated(workspace)?)?;
    Ok(())
}

/// Counters and precise counters.
type Class = (u16, u16);

/// Returns the text of the generated file.
fn generated(workspace: &Workspace) -> Result<String> {
    let mut text = String::from(
        "//! Event constraints of each generation. Generated from `crates/pmu/facts` by `cargo xtask constraints`.\n\n\
         use super::{Class, Exception, Table};\n",
    );
    for name in generations(workspace)? {
        let facts = facts(workspace, &name)?;
        let (classes, groups) = packed(&facts).with_context(|| name.clone())?;
        let constant = name.to_uppercase().replace('-', "_");
        let list: Vec<_> =
            classes.iter().map(|(counters, precise)| format!("Class::new({counters:#X}, {precise:#X})")).collect();
        write!(
            text,
            "\n/// See `{FACTS}/{name}.csv`.\npub static {constant}: Table = Table::new(\n    &[{}],\n    &[\n",
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
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_generated_from_the_facts() {
        let workspace = Workspace::find().unwrap();
        let committed = fs::read_to_string(workspace.root().join(TABLES)).unwrap();
        assert!(committed == generated(&workspace).unwrap(), "{TABLES} is out of date: cargo xtask constraints");
    }

    #[test]
    fn a_damaged_row_is_refused() {
        let row = "NAME,C0,00,0,0,0,0,FF,FE,0";
        let parse = |row: &str| table::rows(&format!("{HEADER}\n{row}\n"), HEADER, Fact::parse);
        assert!(parse(row).is_ok());
        for damaged in [&row[..row.len() - 2], "NAME,C0,00,0,0,0,0,FF,FE,2", "NAME,XX,00,0,0,0,0,FF,FE,0", ""] {
            assert!(parse(damaged).is_err(), "{damaged}");
        }
    }
}
