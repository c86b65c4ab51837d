//! The measurement.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;

use criterion::measurement::{Measurement, ValueFormatter};
use halprof::{Availability, Builder, Error, Grade, ThreadGroup};

use crate::current;
use crate::formatter::EventFormatter;
use crate::regions::{Region, Regions};
use crate::report::Report;

/// What criterion gets for each iteration of a sample without events. It takes 0 for an error and drops the benchmark
/// (0.8.2, `analysis/mod.rs`). Far below a single event in any number of iterations; its powers are normal numbers.
pub const NOTHING: f64 = 1e-30;

/// Counts one event of the current thread, in user mode.
///
/// It belongs to the thread that opened it, as criterion's benchmarks do.
pub struct Events {
    inner: Rc<Inner>,
    formatter: EventFormatter,
}

/// What [`Events`] and the bencher share.
pub struct Inner {
    regions: RefCell<Box<dyn Regions>>,
    report: RefCell<Report>,
    strict: Cell<bool>,
    /// Number of iterations of the last sample, 1 if criterion does not tell it.
    iterations: Cell<u64>,
}

impl Events {
    /// Opens the driver, and counts an event by a name that `.\client stat -e` accepts: `instructions`, `cycles`,
    /// `branch-misses`.
    ///
    /// Prints the best grade of its counts on standard error if that is not
    /// [virtualized](halprof::Quality::Virtualized).
    ///
    /// # Errors
    /// If the driver cannot be opened, the machine lacks the event, no counter is free, or the overhead cannot be
    /// measured.
    pub fn open(event: &str) -> Result<Self, Error> {
        Self::over(Builder::new().event(event)?.user().build_for_thread()?)
    }

    /// Counts the first event of a group.
    ///
    /// # Errors
    /// If the overhead cannot be measured.
    pub fn over(mut group: ThreadGroup) -> Result<Self, Error> {
        group.calibrate()?;
        let event = group.events().next().unwrap_or_default().to_owned();
        announce(group.availability());
        Ok(Self::of(&event, Box::new(group)))
    }

    pub(crate) fn of(event: &str, regions: Box<dyn Regions>) -> Self {
        let inner = Rc::new(Inner {
            regions: RefCell::new(regions),
            report: RefCell::default(),
            strict: Cell::new(false),
            iterations: Cell::new(1),
        });
        current::set(&inner);
        Self { inner, formatter: EventFormatter::of(event) }
    }

    /// Ends the benchmark with a panic at the first sample whose count is not exact.
    #[must_use]
    pub fn strict(self) -> Self {
        self.inner.strict.set(true);
        self
    }
}

fn announce(availability: &Availability) {
    if availability.grade() != Grade::Virtualized {
        eprintln!("halprof: best quality of the counts: {availability}");
    }
}

impl Inner {
    /// Begins a region.
    pub fn begin(&self) {
        let begun = self.regions.borrow_mut().begin();
        begun.unwrap_or_else(|error| fail("a region cannot begin", &error));
    }

    /// Ends a region.
    pub fn end(&self) -> Region {
        let ended = self.regions.borrow_mut().end();
        ended.unwrap_or_else(|error| fail("a region has no count", &error))
    }

    /// Makes a region a part of a sample, and returns its count.
    pub fn accept(&self, region: &Region) -> u64 {
        let Some(reason) = &region.disturbance else {
            self.report.borrow_mut().exact();
            return region.count;
        };
        if self.strict.get() {
            fail("a count is not exact", reason);
        }
        if let Some(text) = self.report.borrow_mut().disturbed(reason) {
            eprintln!("{text}");
        }
        region.count
    }

    /// Sets the number of iterations of the sample that begins.
    pub fn set_iterations(&self, iterations: u64) {
        self.iterations.set(iterations);
    }

    /// Returns what is printed at the end, if anything.
    pub fn summary(&self) -> Option<String> {
        self.report.borrow().summary()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(text) = self.summary() {
            eprintln!("{text}");
        }
    }
}

/// Ends the benchmark. The trait of criterion cannot return an error, and a made-up count would be worse.
#[expect(clippy::panic, reason = "criterion's trait cannot return an error")]
fn fail(what: &str, why: &dyn Display) -> ! {
    panic!("halprof: {what}: {why}")
}

impl Measurement for Events {
    type Intermediate = ();
    type Value = u64;

    fn start(&self) {
        self.inner.set_iterations(1);
        self.inner.begin();
    }

    fn end(&self, (): ()) -> u64 {
        let region = self.inner.end();
        self.inner.accept(&region)
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one.saturating_add(*other)
    }

    fn zero(&self) -> u64 {
        0
    }

    /// Returns the value of a sample, at once after it was measured. One without events gets the same
    /// value for each iteration, so that two benchmarks without events do not differ.
    #[expect(clippy::cast_precision_loss, reason = "criterion calculates with f64")]
    fn to_f64(&self, value: &u64) -> f64 {
        if *value > 0 {
            return *value as f64;
        }
        self.inner.report.borrow_mut().empty();
        NOTHING * self.inner.iterations.get().max(1) as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.formatter
    }
}
