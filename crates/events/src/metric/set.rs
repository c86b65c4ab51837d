//! Metrics that can use each other, and values for them.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Alias, Metric, MetricError};
use crate::expression::{Environment, Unavailable};

/// Maximum number of metrics through which a metric uses another. Linux's deepest have 9.
const MAX_DEPTH: usize = 32;

/// Names of the same constant: those of Intel's files, of Linux's, and of older files of either.
const SYNONYMS: [&[&str]; 7] = [
    &["hyperthreading_on", "smt_on", "ht_on"],
    &["threads_per_core", "threads"],
    &["socket_count", "num_packages", "system.socket_count"],
    &["num_cpus", "num_cpus_online"],
    &["system_tsc_freq", "system.tsc_freq"],
    &["durationtimeinmilliseconds", "duration_ms"],
    &["durationtimeinseconds", "duration_time"],
];

/// Values of events and constants by name, in any case of letters.
#[derive(Debug, Clone, Default)]
pub struct Values(HashMap<String, Result<f64, Unavailable>>);

impl Values {
    /// Sets the value of an event or a constant.
    pub fn set(&mut self, name: &str, value: f64) {
        self.0.insert(key(name), Ok(value));
    }

    /// Sets the reason why an event has no value.
    pub fn set_unavailable(&mut self, name: &str, reason: &str) {
        let unavailable = Unavailable::NotCounted { name: name.to_owned(), reason: reason.to_owned() };
        self.0.insert(key(name), Err(unavailable));
    }

    fn find(&self, name: &str) -> Option<&Result<f64, Unavailable>> {
        let key = key(name);
        // TOPDOWN.SLOTS:perf_metrics is TOPDOWN.SLOTS in the group of PERF_METRICS.
        let plain = || key.strip_suffix(":perf_metrics").and_then(|plain| self.0.get(plain));
        let synonyms = SYNONYMS.iter().find(|names| names.contains(&key.as_str()));
        let synonym = || synonyms?.iter().find_map(|name| self.0.get(*name));
        self.0.get(&key).or_else(plain).or_else(synonym)
    }
}

impl Environment for Values {
    fn value(&self, name: &str) -> Result<f64, Unavailable> {
        self.find(name).cloned().unwrap_or_else(|| Err(Unavailable::Missing(name.to_owned())))
    }
}

/// Returns the form of a name in which letters have one case, and constants no `#`.
fn key(name: &str) -> String {
    name.trim_start_matches(['#', '$']).to_ascii_lowercase()
}

/// Metrics that can use each other by name.
#[derive(Debug, Clone)]
pub struct MetricSet {
    metrics: Vec<Metric>,
    by_name: HashMap<(String, String), usize>,
}

impl MetricSet {
    /// Makes a set. Of several metrics of a name for the same cores, others use the first.
    #[must_use]
    pub fn new(metrics: Vec<Metric>) -> Self {
        let mut by_name = HashMap::new();
        for (index, metric) in metrics.iter().enumerate() {
            by_name.entry((metric.cores.clone(), key(&metric.name))).or_insert(index);
        }
        Self { metrics, by_name }
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Returns the metric that a metric uses by this name.
    fn used(&self, user: &Metric, name: &str) -> Option<&Metric> {
        let find = |cores: &str| self.by_name.get(&(cores.to_owned(), key(name)));
        let index = find(&user.cores).or_else(|| find(""))?;
        // A metric can have the name of an event that it uses.
        self.metrics.get(*index).filter(|metric| !std::ptr::eq(*metric, user))
    }

    /// Returns the events that a metric needs, also through others, if these constants are known: see
    /// [`Metric::events`].
    #[must_use]
    pub fn events<'a>(&'a self, metric: &'a Metric, constants: &Values) -> Vec<&'a str> {
        let (mut events, mut seen, mut open) = (Vec::new(), Vec::new(), vec![metric]);
        while let Some(user) = open.pop() {
            for name in user.events(constants) {
                if seen.contains(&name) {
                    continue;
                }
                seen.push(name);
                let is_event = |(_, alias): &(String, Alias)| matches!(alias, Alias::Event(event) if event == name);
                match self.used(user, name).filter(|_| !user.aliases.iter().any(is_event)) {
                    Some(used) => open.push(used),
                    None => events.push(name),
                }
            }
        }
        events
    }

    /// Checks that no metric uses itself through others, nor others too deeply.
    ///
    /// # Errors
    /// Returns the position of the first such metric, and the circle.
    pub fn check(&self) -> Result<(), (usize, MetricError)> {
        let mut depths = HashMap::new();
        for (index, metric) in self.metrics.iter().enumerate() {
            self.depth(metric, &mut Vec::new(), &mut depths).map_err(|cause| (index, MetricError::Recursion(cause)))?;
        }
        Ok(())
    }

    /// Returns the number of metrics on the longest path from a metric through those that it uses.
    fn depth<'a>(
        &'a self,
        metric: &'a Metric,
        path: &mut Vec<&'a str>,
        depths: &mut HashMap<*const Metric, usize>,
    ) -> Result<usize, Unavailable> {
        if let Some(depth) = depths.get(&std::ptr::from_ref(metric)) {
            return Ok(*depth);
        }
        enter(path, &metric.name)?;
        let mut depth = 1;
        for name in metric.inputs() {
            if let Some(used) = self.used(metric, name) {
                depth = depth.max(1 + self.depth(used, path, depths)?);
            }
        }
        path.pop();
        if depth > MAX_DEPTH {
            return Err(Unavailable::Depth(metric.name.clone()));
        }
        depths.insert(metric, depth);
        Ok(depth)
    }

    /// Returns the value of each metric, not scaled. A pure function of the values.
    ///
    /// # Errors
    /// Each metric has its own: a value that is missing, a divisor of 0, or a circle.
    #[must_use]
    pub fn evaluate(&self, values: &Values) -> Vec<Result<f64, Unavailable>> {
        let shared = Shared { set: self, values, path: RefCell::default(), known: RefCell::default() };
        self.metrics.iter().map(|metric| shared.value_of(metric)).collect()
    }
}

/// Adds a metric to the path of those that are being evaluated.
fn enter<'a>(path: &mut Vec<&'a str>, name: &'a str) -> Result<(), Unavailable> {
    if let Some(start) = path.iter().position(|one| *one == name) {
        let circle = path.iter().skip(start).copied().chain([name]);
        return Err(Unavailable::Recursion(circle.map(str::to_owned).collect()));
    }
    if path.len() == MAX_DEPTH {
        return Err(Unavailable::Depth(path.first().copied().unwrap_or_default().to_owned()));
    }
    path.push(name);
    Ok(())
}

/// An evaluation of a set.
struct Shared<'a> {
    set: &'a MetricSet,
    values: &'a Values,
    path: RefCell<Vec<&'a str>>,
    /// Results of metrics that others used.
    known: RefCell<HashMap<*const Metric, Result<f64, Unavailable>>>,
}

impl<'a> Shared<'a> {
    fn value_of(&self, metric: &'a Metric) -> Result<f64, Unavailable> {
        if let Some(known) = self.known.borrow().get(&std::ptr::from_ref(metric)) {
            return known.clone();
        }
        enter(&mut self.path.borrow_mut(), &metric.name)?;
        let value = metric.expression.evaluate(&OfMetric { shared: self, metric });
        self.path.borrow_mut().pop();
        // The result of a metric of a circle depends on where the circle was entered.
        if !value.as_ref().is_err_and(is_circular) {
            self.known.borrow_mut().insert(metric, value.clone());
        }
        value
    }
}

/// Returns whether the reason is a circle, or too many metrics.
fn is_circular(reason: &Unavailable) -> bool {
    match reason {
        Unavailable::Recursion(_) | Unavailable::Depth(_) => true,
        Unavailable::Metric { cause, .. } => is_circular(cause),
        _ => false,
    }
}

/// The names of a metric's expression.
struct OfMetric<'a, 'b> {
    shared: &'b Shared<'a>,
    metric: &'a Metric,
}

impl OfMetric<'_, '_> {
    /// Returns the name of the event that a name stands for.
    fn event<'n>(&'n self, name: &'n str) -> &'n str {
        match self.metric.alias(name) {
            Some(Alias::Event(event)) => event,
            _ => name,
        }
    }
}

impl Environment for OfMetric<'_, '_> {
    fn value(&self, name: &str) -> Result<f64, Unavailable> {
        match self.metric.alias(name) {
            Some(Alias::Event(event)) => return self.shared.values.value(event),
            Some(Alias::Constant(constant)) => return constant.evaluate(self.shared.values),
            None => {}
        }
        let Some(used) = self.shared.set.used(self.metric, name) else { return self.shared.values.value(name) };
        self.shared.value_of(used).map_err(|cause| match cause {
            Unavailable::Recursion(_) | Unavailable::Depth(_) => cause,
            cause => Unavailable::Metric { name: used.name.clone(), cause: Box::new(cause) },
        })
    }

    fn sources(&self, name: &str) -> u32 {
        self.shared.values.sources(self.event(name))
    }
}
