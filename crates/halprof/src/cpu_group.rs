//! Counters of a CPU, or of all.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use protocol::{CountRecord, EventRequest, ProcessorSet, StartHeader};

use crate::counting::{Scaled, Times, difference};
use crate::counts::Counts;
use crate::error::Error;
use crate::group_error::GroupError;
use crate::guards::SessionGuard;
use crate::machine::Machine;
use crate::named_requests::NamedRequests;
use crate::quality::{Disturbance, Quality};

/// Number of units of the driver's times in a microsecond.
const PER_MICROSECOND: u64 = 10;

/// Counters of a CPU or of all CPUs, from [`Builder::build_for_cpu`](crate::Builder::build_for_cpu) and
/// [`Builder::build_for_all_cpus`](crate::Builder::build_for_all_cpus). They count whatever runs there.
///
/// Each reading interrupts each of the CPUs. When the group is dropped, the counters are free again.
pub struct CpuGroup {
    session: SessionGuard,
    events: Events,
    begin: Option<Vec<CountRecord>>,
}

/// The events of a group.
struct Events {
    names: Arc<[String]>,
    /// For each event of the request, the index of its name.
    owners: Vec<usize>,
}

impl CpuGroup {
    pub(crate) fn build(
        machine: &Machine,
        events: Vec<NamedRequests>,
        flags: u32,
        cpus: ProcessorSet,
    ) -> Result<Self, Error> {
        let header = StartHeader { flags, processors: cpus, ..StartHeader::EMPTY };
        let requests: Vec<EventRequest> = events.iter().flat_map(|event| &event.requests).copied().collect();
        let repeated = |(name, event): (usize, &NamedRequests)| std::iter::repeat_n(name, event.requests.len());
        let owners = events.iter().enumerate().flat_map(repeated).collect();
        let session = SessionGuard::start(machine.shared_driver(), &header, &requests)?;
        let names: Vec<_> = events.into_iter().map(|event| event.name).collect();
        Ok(Self { session, events: Events { names: Arc::from(names), owners }, begin: None })
    }

    /// Returns the counts of the CPUs while `work` runs, on whichever CPU that is. Its result is kept alive until the
    /// counters are read, and then dropped.
    ///
    /// # Errors
    /// If a region has begun already, or the driver cannot read the counters.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> Result<Counts, Error> {
        if self.begin.is_some() {
            return Err(GroupError::AlreadyBegun.into());
        }
        let begin = self.session.read()?;
        let result = black_box(work());
        let counts = self.session.read().map(|end| self.events.counts(&begin, &end, None));
        drop(result);
        counts
    }

    /// Begins a region.
    ///
    /// # Errors
    /// If a region has begun already, or the driver cannot read the counters. Then none has begun.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.begin.is_some() {
            return Err(GroupError::AlreadyBegun.into());
        }
        self.begin = Some(self.session.read()?);
        Ok(())
    }

    /// Ends the region and returns its counts.
    ///
    /// # Errors
    /// If no region has begun, or the driver cannot read the counters. In the latter case the region goes on, and can
    /// be ended by another call.
    pub fn end(&mut self) -> Result<Counts, Error> {
        let begin = self.begin.as_ref().ok_or(GroupError::NotBegun)?;
        let end = self.session.read()?;
        let counts = self.events.counts(begin, &end, None);
        self.begin = None;
        Ok(counts)
    }

    /// Returns the counts since the group was built.
    ///
    /// # Errors
    /// If the driver cannot read the counters.
    pub fn read(&self) -> Result<Counts, Error> {
        Ok(self.events.counts(&[], &self.session.read()?, None))
    }

    /// Returns the counts since the group was built, for each CPU.
    ///
    /// # Errors
    /// If the driver cannot read the counters.
    pub fn read_per_cpu(&self) -> Result<Vec<(u32, Counts)>, Error> {
        let end = self.session.read()?;
        let mut cpus: Vec<_> = end.iter().map(|record| record.processor).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Ok(cpus.into_iter().map(|cpu| (cpu, self.events.counts(&[], &end, Some(cpu)))).collect())
    }

    /// Returns the events as the builder got them.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.events.names.iter().map(String::as_str)
    }
}

impl Events {
    /// Returns the counts between two readings, on all CPUs of the group or on one.
    fn counts(&self, begin: &[CountRecord], end: &[CountRecord], cpu: Option<u32>) -> Counts {
        let mut values = vec![0_u64; self.names.len()];
        let mut times: Vec<Times> = vec![Times::default(); self.names.len()];
        let mut disturbance = None;
        let on_cpu = |record: &&CountRecord| cpu.is_none_or(|cpu| record.processor == cpu);
        for record in difference(end, begin).iter().filter(on_cpu) {
            let Some(owner) = self.owners.get(record.index as usize).copied() else { continue };
            if let Some(value) = values.get_mut(owner) {
                *value = value.saturating_add(Scaled::of(record).count);
            }
            if let Some(times) = times.get_mut(owner) {
                *times = times.plus(Times::of(record));
            }
            let name = || self.names.get(owner).cloned().unwrap_or_default();
            if let Some(found) = disturbance_of(record, name)
                && disturbance.as_ref().is_none_or(|other| rank(other) > rank(&found))
            {
                disturbance = Some(found);
            }
        }
        // An event of another core type has no time on these CPUs, and says nothing about the others.
        let times = times.into_iter().filter(|times| times.enabled > 0).min_by(Times::by_share).unwrap_or_default();
        Counts {
            time_enabled: duration(times.enabled),
            time_running: duration(times.running),
            quality: disturbance.map_or(Quality::Undisturbed, Quality::Disturbed),
            names: self.names.clone(),
            values,
            context_switches: None,
            cycle_time: None,
        }
    }
}

/// Returns why the count of a record is not exact, if it is not.
fn disturbance_of(record: &CountRecord, name: impl Fn() -> String) -> Option<Disturbance> {
    let times = Times::of(record);
    if record.disturbed_register != 0 {
        Some(Disturbance::CountersChanged { cpu: record.processor })
    } else if record.movement != 0 {
        Some(Disturbance::DoesNotCount { cpu: record.processor })
    } else if times.is_uncounted() {
        Some(Disturbance::NotCounted { event: name() })
    } else {
        times.took_turns().then_some(Disturbance::TookTurns)
    }
}

/// Returns the order in which reasons are reported if there are several: wrong, then missing, then estimated counts.
fn rank(disturbance: &Disturbance) -> u8 {
    match disturbance {
        Disturbance::CountersChanged { .. } | Disturbance::DoesNotCount { .. } => 0,
        Disturbance::NotCounted { .. } => 1,
        _ => 2,
    }
}

fn duration(units: u64) -> Duration {
    Duration::from_micros(units / PER_MICROSECOND) + Duration::from_nanos(units % PER_MICROSECOND * 100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    use super::*;

    fn record(count: u64, enabled: u64, asleep: u64, running: u64) -> CountRecord {
        CountRecord { count, enabled, asleep, running, processor: 3, ..CountRecord::new_zeroed() }
    }

    #[test]
    fn a_count_is_scaled_by_its_time_with_a_counter_and_graded_by_it() {
        let changed = Some(Disturbance::CountersChanged { cpu: 3 });
        let not_counted = Some(Disturbance::NotCounted { event: "cycles".to_owned() });
        let begin = record(100, 1_000, 200, 600);
        for (end, scaled, disturbance) in [
            (begin, 0, None),
            (record(400, 1_100, 200, 700), 300, None),
            // Asleep, nothing counts, and no time passes.
            (record(400, 9_100, 8_200, 700), 300, None),
            (record(400, 1_400, 200, 700), 1_200, Some(Disturbance::TookTurns)),
            (record(100, 1_400, 200, 600), 0, not_counted),
            (CountRecord { disturbed_register: 0x186, ..record(400, 1_100, 200, 700) }, 300, changed),
            (
                CountRecord { movement: 1, ..record(400, 1_100, 200, 900) },
                300,
                Some(Disturbance::DoesNotCount { cpu: 3 }),
            ),
            // The product has more than 64 bits, and the result has not.
            (record(100 + (1 << 40), 1_000 + (1 << 40), 200, 600 + (1 << 39)), 1 << 41, Some(Disturbance::TookTurns)),
            (record(u64::MAX, u64::MAX, 200, 601), u64::MAX, Some(Disturbance::TookTurns)),
        ] {
            let events = Events { names: ["cycles".to_owned()].into(), owners: vec![0] };
            let counts = events.counts(&[begin], &[end], None);
            let quality = disturbance.map_or(Quality::Undisturbed, Quality::Disturbed);
            assert_eq!((counts.values, counts.quality), (vec![scaled], quality), "{end:?}");
        }
    }

    /// Two readings of an event of a request on a CPU.
    #[derive(Debug, Clone, Copy)]
    struct Readings {
        begin: Option<CountRecord>,
        end: CountRecord,
    }

    /// Any two readings. Times are small, so that all shares occur, those close to 1 too.
    fn readings() -> impl Strategy<Value = Readings> {
        let times = (0..40_u64, 0..40_u64, 0..5_u64, prop::bool::weighted(0.3));
        let marks = (prop::option::weighted(0.05, Just(0x186_u32)), prop::bool::weighted(0.05));
        (0..1_000_u64, 0..1_000_u64, times, times_before(), prop::bool::weighted(0.8), marks).prop_map(
            |(
                before,
                more,
                (enabled, running, asleep, always),
                (b_enabled, b_running),
                has_begin,
                (register, still),
            )| {
                let running = if always { enabled } else { running.min(enabled) };
                let begin = CountRecord {
                    count: before,
                    enabled: b_enabled,
                    running: b_running.min(b_enabled),
                    ..CountRecord::new_zeroed()
                };
                let first = if has_begin { begin } else { CountRecord::new_zeroed() };
                let end = CountRecord {
                    count: first.count + more,
                    enabled: first.enabled + enabled + asleep,
                    asleep,
                    running: first.running + running,
                    disturbed_register: register.unwrap_or_default(),
                    movement: still.into(),
                    ..CountRecord::new_zeroed()
                };
                Readings { begin: has_begin.then_some(begin), end }
            },
        )
    }

    fn times_before() -> impl Strategy<Value = (u64, u64)> {
        (0..40_u64, 0..40_u64)
    }

    /// What the counts of some parts must be, in exact fractions.
    fn expected(parts: &[(usize, u32, Readings)], names: usize) -> (Vec<u64>, (u64, u64), u8) {
        let (mut values, mut times, mut worst) = (vec![0; names], vec![(0_u64, 0_u64); names], 3);
        for (owner, _, Readings { begin, end }) in parts {
            let first = begin.unwrap_or(CountRecord::new_zeroed());
            let enabled = (end.enabled - end.asleep) - (first.enabled - first.asleep);
            let (count, running) = (end.count - first.count, end.running - first.running);
            // To the nearest whole number.
            values[*owner] += (2 * count * enabled + running).checked_div(2 * running).unwrap_or(count);
            times[*owner] = (times[*owner].0 + enabled, times[*owner].1 + running);
            worst = worst.min(match (end.disturbed_register, end.movement, running) {
                (0, 0, running) if running == enabled => 3,
                (0, 0, 0) => 1,
                (0, 0, _) => 2,
                _ => 0,
            });
        }
        // An event that is not on these CPUs had no time, and tells nothing.
        let millionths = |(enabled, running): (u64, u64)| running * 1_000_000 / enabled;
        let told = times.into_iter().filter(|(enabled, _)| *enabled > 0);
        let least = told.min_by_key(|times| millionths(*times)).unwrap_or_default();
        (values, least, worst)
    }

    proptest! {
        /// Each event has its own counts, on the CPUs that are meant, each part scaled by its own times; the times are
        /// those of the event that had a counter least, and the reason is the worst.
        #[test]
        fn each_event_and_each_cpu_has_its_own_counts(
            owners in prop::collection::vec(0..3_usize, 1..5),
            all in prop::collection::vec(readings(), 15),
            cpus in 1..4_u32,
        ) {
            let events = Events { names: ["a", "b", "c"].map(str::to_owned).into(), owners };
            let mut parts = Vec::new();
            let (mut begin, mut end) = (Vec::new(), Vec::new());
            for (cpu, (request, owner)) in (0..cpus).flat_map(|cpu| events.owners.iter().enumerate().map(move |request| (cpu, request))) {
                let placed = |record| CountRecord { processor: cpu, index: u32::try_from(request).unwrap(), ..record };
                let one = all[cpu as usize * 5 + request];
                begin.extend(one.begin.map(placed));
                end.push(placed(one.end));
                parts.push((*owner, cpu, one));
            }
            // The order of a reading is no promise.
            begin.reverse();
            for cpu in (0..cpus).map(Some).chain([None]) {
                let meant: Vec<_> = parts.iter().filter(|(_, there, _)| cpu.is_none_or(|cpu| cpu == *there)).copied().collect();
                let (values, (enabled, running), worst) = expected(&meant, 3);
                let counts = events.counts(&begin, &end, cpu);
                prop_assert_eq!(&counts.values, &values, "{:?}", cpu);
                let (left, right) = (counts.time_running.as_nanos() * u128::from(enabled), counts.time_enabled.as_nanos() * u128::from(running));
                prop_assert_eq!(left, right, "{:?} is not {} of {}", &counts, running, enabled);
                prop_assert_eq!(counts.time_enabled.is_zero(), enabled == 0, "{:?}", &counts);
                let found = match &counts.quality {
                    Quality::Disturbed(disturbance) => rank(disturbance),
                    _ => 3,
                };
                prop_assert_eq!(found, worst, "{:?}", counts.quality);
            }
        }
    }

    #[test]
    fn the_units_of_times_are_100_ns() {
        assert_eq!(duration(12_345_678), Duration::from_nanos(1_234_567_800));
    }
}
