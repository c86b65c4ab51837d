//! `list --interface`: shows the complete table of a profile interface, as in the HAL.

use pmu::interface::emon;
use pmu::interval::IntervalRange;
use pmu::{Kind, ProfileSource, Source};
use serde::Serialize;

use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{self, hexadecimal, table};
use user_error::Error;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SourceRow {
    id: Option<u32>,
    name: &'static str,
    select: String,
    ebx_bit: Option<u8>,
    interval: u32,
    minimum: u32,
    maximum: u32,
}

impl SourceRow {
    fn of(kind: Kind, source: &'static ProfileSource) -> Self {
        let IntervalRange { default, minimum, maximum } = IntervalRange::of(source.source);
        Self {
            id: source.source.number(),
            name: source.name,
            select: format::select(source.select),
            ebx_bit: if kind == Kind::Emon { emon::ebx_bit(source) } else { None },
            interval: default,
            minimum,
            maximum,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterfaceTable {
    interface: &'static str,
    sources: Vec<SourceRow>,
}

impl Document for InterfaceTable {
    const SCHEMA: &'static str = "halprof.interface/1";
}

pub fn run(kind: Kind, json: bool, context: &mut Context) -> Result<(), Error> {
    if json {
        return context.json(&InterfaceTable {
            interface: kind.name(),
            sources: kind.sources().iter().map(|source| SourceRow::of(kind, source)).collect(),
        });
    }
    context.say(&format!("{}\n\n{}", sources(kind), intervals(kind)))
}

/// Formats the sources. Only Emon has the column of EBX bits.
fn sources(kind: Kind) -> String {
    let row = |source: &ProfileSource| {
        let name = source.name.to_owned();
        let mut row = vec![source.source.0.to_string(), name, hexadecimal(source.select)];
        if kind == Kind::Emon {
            row.push(emon::ebx_bit(source).map_or_else(|| "-".to_owned(), |bit| bit.to_string()));
        }
        row
    };
    let rows: Vec<Vec<String>> = kind.sources().iter().map(row).collect();
    let headings: &[&str] =
        if kind == Kind::Emon { &["Id", "Name", "Select", "EBX bit"] } else { &["Id", "Name", "Select"] };
    table(headings, &["Id", "EBX bit"], &rows)
}

/// Formats the intervals in a separate table: all sources of counters have the same, and the longest names leave no
/// space.
fn intervals(kind: Kind) -> String {
    let row = |what: &str, range: IntervalRange| {
        vec![what.to_owned(), range.default.to_string(), range.minimum.to_string(), range.maximum.to_string()]
    };
    let mut rows = vec![row("of Time, in units of 100 ns", IntervalRange::of(Source::TIME))];
    if kind != Kind::Default {
        rows.push(row("of the others, in events", IntervalRange::COUNTER));
    }
    table(&["Intervals", "Default", "Min", "Max"], &["Default", "Min", "Max"], &rows)
}
