//! Profiles for speedscope (<https://www.speedscope.app>), in its own format
//! (<https://www.speedscope.app/file-format-schema.json>).
//!
//! Each source has a profile. Its samples are the rows of a report: process, module, symbol and the functions that are
//! inlined into it, weighed by their events.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::filter::Filter;
use crate::read::{Contents, ExportError};
use crate::symbol_index::SymbolIndex;
use crate::table::{Column, Table, TableRow};

/// The schema, which programs use to recognize the format.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The columns of a row, from the root of its stack.
const COLUMNS: [Column; 3] = [Column::Process, Column::Module, Column::Frames];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    active_profile_index: usize,
    shared: Shared,
    profiles: Vec<SampledProfile>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Frames of each sample, the root first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// The frames of all profiles, each once.
#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
    indexes: FxHashMap<String, usize>,
}

impl Frames {
    fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        self.list.push(Frame { name: name.to_owned() });
        self.indexes.insert(name.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }

    /// Returns the stack of a row.
    fn stack(&mut self, row: &TableRow) -> Vec<usize> {
        let process = row.process_label();
        let module = row.module.as_deref();
        let frames = row.frames.iter().flatten().map(String::as_str);
        [process.as_str()].into_iter().chain(module).chain(frames).map(|name| self.index(name)).collect()
    }
}

/// Writes the samples that `filter` selects, which `contents` has counted.
///
/// # Errors
/// If the output cannot be written.
pub fn speedscope(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    out: impl Write,
) -> Result<(), ExportError> {
    let mut frames = Frames::default();
    let sources = contents.sample_counts.totals().filter(|(source, _)| filter.selects_source(*source));
    let profiles = sources.map(|(source, _)| {
        let table = Table::new(contents, symbol_index, source, &COLUMNS, filter);
        let rows = table.sorted_rows();
        let weights: Vec<u64> = rows.iter().map(|row| row.weight.events).collect();
        SampledProfile {
            kind: "sampled",
            name: contents.source_name(source).into_owned(),
            unit: "none",
            start_value: 0,
            end_value: weights.iter().sum(),
            samples: rows.iter().map(|row| frames.stack(row)).collect(),
            weights,
        }
    });
    let profiles = profiles.collect();
    let file = File {
        schema: SCHEMA,
        exporter: format!("halprof {}", env!("CARGO_PKG_VERSION")),
        name: contents.session.command.join(" "),
        active_profile_index: 0,
        shared: Shared { frames: frames.list },
        profiles,
    };
    Ok(serde_json::to_writer(out, &file).map_err(io::Error::from)?)
}
