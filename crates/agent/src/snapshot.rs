//! The numbers of a moment, and how the threads that publish them get the latest.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::family::Family;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number of something.
    Integer(u64),
    /// Any number.
    Real(f64),
}

/// A label: its name, which is one of [`Family::labels`], and its value.
pub type Label = (&'static str, String);

/// A value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The metric.
    pub family: Family,
    /// Its labels, in the order of [`Family::labels`]. Labels without a meaning on this machine are left out.
    pub labels: Vec<Label>,
    /// The value.
    pub value: Value,
}

/// The numbers of a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// When they were read.
    pub time: SystemTime,
    /// When the agent began.
    pub begun: SystemTime,
    /// When the counters began at zero that [begin with the driver](Family::begins_with_driver).
    pub driver_begun: SystemTime,
    /// Every value, each family and set of labels once, in the order of [`Family::ALL`].
    pub points: Vec<Point>,
}

impl Snapshot {
    /// Returns when the counters of a metric began at zero.
    #[must_use]
    pub const fn begun_of(&self, family: Family) -> SystemTime {
        if family.begins_with_driver() { self.driver_begun } else { self.begun }
    }
}

/// The latest snapshot, shared by threads.
#[derive(Debug, Clone, Default)]
pub struct Latest(Arc<Mutex<Option<Arc<Snapshot>>>>);

impl Latest {
    /// Replaces the snapshot.
    pub fn set(&self, snapshot: Snapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
    }

    /// Returns the snapshot; `None` before the first.
    #[must_use]
    pub fn get(&self) -> Option<Arc<Snapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
