//! The numbers of a moment: one point for each metric of the table and set of labels.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use agent::config::Config;
use agent::profiles::Statistics;
use agent::{Family, Label, Point, Snapshot, Value};
use halprof::core_types;
use halprof::counting::{Key, Total};
use halprof::event;

use super::counting::Counting;
use super::gap::GapReason;
use super::profiling::Profiled;
use counts::processor_identity::ProcessorIdentity;
use counts::requested_metrics::MetricValue;
use terminal::format::real;
use user_error::reason;

/// Units of 100 ns in a second.
const SECOND: f64 = 1e7;

/// Returns a value of the sums of an event.
type ToValue = fn(&Total) -> Value;

/// Points in the order of the table.
struct Points(Vec<Point>);

impl Points {
    fn add(&mut self, family: Family, labels: Vec<Label>, value: Value) {
        self.0.push(Point { family, labels, value });
    }

    fn integer(&mut self, family: Family, value: u64) {
        self.add(family, Vec::new(), Value::Integer(value));
    }

    fn real(&mut self, family: Family, value: f64) {
        self.add(family, Vec::new(), Value::Real(value));
    }
}

/// When counters began at zero.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// Those of the agent.
    pub agent: SystemTime,
    /// Those of the driver.
    pub driver: SystemTime,
}

/// Returns the numbers of this moment. `cpu_time` is the processor time of this process.
pub fn snapshot(
    counting: &Counting,
    config: &Config,
    profiled: &Profiled,
    begun: Begun,
    cpu_time: Option<Duration>,
) -> Snapshot {
    let mut points = Points(Vec::new());
    let info = counting.driver().and_then(|driver| driver.info().ok());
    let version = || counting.driver().map(halprof::Driver::driver_version).unwrap_or_default();
    let identity = info.as_ref().map(|info| ProcessorIdentity::new(&info.vendor, &info.brand, info.signature));
    let build = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("driver", version()),
        ("interface", info.as_ref().map(|info| reason::interface(info.interface)).unwrap_or_default()),
        ("processor", identity.map(|found| found.brand.unwrap_or(found.vendor)).unwrap_or_default()),
    ];
    points.add(Family::BuildInfo, build, Value::Integer(1));
    points.integer(Family::Up, u64::from(counting.is_counting()));
    if let Some(info) = &info {
        points.integer(Family::Cpus, info.processors.into());
    }
    add_events(&mut points, counting);
    add_metrics(&mut points, &counting.metrics);
    for reason in GapReason::ALL {
        let (count, _) = counting.gaps.of(reason);
        points.add(Family::Gaps, vec![("reason", reason.label().to_owned())], Value::Integer(count));
    }
    for reason in GapReason::ALL {
        let (_, time) = counting.gaps.of(reason);
        points.add(Family::GapTime, vec![("reason", reason.label().to_owned())], Value::Real(time.as_secs_f64()));
    }
    points.integer(Family::AgentAccesses, counting.spent.accesses + profiled.accesses);
    points.integer(Family::AgentInterrupts, counting.spent.interrupts + profiled.interrupts);
    points.integer(Family::AccessBudget, config.budget.register_accesses_per_second.into());
    points.integer(Family::InterruptBudget, config.budget.interrupts_per_second.into());
    if let Some(time) = cpu_time {
        points.real(Family::AgentTime, time.as_secs_f64());
    }
    if config.profiles.is_some() {
        points.integer(Family::ProfileSamples, profiled.samples);
        points.integer(Family::ProfileSamplesLost, profiled.lost);
        add_profiles(&mut points, profiled);
    }
    for (to, failures) in [("otlp", profiled.otlp_failures), ("profiles", profiled.push_failures)] {
        if let Some(failures) = failures {
            points.add(Family::ExportFailures, vec![("to", to.to_owned())], Value::Integer(failures));
        }
    }
    if let Some(info) = &info {
        points.integer(Family::DriverInterrupts, info.interrupts);
        points.integer(Family::DriverSpurious, info.spurious);
        points.integer(Family::DriverThrottles, info.throttles);
        points.integer(Family::DriverSamples, info.delivered);
        points.integer(Family::DriverSamplesLost, info.lost.saturating_add(info.throttled));
        points.integer(Family::DriverSleeps, info.sleeps);
    }
    Snapshot { time: SystemTime::now(), begun: begun.agent, driver_begun: begun.driver, points: points.0 }
}

/// Adds the sums of each event, in the order of the table.
fn add_events(points: &mut Points, counting: &Counting) {
    let Some((requested, names)) = counting.requested() else { return };
    let labels = |key: &Key| {
        let request = requested.get(usize::try_from(key.event).ok()?)?;
        let name = names.get(key.event, key.core_type);
        let mut labels = vec![("event", format!("{name}{}", event::suffix(request.modes)))];
        if key.core_type != 0 {
            labels.push(("core_type", core_types::name(key.core_type)));
        }
        labels.extend(key.processor.map(|processor| ("cpu", processor.to_string())));
        Some(labels)
    };
    // An event of several groups is counted several times, and published once.
    let mut seen = BTreeSet::new();
    let sums: Vec<(Vec<Label>, &Total)> = counting
        .totals
        .iter()
        .filter_map(|(key, total)| Some((labels(key)?, total)))
        .filter(|(labels, _)| seen.insert(labels.clone()))
        .collect();
    let families: [(Family, ToValue); 4] = [
        (Family::Events, |total| Value::Integer(total.count)),
        (Family::EventsScaled, |total| Value::Real(total.scaled)),
        (Family::EventEnabled, |total| Value::Real(real(total.times.enabled) / SECOND)),
        (Family::EventRunning, |total| Value::Real(real(total.times.running) / SECOND)),
    ];
    for (family, value) in families {
        for (labels, total) in &sums {
            points.add(family, labels.clone(), value(total));
        }
    }
    let mut seen = BTreeSet::new();
    for count in &counting.counts {
        let label = format!("{}{}", count.source, event::suffix(count.mode_bits));
        if seen.insert(label.clone()) {
            let is_disturbed = u64::from(count.disturbed || count.missed.is_some());
            points.add(Family::EventDisturbed, vec![("event", label)], Value::Integer(is_disturbed));
        }
    }
}

fn add_profiles(points: &mut Points, profiled: &Profiled) {
    let Statistics { written, expired, sent, dropped, failed, waiting, waiting_size, .. } = profiled.statistics;
    let outcomes = [
        ("written", written),
        ("sent", sent),
        ("expired", expired),
        ("dropped", dropped),
        ("failed", failed),
        ("skipped", profiled.skipped),
    ];
    for (outcome, number) in outcomes {
        points.add(Family::Profiles, vec![("outcome", outcome.to_owned())], Value::Integer(number));
    }
    points.integer(Family::ProfilesWaiting, waiting);
    points.integer(Family::ProfilesWaitingSize, waiting_size);
}

fn add_metrics(points: &mut Points, metrics: &[MetricValue]) {
    for metric in metrics {
        let Some(value) = metric.value else { continue };
        let mut labels = vec![("metric", metric.name.clone()), ("unit", metric.unit.clone())];
        labels.extend(metric.core_type.clone().map(|core_type| ("core_type", core_type)));
        points.add(Family::Metric, labels, Value::Real(value));
    }
}
