//! Counts by event, on each processor and in total.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem;

use halprof::core_types::{self, qualified};
use halprof::counting::{Scaled, Times};
use halprof::errata::{self, SourceErratum};
use halprof::event;
use halprof::text::processors::ranges;
use pmu::Source;
use protocol::{CountRecord, Event, InfoReply};
use serde::Serialize;

use crate::disturbance::{self, Disturbance};
use crate::movement::{self, Missed};
use terminal::format::{grouped, per_second, rounded, seconds, table};

/// The count of an event on one processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct OnProcessor {
    /// The processor.
    pub processor: u32,
    /// The counter on this processor; `None` if a timer counts the event.
    pub counter: Option<u32>,
    /// Events that were counted.
    pub count: u64,
    /// Events in all the time: more than `count` if the event took turns.
    pub scaled: u64,
    /// The true number lies within `scaled` plus or minus this in 95 of 100 cases; `None` if too few turns tell.
    pub error: Option<f64>,
    /// Time since the start, without the time for which the machine slept.
    pub enabled_seconds: f64,
    /// Part of that time for which the event had a counter.
    pub running_seconds: f64,
    /// Time for which the machine slept since the start.
    pub asleep_seconds: f64,
    /// Events per second, by `scaled`.
    pub per_second: Option<f64>,
    /// What another program changed first; `None` if nothing was found changed.
    pub disturbed: Option<Disturbance>,
    /// What its counter missed of a known loop, as those of some hypervisors do; `None` if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// Time for which it counted, and part of it for which the event had a counter.
    #[serde(skip)]
    pub times: Times,
    /// `scaled` with its variance.
    #[serde(skip)]
    pub estimate: Scaled,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct EventCount {
    /// Number of the session.
    pub session: u64,
    /// KPROFILE_SOURCE; `None` for an event that the HAL has no number for.
    pub id: Option<u32>,
    /// Name of the source, or the one that the user gave the row (`name=`); on a hybrid with the core type of the
    /// processors.
    pub name: String,
    /// What the name stands for, if the user called the source otherwise: `TotalCycles` for `cycles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
    /// Core type of the processors, on a hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_type: Option<String>,
    /// `u`, `k` or `uk`.
    pub modes: &'static str,
    /// Events that were counted on all processors.
    pub count: u64,
    /// Events on all processors in all the time.
    pub scaled: u64,
    /// As for a processor.
    pub error: Option<f64>,
    /// Maximum over the processors of the time since the start.
    pub enabled_seconds: f64,
    /// Part of the time in which the event had a counter, in percent, over all processors.
    pub percent_running: f64,
    /// Time for which the machine slept since the start.
    pub asleep_seconds: f64,
    /// Events per second on all processors, by `scaled`.
    pub per_second: Option<f64>,
    /// Whether the count of a processor is disturbed.
    pub disturbed: bool,
    /// The most that the counter of a processor missed of a known loop; `None` if none missed anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// Errata of the processor that make the counts wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errata: Vec<SourceErratum>,
    /// Counts of each processor, in ascending order.
    pub processors: Vec<OnProcessor>,
    /// Name of the source without the core type.
    #[serde(skip)]
    pub source: String,
    /// [`CountRecord::event`].
    #[serde(skip)]
    pub event: Event,
    /// [`protocol::modes`].
    #[serde(skip)]
    pub mode_bits: u32,
    /// `enabled_seconds` in units of 100 ns.
    #[serde(skip)]
    pub ticks: u64,
    /// Sum of the times on all processors.
    #[serde(skip)]
    pub times: Times,
    /// Index of the event in the request.
    #[serde(skip)]
    pub index: u32,
    /// Group of the event in the request, or 0.
    #[serde(skip)]
    pub group: u32,
    /// Whether the user gave it its name.
    #[serde(skip)]
    pub is_labelled: bool,
    /// Whether the count was estimated from samples.
    #[serde(skip)]
    pub is_sampled: bool,
}

impl EventCount {
    /// Returns the source and its modes, `BranchInstructions:u`, or the name that the user gave it.
    #[must_use]
    pub fn label(&self) -> String {
        if self.is_labelled { self.name.clone() } else { format!("{}{}", self.name, event::suffix(self.mode_bits)) }
    }

    /// Gives the counts of processors the errors with which they were estimated from samples.
    pub fn set_estimates(&mut self, estimate_on: impl Fn(u32) -> Option<Scaled>) {
        for one in &mut self.processors {
            one.estimate = estimate_on(one.processor).unwrap_or(one.estimate);
            one.error = one.estimate.error();
        }
        self.is_sampled = true;
        self.total();
    }

    /// Returns whether the count has an error: the event took turns, or was sampled.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.is_sampled || self.times.is_scaled()
    }

    /// Gives the event the name that the user wants, on a hybrid with its core type: it can have a row for each.
    pub fn set_label(&mut self, label: &str) {
        (self.name, self.is_labelled) = (qualified(label, self.event.core_type), true);
    }

    /// Names the source as the user did.
    pub fn set_word(&mut self, word: &str) {
        if word != self.source {
            let name = qualified(word, self.event.core_type);
            self.stands_for = Some(mem::replace(&mut self.name, name));
        }
    }

    /// Adds the errata of the processor.
    pub fn add_errata(&mut self, info: &InfoReply) {
        self.errata = errata::of_event(info, self.event.source, &self.source, self.event.core_type);
    }

    /// Returns the processors on which it was counted: `0-1`.
    #[must_use]
    pub fn where_counted(&self) -> String {
        ranges(self.processors.iter().map(|one| one.processor))
    }

    /// Returns the number for a table, with a mark if it is disturbed, and one if its counter does not count.
    #[must_use]
    pub fn number(&self) -> String {
        number(self.scaled, self.times.is_uncounted(), self.disturbed, self.missed)
    }

    /// Returns the counts on some of the processors; `None` if it was counted on none of them.
    #[must_use]
    pub fn on(&self, processors: &[u32]) -> Option<Self> {
        let among = |one: &&OnProcessor| processors.contains(&one.processor);
        let processors: Vec<OnProcessor> = self.processors.iter().filter(among).cloned().collect();
        let mut part = Self { processors, ..self.clone() };
        part.total();
        (!part.processors.is_empty()).then_some(part)
    }

    /// Computes the totals of the processors.
    fn total(&mut self) {
        self.count = self.processors.iter().fold(0, |sum, one| sum.saturating_add(one.count));
        self.ticks = self.processors.iter().map(|one| one.times.enabled).max().unwrap_or_default();
        self.enabled_seconds = seconds(self.ticks);
        self.asleep_seconds = self.processors.iter().map(|one| one.asleep_seconds).fold(0.0, f64::max);
        let estimate = Scaled::sum(self.processors.iter().map(|one| one.estimate));
        (self.scaled, self.error) = (estimate.count, estimate.error());
        self.times = self.processors.iter().map(|one| one.times).fold(Times::default(), Times::plus);
        self.percent_running = 100.0 * self.times.share();
        self.per_second = per_second(self.scaled, self.ticks);
        self.disturbed = self.processors.iter().any(|one| one.disturbed.is_some());
        self.missed = self.processors.iter().filter_map(|one| one.missed).max();
    }

    /// Shows what was counted instead of what it is scaled to.
    pub fn unscale(&mut self) {
        for one in &mut self.processors {
            (one.scaled, one.per_second) = (one.count, per_second(one.count, one.times.enabled));
        }
        (self.scaled, self.per_second) = (self.count, per_second(self.count, self.ticks));
    }
}

/// Groups the counts by event and core type, in the order in which they first appear: what two core types count can be
/// two events, and is never added. `name_of` names the event of a count.
pub fn by_event(records: &[CountRecord], name_of: impl Fn(&CountRecord) -> String) -> Vec<EventCount> {
    let mut events: Vec<EventCount> = Vec::new();
    for record in records {
        let key = (record.session, record.index, record.event, record.modes);
        let key_of = |event: &EventCount| (event.session, event.index, event.event, event.mode_bits);
        let known = events.iter_mut().find(|event| key_of(event) == key);
        if let Some(event) = known {
            event.processors.push(on_processor(record));
            continue;
        }
        let source = name_of(record);
        events.push(EventCount {
            session: record.session,
            id: Source(record.event.source).number(),
            name: qualified(&source, record.event.core_type),
            stands_for: None,
            core_type: (record.event.core_type != 0).then(|| core_types::name(record.event.core_type)),
            source,
            event: record.event,
            modes: event::mode_letters(record.modes),
            count: 0,
            scaled: 0,
            error: None,
            enabled_seconds: 0.0,
            percent_running: 100.0,
            asleep_seconds: 0.0,
            per_second: None,
            disturbed: false,
            missed: None,
            errata: Vec::new(),
            processors: vec![on_processor(record)],
            mode_bits: record.modes,
            ticks: 0,
            times: Times::default(),
            index: record.index,
            group: 0,
            is_labelled: false,
            is_sampled: false,
        });
    }
    for event in &mut events {
        event.processors.sort_by_key(|one| one.processor);
        event.total();
    }
    events
}

fn on_processor(record: &CountRecord) -> OnProcessor {
    let (times, estimate) = (Times::of(record), Scaled::of(record));
    OnProcessor {
        processor: record.processor,
        counter: Some(record.counter).filter(|counter| *counter != protocol::TIMER),
        count: record.count,
        scaled: estimate.count,
        error: estimate.error(),
        enabled_seconds: seconds(times.enabled),
        running_seconds: seconds(times.running),
        asleep_seconds: seconds(record.asleep),
        per_second: per_second(estimate.count, times.enabled),
        disturbed: Disturbance::of(record),
        missed: Missed::of(record),
        times,
        estimate,
    }
}

/// Returns the time for which the machine slept while any of these events counted, if it slept.
pub fn asleep<'a>(events: impl Iterator<Item = &'a EventCount>) -> Option<f64> {
    Some(events.map(|event| event.asleep_seconds).fold(0.0, f64::max)).filter(|seconds| *seconds > 0.0)
}

/// Returns the sentence about events that took turns, if there are any.
pub fn turns_note<'a>(events: impl Iterator<Item = &'a EventCount>) -> Option<String> {
    let shares: Vec<f64> = events.filter(|event| event.times.is_scaled()).map(|event| event.percent_running).collect();
    let least = shares.iter().copied().reduce(f64::min)?;
    let most = shares.iter().copied().fold(least, f64::max);
    let share = if most - least < 0.5 { format!("{least:.0} %") } else { format!("{least:.0} to {most:.0} %") };
    Some(format!("Events took turns on the counters. Each had one for {share} of the time,\nand its count is scaled."))
}

impl OnProcessor {
    /// As [`EventCount::number`].
    pub fn number(&self) -> String {
        number(self.scaled, self.times.is_uncounted(), self.disturbed.is_some(), self.missed)
    }
}

fn number(scaled: u64, is_uncounted: bool, disturbed: bool, missed: Option<Missed>) -> String {
    if is_uncounted { NOT_COUNTED.to_owned() } else { marked(scaled, disturbed, missed) }
}

/// What stands for the count of an event that never had a counter, as in perf.
const NOT_COUNTED: &str = "<not counted>";

/// Returns a count for a table, with its marks.
fn marked(count: u64, disturbed: bool, missed: Option<Missed>) -> String {
    let marks = [(disturbed, disturbance::MARK), (missed.is_some(), movement::MARK)];
    let marks: String = marks.into_iter().filter_map(|(is_marked, mark)| is_marked.then_some(mark)).collect();
    format!("{marks}{}", grouped(count))
}

/// Returns a sentence about the events whose counts errata make wrong.
pub fn errata_note<'a>(events: impl Iterator<Item = &'a EventCount>) -> Option<String> {
    let wrong = events.filter(|event| !event.errata.is_empty());
    let named: BTreeMap<&str, String> =
        wrong.map(|event| (event.name.as_str(), errata::numbers(event.errata.iter()))).collect();
    let of_each: Vec<_> = named.iter().map(|(name, numbers)| format!("{name} ({numbers})")).collect();
    (!of_each.is_empty()).then(|| format!("Counted wrongly by errata of the processor: {}.", of_each.join(", ")))
}

/// Returns the texts for the marked counts of these events: for disturbed ones, and for those of counters that do not
/// count.
pub fn mark_notes<'a>(events: impl Iterator<Item = &'a EventCount> + Clone) -> impl Iterator<Item = String> {
    let missed = movement::note(events.clone().filter_map(|event| {
        let processors = event.processors.iter().filter(|one| one.missed.is_some()).map(|one| one.processor).collect();
        Some((event.label(), processors, event.missed?))
    }));
    [disturbance_note(events), missed].into_iter().flatten()
}

fn disturbance_note<'a>(events: impl Iterator<Item = &'a EventCount>) -> Option<String> {
    disturbance::note(events.flat_map(|event| {
        let marks = event.processors.iter().filter_map(|one| Some((one.processor, one.disturbed.as_ref()?)));
        marks.map(|(processor, disturbance)| (event.label(), processor, disturbance))
    }))
}

/// Formats the table of `read` and `stop`. With `per_cpu`, a row for each processor precedes the total.
#[must_use]
pub fn counts_table(events: &[EventCount], per_cpu: bool) -> String {
    let mut rows = Vec::new();
    for event in events {
        let row = |cpu: String, count: String, rate: Option<f64>, seconds: f64| {
            vec![event.label(), cpu, count, rounded(rate), format!("{seconds:.3}")]
        };
        if per_cpu {
            for one in &event.processors {
                rows.push(row(one.processor.to_string(), one.number(), one.per_second, one.enabled_seconds));
            }
        }
        let cpu = if per_cpu { "all".to_owned() } else { event.where_counted() };
        rows.push(row(cpu, event.number(), event.per_second, event.enabled_seconds));
    }
    let numbers = ["CPU", "Count", "Per second", "Seconds"];
    let mut text = table(&["Source", "CPU", "Count", "Per second", "Seconds"], &numbers, &rows);
    if let Some(note) = turns_note(events.iter()) {
        let _ = write!(text, "\n{note}");
    }
    if let Some(seconds) = asleep(events.iter()) {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\nThe machine slept for {seconds:.3} s meanwhile, in which nothing was counted.");
    }
    for note in errata_note(events.iter()).into_iter().chain(mark_notes(events.iter())) {
        let _ = write!(text, "\n{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_system::{count, disturbed, named};

    #[test]
    fn a_total_has_the_sum_of_counts_and_the_maximum_of_times() {
        let records = [count(2, 1, 30, 10), count(6, 0, 7, 20), count(2, 0, 12, 20)];
        let events = by_event(&records, named);
        let totals: Vec<_> = events.iter().map(|event| (event.label(), event.count, event.ticks)).collect();
        assert_eq!(totals, [("TotalIssues".to_owned(), 42, 20), ("BranchInstructions".to_owned(), 7, 20)]);
        assert_eq!(events[0].where_counted(), "0-1");
        assert_eq!(events[0].processors.iter().map(|one| one.count).collect::<Vec<_>>(), [12, 30]);
    }

    #[test]
    fn counts_of_different_modes_or_sessions_are_separate() {
        let one = count(2, 0, 1, 10);
        let user = CountRecord { modes: 1, ..one };
        let other = CountRecord { session: 99, ..one };
        let events = by_event(&[one, user, other], named);
        assert_eq!(
            events.iter().map(EventCount::label).collect::<Vec<_>>(),
            ["TotalIssues", "TotalIssues:u", "TotalIssues"]
        );
    }

    #[test]
    fn counts_of_different_core_types_are_never_added() {
        let on = |processor, core_type, number| CountRecord {
            event: Event { core_type, ..count(0x13, processor, number, 10).event },
            ..count(0x13, processor, number, 10)
        };
        let records = [on(0, 0x40, 100), on(1, 0x20, 7), on(2, 0x40, 200), on(3, 0x20, 8)];
        let events = by_event(&records, named);
        let told: Vec<_> =
            events.iter().map(|event| (event.label(), event.where_counted(), event.count, &event.core_type)).collect();
        let (core, atom) = (Some("cpu_core".to_owned()), Some("cpu_atom".to_owned()));
        assert_eq!(
            told,
            [
                ("cpu_core/TotalCycles/".to_owned(), "0,2".to_owned(), 300, &core),
                ("cpu_atom/TotalCycles/".to_owned(), "1,3".to_owned(), 15, &atom)
            ]
        );
        assert_eq!(
            counts_table(&events, false),
            "Source                 CPU  Count   Per second  Seconds\n\
             ---------------------  ---  -----  -----------  -------\n\
             cpu_core/TotalCycles/  0,2    300  300,000,000    0.000\n\
             cpu_atom/TotalCycles/  1,3     15   15,000,000    0.000"
        );
    }

    #[test]
    fn time_asleep_is_reported_and_excluded_from_rates() {
        let record = CountRecord { asleep: 30_000_000, ..count(2, 0, 1_000, 50_000_000) };
        let events = by_event(&[record, count(2, 1, 0, 20_000_000)], named);
        let [one, two] = &events[0].processors[..] else { panic!("two processors") };
        assert_eq!((one.per_second, one.enabled_seconds, one.asleep_seconds), (Some(500.0), 2.0, 3.0));
        assert_eq!((two.enabled_seconds, two.asleep_seconds), (2.0, 0.0));
        let text = counts_table(&events, true);
        assert!(text.ends_with("\nThe machine slept for 3.000 s meanwhile, in which nothing was counted."), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80));
        assert!(!counts_table(&by_event(&[count(2, 1, 0, 9)], named), true).contains("slept"));
    }

    #[test]
    fn a_disturbed_count_has_a_mark_and_a_note_below() {
        let records = [count(2, 0, 1_000_000, 10_000_000), disturbed(count(2, 1, 500_000, 10_000_000))];
        let events = by_event(&records, named);
        assert_eq!(
            counts_table(&events, true),
            "Source       CPU       Count  Per second  Seconds\n\
             -----------  ---  ----------  ----------  -------\n\
             TotalIssues    0   1,000,000   1,000,000    1.000\n\
             TotalIssues    1    *500,000     500,000    1.000\n\
             TotalIssues  all  *1,500,000   1,500,000    1.000\n\
             * disturbed: another program changed registers of these counts, which are wrong\n  \
             TotalIssues on CPU 1: IA32_FIXED_CTR_CTRL (MSR 0x38d)\n    \
             had 0x333 instead of 0x2 after 0.500 s\n  \
             known to do this: HWiNFO, Core Temp, OCCT, ThrottleStop, Intel PCM\n  \
             try: end these programs, then run the command again"
        );
    }

    #[test]
    fn an_event_that_took_turns_is_scaled_and_one_without_a_turn_is_not_counted() {
        let turned = CountRecord { running: 2_500_000, ..count(2, 0, 100, 10_000_000) };
        let never = CountRecord { running: 0, index: 1, ..count(6, 0, 0, 10_000_000) };
        let mut events = by_event(&[turned, never], named);
        assert_eq!(
            counts_table(&events, false),
            "Source              CPU          Count  Per second  Seconds\n\
             ------------------  ---  -------------  ----------  -------\n\
             TotalIssues           0            400         400    1.000\n\
             BranchInstructions    0  <not counted>           0    1.000\n\
             Events took turns on the counters. Each had one for 25 % of the time,\n\
             and its count is scaled."
        );
        assert_eq!(crate::count_metric::of(&events[1], &events), None);
        events[0].unscale();
        assert_eq!((events[0].number(), events[0].per_second), ("100".to_owned(), Some(100.0)));
    }

    #[test]
    fn the_same_event_in_two_groups_has_two_counts() {
        let records = [count(2, 0, 30, 10), CountRecord { index: 1, ..count(2, 0, 12, 20) }];
        let events = by_event(&records, named);
        assert_eq!(events.iter().map(|event| event.count).collect::<Vec<_>>(), [30, 12]);
    }

    #[test]
    fn sums_do_not_wrap() {
        let events = by_event(&[count(2, 0, u64::MAX, 1), count(2, 1, 2, 1)], named);
        assert_eq!(events[0].count, u64::MAX);
    }

    #[test]
    fn the_table_has_processors_only_if_requested() {
        let records = [count(2, 0, 1_000_000, 10_000_000), count(2, 1, 500_000, 10_000_000)];
        let events = by_event(&records, named);
        assert_eq!(
            counts_table(&events, false),
            "Source       CPU      Count  Per second  Seconds\n\
             -----------  ---  ---------  ----------  -------\n\
             TotalIssues  0-1  1,500,000   1,500,000    1.000"
        );
        assert_eq!(
            counts_table(&events, true),
            "Source       CPU      Count  Per second  Seconds\n\
             -----------  ---  ---------  ----------  -------\n\
             TotalIssues    0  1,000,000   1,000,000    1.000\n\
             TotalIssues    1    500,000     500,000    1.000\n\
             TotalIssues  all  1,500,000   1,500,000    1.000"
        );
    }
}
