//! What was lost of a recording: of all of it, and of the part that the options select.

use std::collections::BTreeMap;
use std::ops::Range;

use protocol::ALL_EVENTS;
use recording::{Count, Summary};
use report::{Contents, LossStats, SampledSource};
use serde::Serialize;

use crate::reading::load::LoadedRecording;
use counts::disturbance::Disturbance;
use counts::share::{self, percent};
use terminal::context::Context;
use terminal::format::{counted, real, seconds};
use user_error::Error;

/// Nanoseconds in a second.
const NANOSECONDS: f64 = 1e9;

/// Returns whether a number that is rarely reported is zero. Members that were added later are then omitted.
pub fn is_none<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Losses and pauses of sampling on a processor.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessorLoss {
    /// Number of the processor.
    pub processor: u32,
    /// Number of lost samples.
    pub lost: u64,
    /// Number of dropped overflows.
    pub throttled: u64,
    /// Number of pauses.
    pub pauses: u64,
    /// Total duration of the pauses.
    pub paused_seconds: f64,
    /// How often sampling stopped because of too many interrupts that no counter explained.
    pub silences: u64,
    /// How often the counters were found not to interrupt, because the LVT entry was not that of Windows.
    #[serde(skip_serializing_if = "is_none")]
    pub disconnections: u64,
    /// Total duration of those that ended.
    #[serde(skip_serializing_if = "is_none")]
    pub disconnected_seconds: f64,
    /// What another program changed first; `None` if nothing was found changed.
    pub changed_register: Option<Disturbance>,
}

/// What was lost of the samples of a source, and of the time.
pub struct LossShares {
    /// Number of lost samples.
    pub lost: u64,
    /// Share of all samples.
    pub lost_share: f64,
    /// Share of the time; unknown if the recording is incomplete.
    pub paused_share: Option<f64>,
}

/// Returns the shares of what `loss_stats` has.
pub fn loss_shares(loaded: &LoadedRecording, sampled: SampledSource, loss_stats: &[ProcessorLoss]) -> LossShares {
    let Contents { sample_counts, session, summary, .. } = &loaded.contents;
    let lost = loss_stats.iter().map(|one| one.lost).sum();
    let paused_seconds = loss_stats.iter().map(|one| one.paused_seconds).sum();
    let is_type = |processor: &&u32| sampled == sample_counts.source_on(sampled.event, **processor);
    let processors = session.processors.iter().filter(is_type).count();
    let paused_share = |summary: &Summary| share::paused(paused_seconds, seconds(summary.sampled_time()), processors);
    LossShares {
        lost,
        lost_share: share::lost(
            lost,
            sample_counts.total(sampled).weight.samples + left_out(&loaded.contents, sampled),
        ),
        paused_share: summary.as_ref().map(paused_share),
    }
}

/// Returns the final counts of a source.
pub fn counts_of<'a>(
    contents: &'a Contents,
    summary: &'a Summary,
    sampled: SampledSource,
) -> impl Iterator<Item = &'a Count> {
    let is_it = move |count: &&Count| sampled == contents.sample_counts.source_on(count.event, count.processor);
    summary.counts.iter().filter(is_it)
}

/// Returns the number of samples of other processes and threads, which were filtered.
pub fn filtered(contents: &Contents, sampled: SampledSource) -> u64 {
    sum(contents, sampled, |count| count.filtered)
}

/// Returns the number of samples that were filtered, and of windows that did not meet the condition, if it is known for
/// the time of the samples: nothing was lost of them.
pub fn left_out(contents: &Contents, sampled: SampledSource) -> u64 {
    sum(contents, sampled, |count| count.filtered.saturating_add(count.unmet))
}

fn sum(contents: &Contents, sampled: SampledSource, number: fn(&Count) -> u64) -> u64 {
    let whole = contents.summary.as_ref().filter(|summary| summary.kept.is_none());
    whole.map_or(0, |whole| counts_of(contents, whole, sampled).map(number).fold(0, u64::saturating_add))
}

/// Returns the shares of the selected time and processors.
fn selected_shares(loaded: &LoadedRecording, sampled: SampledSource) -> LossShares {
    let LoadedRecording { contents: Contents { sample_counts, session, summary, .. }, filter, .. } = loaded;
    let slice = &filter.slice;
    if slice.is_whole() {
        return loss_shares(loaded, sampled, &loss_stats(loaded, sampled));
    }
    let losses = selected_losses(loaded, sampled);
    let lost = losses.iter().map(|one| one.lost).sum();
    let paused_seconds = losses.iter().map(|one| one.paused_seconds).sum();
    let of_source = sample_counts.locations().filter(|(location, _)| location.sampled_source() == sampled);
    let taken = of_source.map(|(_, weight)| weight.samples).sum();
    let is_type = |processor: &&u32| sampled == sample_counts.source_on(sampled.event, **processor);
    let processors = session.processors.iter().filter(is_type).filter(|one| slice.selects_processor(**one)).count();
    let Range { start, end } = loaded.contents.selected_time(slice);
    let selected_seconds = real(end.saturating_sub(start)) / NANOSECONDS;
    LossShares {
        lost,
        lost_share: share::lost(lost, taken),
        paused_share: summary.as_ref().map(|_| share::paused(paused_seconds, selected_seconds, processors)),
    }
}

/// Finishes output that does not show losses itself: reports those of what was selected, and the other problems of the
/// recording, on standard error. Returns the exit code.
pub fn finish_export(loaded: &LoadedRecording, context: &mut Context) -> Result<i32, Error> {
    for warning in loss_warnings(loaded) {
        context.warn(&warning)?;
    }
    loaded.finish(context)
}

/// Returns a warning for each source of which samples or time were lost.
fn loss_warnings(loaded: &LoadedRecording) -> Vec<String> {
    let warning = |sampled: SampledSource| {
        let LossShares { lost, lost_share, paused_share } = selected_shares(loaded, sampled);
        let paused = paused_share.filter(|share| *share > 0.0);
        let lost = (lost > 0).then(|| format!("{} lost, {}", counted(lost, "sample"), percent(lost_share)));
        let paused = paused.map(|share| format!("paused {} of the time", percent(share)));
        let what: Vec<String> = lost.into_iter().chain(paused).collect();
        let name = loaded.contents.source_name(sampled);
        (!what.is_empty()).then(|| format!("warning: {name}: {}", what.join("; ")))
    };
    loaded.sources().into_iter().filter_map(warning).collect()
}

/// Returns losses and pauses by processor. The final counts include losses after the last sample, so they take
/// precedence over the records of losses, unless they include those of samples that were removed.
pub fn loss_stats(loaded: &LoadedRecording, sampled: SampledSource) -> Vec<ProcessorLoss> {
    losses(loaded, sampled, true, loaded.contents.sample_counts.loss_stats())
}

/// Returns losses and pauses by processor in the selected time on the selected processors. The final counts are those
/// of the whole time.
pub fn selected_losses(loaded: &LoadedRecording, sampled: SampledSource) -> Vec<ProcessorLoss> {
    let slice = &loaded.filter.slice;
    let records = loaded.contents.sample_counts.selected_losses();
    let mut found = losses(loaded, sampled, slice.time.is_none(), records);
    found.retain(|one| slice.selects_processor(one.processor));
    found
}

fn losses(
    loaded: &LoadedRecording,
    sampled: SampledSource,
    is_all_time: bool,
    records: impl Iterator<Item = (u32, u32, LossStats)>,
) -> Vec<ProcessorLoss> {
    let mut found: BTreeMap<u32, ProcessorLoss> = BTreeMap::new();
    let contents = &loaded.contents;
    let is_it = |event, processor| sampled == contents.sample_counts.source_on(event, processor);
    let summary = contents.summary.as_ref().filter(|_| is_all_time);
    let counts = summary.into_iter().flat_map(|summary| counts_of(contents, summary, sampled));
    let is_whole = is_all_time && contents.summary.as_ref().is_some_and(|summary| summary.kept.is_none());
    for count in counts {
        let one = found.entry(count.processor).or_default();
        if is_whole {
            one.lost += count.lost;
        }
        one.throttled += count.throttled;
        let changed = count.disturbed.as_ref().map(Disturbance::of_recorded);
        one.changed_register = one.changed_register.take().or(changed);
    }
    for (event, processor, stats) in records {
        let event = if event == ALL_EVENTS { sampled.event } else { event };
        if !is_it(event, processor) {
            continue;
        }
        let one = found.entry(processor).or_default();
        if !is_whole {
            one.lost += stats.lost;
        }
        one.pauses += stats.pauses;
        one.paused_seconds += real(contents.duration(stats.paused)) / NANOSECONDS;
        one.silences += stats.silences;
        one.disconnections += stats.disconnections;
        one.disconnected_seconds += real(contents.duration(stats.disconnected)) / NANOSECONDS;
    }
    let told = found.into_iter().map(|(processor, one)| ProcessorLoss { processor, ..one });
    let numbers = |one: &ProcessorLoss| [one.lost, one.throttled, one.pauses, one.silences, one.disconnections];
    let is_empty = |one: &ProcessorLoss| numbers(one) == [0; 5];
    told.filter(|one| !is_empty(one) || one.changed_register.is_some()).collect()
}
