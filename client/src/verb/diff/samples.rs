//! Compares the samples of two recordings.

use std::collections::BTreeMap;

use report::{Change, Column, Detail, Estimate, SampledSource, Table, TableRow, Total};

use super::{ChangedRow, Comparison, DiffError, Judge, Kind, Section};
use crate::cli::{DiffArgs, DiffColumn, Work};
use crate::reading::load::LoadedRecording;
use crate::reading::losses::left_out;
use counts::share;
use terminal::context::Context;
use terminal::format::{real, seconds};
use user_error::Error;

/// The samples of a row: their events, and their share of all events or of the wall time.
#[derive(Clone, Copy, Default)]
struct Part {
    events: u64,
    share: f64,
}

/// The samples of a row in the old and the new recording.
type Rows = BTreeMap<Vec<String>, [Part; 2]>;

/// An event of both recordings.
struct Pair {
    name: String,
    totals: [Total; 2],
    lost_shares: [f64; 2],
    rows: Rows,
}

/// Compares the sources that both recordings have, by name.
pub fn compare(args: &DiffArgs, context: &mut Context) -> Result<Comparison, Error> {
    let processor = args.sort.contains(&DiffColumn::Processor);
    let detail = Detail { processor, parallelism: args.latency, ..Detail::default() };
    let open = |path| LoadedRecording::open_file(path, &args.selection, detail);
    let (old, new) = (open(&args.old)?, open(&args.new)?);
    let (old_names, new_names) = (names(&old), names(&new));
    let mut pairs = Vec::new();
    for (name, source) in &new_names {
        if let Some((_, old_source)) = old_names.iter().find(|(old, _)| old == name) {
            pairs.push(pair(name.clone(), [(&old, *old_source), (&new, *source)], &args.sort));
        }
    }
    let of_both = |name: &String| pairs.iter().any(|pair: &Pair| pair.name == *name);
    let all = old_names.iter().chain(&new_names).map(|(name, _)| name.clone());
    let unmatched: Vec<String> = all.filter(|name| !of_both(name)).collect();
    if pairs.is_empty() {
        return Err(DiffError::NothingInCommon { events: unmatched }.into());
    }
    let judge = Judge::new(args.fail, pairs.iter().map(|pair| pair.rows.len() + 1).sum());
    let sections = pairs.into_iter().map(|pair| section(pair, &judge, args.work.unwrap_or(Work::SAME))).collect();
    let elapsed = [&old, &new].map(|one| one.contents.summary.as_ref().map(|summary| seconds(summary.sampled_time())));
    // Both recordings can be incomplete, or lack symbols: their notes are shown, and the comparison goes on.
    old.finish(context)?;
    new.finish(context)?;
    let columns = args.sort.iter().map(|column| column.name()).collect();
    let comparison = Comparison::new(Kind::Samples, columns, args.fail, sections, unmatched);
    Ok(Comparison { latency: args.latency, ..comparison }.with_work(args.work, elapsed))
}

/// Returns the selected sources that have samples, with their names.
fn names(loaded: &LoadedRecording) -> Vec<(String, SampledSource)> {
    let contents = &loaded.contents;
    let has_samples = |source: &SampledSource| contents.sample_counts.total(*source).weight.samples > 0;
    let sources = loaded.sources().into_iter().filter(has_samples);
    sources.map(|source| (contents.source_name(source).into_owned(), source)).collect()
}

fn pair(name: String, both: [(&LoadedRecording, SampledSource); 2], sort: &[DiffColumn]) -> Pair {
    let columns: Vec<Column> = sort.iter().copied().map(Column::from).collect();
    let tables = both
        .map(|(loaded, source)| Table::new(&loaded.contents, &loaded.symbol_index, source, &columns, &loaded.filter));
    let mut rows = Rows::new();
    for (index, table) in tables.iter().enumerate() {
        for row in table.rows() {
            if let Some(part) = rows.entry(names_of(&row, sort)).or_default().get_mut(index) {
                part.events += row.weight.events;
                part.share += row.latency.unwrap_or(row.share);
            }
        }
    }
    let lost_shares = both.map(|(loaded, source)| {
        let counts = &loaded.contents.sample_counts;
        let lost = counts.loss_stats().filter(|(id, cpu, _)| source == counts.source_on(*id, *cpu));
        let windows = counts.total(source).weight.samples + left_out(&loaded.contents, source);
        share::lost(lost.map(|(.., stats)| stats.lost).sum(), windows)
    });
    Pair { name, totals: tables.map(|table| table.total), lost_shares, rows }
}

fn names_of(row: &TableRow, sort: &[DiffColumn]) -> Vec<String> {
    let name = |column: &DiffColumn| match column {
        DiffColumn::Process => row.process_name.clone().unwrap_or_default(),
        DiffColumn::Module => row.module.clone().unwrap_or_default(),
        DiffColumn::Symbol => row.symbol.clone().unwrap_or_default(),
        DiffColumn::Processor => row.processor.unwrap_or_default().to_string(),
    };
    sort.iter().map(name).collect()
}

fn section(pair: Pair, judge: &Judge, work: Work) -> Section {
    let [old, new] = &pair.totals;
    let estimates = [Estimate::of_total(old).per(work.old), Estimate::of_total(new).per(work.new)];
    let whole = real(old.weight.events) / work.old;
    let values = estimates.map(|estimate| estimate.value);
    let total = ChangedRow::new(Vec::new(), values, true, judge, |confidence| {
        let [old, new] = &estimates;
        Some(Change::relative(old, new, confidence))
    });
    let rows = pair.rows.into_iter().map(|(names, parts)| {
        let shares = parts.map(|part| part.share);
        let [before, after] = parts.map(|part| part.events);
        ChangedRow::new(names, shares, false, judge, |confidence| {
            let [before, after] = shares;
            Some(Change::of_shares((before, old), (after, new), confidence))
        })
        .with_events(
            [&Estimate::of_part(before, old).per(work.old), &Estimate::of_part(after, new).per(work.new)],
            whole,
            judge,
        )
    });
    let rows = rows.collect();
    Section { event: Some(pair.name), total: Some(total), lost_shares: Some(pair.lost_shares), rows }
}
