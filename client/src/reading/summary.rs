//! Summary of a source in a report: how it was sampled, how often, and what was lost.

use std::cmp::Reverse;
use std::ops::Add;

use pmu::Source;
use protocol::BRANCHES;
use recording::RecordedEvent;

use crate::reading::aggregate::{ConditionSummary, SourceAggregate, StackSummary};
use crate::reading::losses::ProcessorLoss;
use crate::reading::recorders::{RecorderFields, RecorderName};
use counts::disturbance::Disturbance;
use counts::share::{self, percent};
use terminal::format::{counted, grouped, properties, real};

/// Units of the times in which threads do not run.
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Maximum number of processors listed with their losses.
const MAX_PROCESSORS: usize = 4;

/// Formats how a source was sampled, the number of its samples, and its losses. If the options narrow the selection,
/// also how much they select.
pub fn summary(source: &SourceAggregate, narrows: bool) -> String {
    let is_off_cpu = source.id == Source(RecordedEvent::OFF_CPU_SOURCE).number();
    let events: Vec<String> = source
        .events
        .iter()
        .map(|event| {
            let interval = grouped(event.interval.into());
            match event.frequency {
                _ if source.id == Source(BRANCHES).number() => format!("{}, a record of each", event.label),
                _ if is_off_cpu => format!("{}, each time in which a thread did not run", event.label),
                0 => format!("{}, a sample every {interval} events", event.label),
                frequency => format!("{}, about {} samples a second", event.label, grouped(frequency.into())),
            }
        })
        .collect();
    let sum = if is_off_cpu {
        format!("together {:.3} s", real(source.sampled_events) / NANOSECONDS_PER_SECOND)
    } else {
        format!("standing for {} events", grouped(source.sampled_events))
    };
    let samples = format!("{}, {sum}", grouped(source.samples));
    let mut lines = vec![("Event", events.join("; ")), ("Samples", samples)];
    let filtered = (source.filtered > 0).then(|| counted(source.filtered, "sample"));
    lines.extend(filtered.map(|samples| ("Filtered", format!("{samples} of other processes and threads"))));
    let unknown = source.latency_unknown.filter(|samples| *samples > 0);
    lines.extend(unknown.map(|samples| {
        let share = percent(share::of(samples, source.samples));
        ("Latency", format!("unknown of {}, {share}", counted(samples, "sample")))
    }));
    lines.extend(source.condition.iter().map(|condition| ("Windows", windows(condition))));
    lines.extend(skid(source).map(|skid| ("Skid", skid.to_owned())));
    lines.extend(source.recorders.iter().map(|one| ("", recorded_by(one, source.recorders.len() > 1))));
    lines.extend(source.stacks.iter().flat_map(stack_lines));
    lines.extend(loss_lines(source));
    lines.extend(narrows.then(|| ("Selected", selected(source))));
    let lost = source.selected_lost.filter(|lost| *lost > 0);
    lines.extend(lost.map(|lost| ("", format!("{} lost in the selected part", counted(lost, "sample")))));
    properties(&lines)
}

fn selected(source: &SourceAggregate) -> String {
    let share = share::of(source.selected_events, source.sampled_events);
    let (samples, share) = (counted(source.selected_samples, "sample"), percent(share));
    format!("{samples}, {share} of all events; Overhead is of all events")
}

/// Formats the condition of the samples, and how many windows met it.
fn windows(condition: &ConditionSummary) -> String {
    let ConditionSummary { text, met, unmet } = condition;
    match met.zip(*unmet) {
        Some((met, unmet)) => {
            let all = met.saturating_add(unmet);
            format!("{} of {} met {text}, {}", grouped(met), grouped(all), percent(share::of(met, all)))
        }
        None => format!("those that met {text}"),
    }
}

/// Describes the distance of the precise samples from the instruction that caused the event.
fn skid(source: &SourceAggregate) -> Option<&'static str> {
    match (source.precise, source.precise_next) {
        (0, 0) => None,
        (_, 0) => Some("0: the instruction that made the event happen"),
        (0, _) => Some("the instruction behind the one that made the event happen"),
        _ => Some("0 on some processors, on others the instruction behind"),
    }
}

/// Says which kind of counter made the records or chose the windows, and on how many processors if there are several
/// kinds.
fn recorded_by(RecorderFields { counter, processors }: &RecorderFields, is_one_of_several: bool) -> String {
    let how = match counter {
        RecorderName::General => "recorded by general counters, one event after each overflow",
        RecorderName::GeneralDistributed => "recorded by general counters with precise distribution",
        RecorderName::FixedDistributed => "recorded by fixed counter 0, with precise distribution",
        RecorderName::Reloaded => "chosen by counters that reload each other, without interrupts for others",
    };
    if is_one_of_several { format!("{how} (on {})", counted(*processors, "CPU")) } else { how.to_owned() }
}

/// Returns the shares of samples with complete, truncated and missing call stacks, and why these are missing.
fn stack_lines(stacks: &StackSummary) -> Vec<(&'static str, String)> {
    let StackSummary { complete, truncated, kernel_only, missing } = stacks;
    let all_missing: u64 = missing.values().sum();
    let samples = complete + truncated + kernel_only + all_missing;
    let share = |part: u64| percent(share::of(part, samples));
    let [whole, cut, none] = [*complete, truncated + kernel_only, all_missing].map(share);
    let mut lines = vec![("Stacks", format!("{whole} of samples; {cut} truncated; {none} missing"))];
    let kernel_only = (*kernel_only > 0).then(|| format!("kernel mode only {}", share(*kernel_only)));
    let reasons = missing.iter().map(|(reason, samples)| format!("{reason} {}", share(*samples)));
    let reasons: Vec<String> = kernel_only.into_iter().chain(reasons).collect();
    if !reasons.is_empty() {
        lines.push(("", reasons.join("; ")));
    }
    lines
}

/// Returns what was lost of the samples and of the time, with the processors.
fn loss_lines(source: &SourceAggregate) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Lost", lost(source))];
    if source.throttled > 0 {
        let overflows = counted(source.throttled, "overflow");
        lines.push(("Throttled", format!("{overflows} {}", by_processor(source, |one| one.throttled))));
    }
    let pauses = source.loss_stats.iter().map(|one| one.pauses).sum();
    lines.push(("Paused", paused(source, pauses)));
    if pauses > 0 {
        lines.push(("", by_processor(source, |one| one.pauses)));
    }
    let silences = source.loss_stats.iter().map(|one| one.silences).sum();
    if silences > 0 {
        let by_processor = by_processor(source, |one| one.silences);
        let times = counted(silences, "time");
        lines.push(("Stopped", format!("{times} {by_processor} by an interrupt storm")));
    }
    let disconnections = source.loss_stats.iter().map(|one| one.disconnections).sum();
    if disconnections > 0 {
        let time: f64 = source.loss_stats.iter().map(|one| one.disconnected_seconds).sum();
        let by_processor = by_processor(source, |one| one.disconnections);
        let times = counted(disconnections, "time");
        lines.push(("Stopped", format!("{times} {by_processor} without Windows' interrupt entry, {time:.3} s in all")));
    }
    let marks = source.loss_stats.iter().filter_map(|one| Some((one.processor, one.changed_register.as_ref()?)));
    for (index, (processor, Disturbance { register, found, expected, .. })) in marks.take(MAX_PROCESSORS).enumerate() {
        let name = if index == 0 { "Disturbed" } else { "" };
        lines.push((name, format!("CPU {processor}: {register} had {found}, not {expected}")));
    }
    lines
}

/// Formats number and share of the lost samples.
fn lost(source: &SourceAggregate) -> String {
    match source.lost {
        0 => "0 samples".to_owned(),
        lost => {
            let (samples, share) = (counted(lost, "sample"), percent(source.lost_share));
            format!("{samples}, {share} {}", by_processor(source, |one| one.lost))
        }
    }
}

/// Formats number and duration of the pauses. Their share is unknown if the recording is incomplete.
fn paused(source: &SourceAggregate, pauses: u64) -> String {
    let time: f64 = source.loss_stats.iter().map(|one| one.paused_seconds).fold(0.0, Add::add); // an empty sum is -0.0
    let times = format!("{}, {time:.3} s in all", counted(pauses, "time"));
    match source.paused_share {
        Some(share) if pauses == 0 => format!("{} of the time", percent(share)),
        Some(share) => format!("{} of the time: {times}", percent(share)),
        None => times,
    }
}

/// Lists the processors with the highest numbers.
fn by_processor(source: &SourceAggregate, number: impl Fn(&ProcessorLoss) -> u64) -> String {
    let mut with: Vec<(u64, u32)> =
        source.loss_stats.iter().map(|one| (number(one), one.processor)).filter(|(number, _)| *number > 0).collect();
    with.sort_unstable_by_key(|(number, processor)| (Reverse(*number), *processor));
    let most = with.iter().take(MAX_PROCESSORS);
    let mut listed: Vec<String> =
        most.map(|(number, processor)| format!("{processor}: {}", grouped(*number))).collect();
    if let others @ 1.. = with.len() - listed.len() {
        listed.push(format!("{others} more"));
    }
    format!("(CPU {})", listed.join(", "))
}
