//! Rows of tables with the samples of the functions that they call, and the calls of each row.

use std::sync::Mutex;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call_stacks::{CallStacks, Frame};
use crate::call_tree::{CallOrder, CallTree};
use crate::filter::Filter;
use crate::locations::SampleLocation;
use crate::numbering::{Numbering, ThreadNumbering};
use crate::read::Contents;
use crate::sampled_sources::SampledSource;
use crate::sums::SampleWeight;
use crate::sums::{Adder, Sums};
use crate::symbol_index::SymbolIndex;
use crate::table::{Column, FirstRows, Limits, RowGroup, RowKey, Table};

/// Returns the group and the rest of the row of a frame; `None` if it has none. The number of the group is not set.
fn row_of(frame: &Frame, columns: &[Column]) -> Option<(RowGroup, RowKey)> {
    let Frame { function, address, location } = frame;
    let (owner, name) = function.code()?;
    // The function into which others are inlined is the row of the address, unless they have rows of their own.
    if function.is_inlined() && !columns.contains(&Column::InlinedSymbol) {
        return None;
    }
    let mut group = RowGroup::default();
    let mut key = RowKey::of_group(0);
    for column in columns {
        match column {
            Column::Process => group.process = Some(location.process),
            Column::Thread => group.thread = Some(location.thread),
            Column::Processor => group.processor = Some(location.processor),
            Column::Parallelism => group.parallelism = Some(location.parallelism),
            Column::Module => group.module = Some(owner),
            Column::Symbol | Column::InlinedSymbol | Column::Frames => key.name = Some(name),
            Column::Address => key.address = *address,
        }
    }
    Some((group, key))
}

impl<'a> Table<'a> {
    /// Groups the samples of `source` that `filter` selects by `columns`. A row also has the
    /// [samples of which a caller is in it](crate::TableRow::total), each once, even if the function is recursive. The
    /// rows are ordered by these.
    #[must_use]
    pub fn with_children(
        contents: &'a Contents,
        symbol_index: &'a SymbolIndex,
        source: impl Into<SampledSource>,
        columns: &[Column],
        filter: &Filter,
    ) -> Self {
        let source = source.into();
        let (mut groups, mut sums, mut own) = (Numbering::default(), Sums::default(), Sums::default());
        let (shared_groups, shared_sums, shared_own) = (Mutex::new(&mut groups), sums.shared(), own.shared());
        let counted = contents.sample_counts.location_parts().map(|locations| {
            let mut numbers = ThreadNumbering::new(&shared_groups);
            let (mut totals, mut own) = (Adder::new(&shared_sums), Adder::new(&shared_own));
            let mut stacks = CallStacks::new(contents, symbol_index);
            let mut selected = SampleWeight::default();
            let mut keys = FxHashSet::default();
            let locations = locations.filter(|(location, _)| location.sampled_source() == source);
            for (location, weight) in locations.filter(|(location, _)| filter.selects_location(location, symbol_index))
            {
                selected += weight;
                keys.clear();
                for frame in stacks.frames(&location) {
                    let Some((group, key)) = row_of(frame, columns) else { continue };
                    let key = RowKey { group: numbers.number_of(group), ..key };
                    if keys.is_empty() {
                        own.add(key, weight);
                    }
                    if keys.insert(key) {
                        totals.add(key, weight);
                    }
                }
            }
            totals.finish();
            own.finish();
            selected
        });
        let selected = counted.reduce(SampleWeight::default, |mut one, other| {
            one += other;
            one
        });
        drop((shared_groups, shared_sums, shared_own));
        let total = contents.sample_counts.total(source);
        let columns = columns.to_vec();
        Self { total, selected, contents, symbol_index, source, columns, groups, sums, own: Some(own), latency: None }
    }

    /// Returns the first rows as [`first`](Self::first) does, and for each of them the tree of its calls: what it
    /// calls, or its callers. `filter` is that of the table.
    #[must_use]
    pub fn first_with_calls(&self, limits: Limits, order: CallOrder, filter: &Filter) -> (FirstRows, Vec<CallTree>) {
        let (rows, keys) = self.first_with_keys(limits);
        let mut trees: Vec<CallTree> = keys.iter().map(|_| CallTree::default()).collect();
        let indexes: FxHashMap<RowKey, usize> = keys.into_iter().zip(0..).collect();
        let mut stacks = CallStacks::new(self.contents, self.symbol_index);
        for (location, weight) in self.contents.sample_counts.locations() {
            if location.sampled_source() == self.source && filter.selects_location(&location, self.symbol_index) {
                self.add_calls(&mut stacks, (&location, weight), order, &indexes, &mut trees);
            }
        }
        (rows, trees)
    }

    /// Adds the samples of a location to the trees of the rows that they are in.
    fn add_calls(
        &self,
        stacks: &mut CallStacks<'_>,
        (location, weight): (&SampleLocation, SampleWeight),
        order: CallOrder,
        indexes: &FxHashMap<RowKey, usize>,
        trees: &mut [CallTree],
    ) {
        let frames = stacks.frames(location);
        let rows = frames.iter().enumerate().filter_map(|(place, frame)| {
            let (group, key) = row_of(frame, &self.columns)?;
            let group = self.groups.existing(&group)?;
            Some((place, indexes.get(&RowKey { group, ..key }).copied()))
        });
        // Without callers, only the sampled function is in a row.
        let mut rows: Vec<_> = rows.take(if self.own.is_some() { usize::MAX } else { 1 }).collect();
        if order == CallOrder::Caller {
            // What a recursive function calls is below its outermost call.
            rows.reverse();
        }
        let mut seen = FxHashSet::default();
        for (place, index) in rows {
            let Some(index) = index.filter(|index| seen.insert(*index)) else { continue };
            let Some(tree) = trees.get_mut(index) else { continue };
            let function = |frame: &Frame| frame.function;
            match order {
                CallOrder::Caller => {
                    tree.add(frames.get(..place).unwrap_or_default().iter().rev().map(function), weight);
                }
                CallOrder::Callee => {
                    tree.add(frames.get(place + 1..).unwrap_or_default().iter().map(function), weight);
                }
            }
        }
    }
}
