//! The measurement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use criterion::measurement::{Measurement, ValueFormatter};
use halprof::{Availability, Builder, Error, Grade, ThreadGroup};

use crate::current;
use crate::formatter::EventFormatter;
use crate::regions::Regions;
use crate::report::NOTHING;
use crate::shared::Inner;

/// Counts one event of the current thread, in user mode.
///
/// It belongs to the thread that opened it, as criterion's benchmarks do.
pub struct Events {
    inner: Rc<Inner>,
    formatter: EventFormatter,
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
