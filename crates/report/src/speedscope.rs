//! Profiles for speedscope (<https://www.speedscope.app>), in its own format
//! (<https://www.speedscope.app/file-format-schema.json>).
//!
//! Each source has a profile. Its samples are the paths of the tree of calls, from the process to the sampled function,
//! weighed by their events. Without call stacks they are the rows of a report: process, module, symbol and the
//! functions that are inlined into it.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::call_stacks::Function;
use crate::call_tree::CallTree;
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

#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    /// The module of a function in a call stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
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
    indexes: FxHashMap<Frame, usize>,
}

impl Frames {
    fn index(&mut self, frame: Frame) -> usize {
        let next = self.list.len();
        *self.indexes.entry(frame).or_insert_with_key(|frame| {
            self.list.push(frame.clone());
            next
        })
    }

    /// Returns the stack of a row.
    fn stack(&mut self, row: &TableRow) -> Vec<usize> {
        let process = row.process_label();
        let module = row.module.as_deref();
        let frames = row.frames.iter().flatten().map(String::as_str);
        let names = [process.as_str()].into_iter().chain(module).chain(frames);
        names.map(|name| self.index(Frame { name: name.to_owned(), file: None })).collect()
    }

    /// Returns the frame of a function in a call stack.
    fn of(&mut self, function: Function, contents: &Contents, symbol_index: &SymbolIndex) -> usize {
        let name = symbol_index.function_name(function, contents);
        let mark = if function.kernel { " [k]" } else { "" };
        let module = symbol_index.function_module(function);
        self.index(Frame { name: format!("{name}{mark}"), file: (!module.is_empty()).then(|| module.to_owned()) })
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
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut frames = Frames::default();
    let sources = contents.sample_counts.totals().filter(|(source, _)| filter.selects_source(*source));
    let profiles = sources.map(|(source, _)| {
        let (samples, weights) = if contents.sample_counts.stack_stats(source).are_recorded() {
            calls(&mut frames, &CallTree::new(contents, symbol_index, source, filter), contents, symbol_index)
        } else {
            let rows = Table::new(contents, symbol_index, source, &COLUMNS, filter).sorted_rows();
            rows.iter().map(|row| (frames.stack(row), row.weight.events)).unzip()
        };
        SampledProfile {
            kind: "sampled",
            name: contents.source_name(source).into_owned(),
            unit: "none",
            start_value: 0,
            end_value: weights.iter().sum(),
            samples,
            weights,
        }
    });
    let profiles = profiles.collect();
    let command = contents.command_text();
    let selected = contents.slice_text(&filter.slice);
    let file = File {
        schema: SCHEMA,
        exporter: format!("halprof {}", env!("CARGO_PKG_VERSION")),
        name: selected.map_or(command.clone(), |selected| format!("{command} ({selected})")),
        active_profile_index: 0,
        shared: Shared { frames: frames.list },
        profiles,
    };
    Ok(serde_json::to_writer(out, &file).map_err(io::Error::from)?)
}

/// Returns the paths of a tree that samples end with, and their events: those of a function before those that it calls,
/// and the function with the most events first.
fn calls(
    frames: &mut Frames,
    tree: &CallTree,
    contents: &Contents,
    symbol_index: &SymbolIndex,
) -> (Vec<Vec<usize>>, Vec<u64>) {
    let mut children = tree.children();
    let (mut samples, mut weights, mut path) = (Vec::new(), Vec::new(), Vec::new());
    let below = |depth: usize, nodes: Vec<usize>| nodes.into_iter().rev().map(move |node| (depth, node));
    let mut pending: Vec<(usize, usize)> = below(0, children.pop().unwrap_or_default()).collect();
    while let Some((depth, number)) = pending.pop() {
        let Some(node) = tree.node(number) else { continue };
        path.truncate(depth);
        path.push(frames.of(node.function, contents, symbol_index));
        if node.own.events > 0 {
            samples.push(path.clone());
            weights.push(node.own.events);
        }
        pending.extend(below(depth + 1, children.get_mut(number).map(std::mem::take).unwrap_or_default()));
    }
    (samples, weights)
}
