//! Generates the tables of events (`crates/events/src/tables.bin`) from the facts in `crates/events/facts`.

mod import;

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use events::{
    Event, Vendor,
    pack::{self, MapRow},
    row,
};

use xtask::workspace::Workspace;

use crate::table;

/// Folder of the facts, from the root of the repository.
pub const FACTS: &str = "crates/events/facts";
/// The generated file.
const TABLES: &str = "crates/events/src/tables.bin";
/// The processors of each table.
const MAP: &str = "map.csv";
/// The errata of the events of all tables.
const ERRATA: &str = "errata.csv";
/// What the makers say about the events of all tables.
const DESCRIPTIONS: &str = "descriptions.zst";
/// The first line of [`ERRATA`].
const ERRATA_HEADER: &str = "table,event,errata";
/// The first line of [`MAP`].
const MAP_HEADER: &str = "vendor,family,first_model,last_model,steppings,core_type,native_model,table";

/// Generates the tables; with a folder, the facts first. With `check`, compares instead of writing.
pub fn run(workspace: &Workspace, import: Option<&Path>, check: bool) -> Result<()> {
    if let Some(folder) = import {
        import::run(folder, &workspace.root().join(FACTS))?;
    }
    let (path, generated) = (workspace.root().join(TABLES), generated(workspace)?);
    if check {
        let is_same = fs::read(&path).is_ok_and(|committed| committed == generated);
        ensure!(is_same, "{TABLES} is out of date: cargo xtask events");
        return Ok(());
    }
    fs::write(path, &generated)?;
    println!("{TABLES} has {} bytes", generated.len());
    Ok(())
}

/// Returns the generated file.
fn generated(workspace: &Workspace) -> Result<Vec<u8>> {
    let folder = workspace.root().join(FACTS);
    let tables = tables(&folder)?;
    let map = map(&fs::read_to_string(folder.join(MAP)).context(MAP)?)?;
    Ok(pack::pack(&tables, &map)?)
}

/// Reads the tables, in alphabetical order.
pub fn tables(folder: &Path) -> Result<Vec<(String, Vec<Event>)>> {
    let mut tables = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let is_other = path.ends_with(MAP) || path.ends_with(ERRATA);
        let is_table = path.extension().is_some_and(|extension| extension == "csv") && !is_other;
        if let Some(name) = stem.filter(|_| is_table) {
            let text = fs::read_to_string(&path)?;
            tables.push((name, events(&text).with_context(|| path.display().to_string())?));
        }
    }
    tables.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(tables)
}

/// Parses a table.
fn events(text: &str) -> Result<Vec<Event>> {
    table::lines(text, row::HEADER, |line| Ok(row::parse(line)?))
}

/// Parses the map.
fn map(text: &str) -> Result<Vec<MapRow>> {
    table::rows(text, MAP_HEADER, map_row).context(MAP)
}

fn map_row([vendor, family, first, last, steppings, core_type, native, table]: [&str; 8]) -> Result<MapRow> {
    let byte = |text: &str| u8::from_str_radix(text, 16).with_context(|| text.to_owned());
    let word = |text: &str| u16::from_str_radix(text, 16).with_context(|| text.to_owned());
    Ok(MapRow {
        vendor: Vendor::from_name(vendor).with_context(|| vendor.to_owned())?,
        family: word(family)?,
        first_model: byte(first)?,
        last_model: byte(last)?,
        steppings: word(steppings)?,
        core_type: byte(core_type)?,
        native_model: byte(native)?,
        table: table.to_owned(),
    })
}

#[cfg(test)]
mod tests;
