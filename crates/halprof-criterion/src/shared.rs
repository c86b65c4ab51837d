//! What a measurement and its bencher share: the regions, and what became of them.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use crate::regions::{Region, Regions};
use crate::report::Report;

/// What [`Events`](crate::Events) and the bencher share.
pub struct Inner {
    pub(crate) regions: RefCell<Box<dyn Regions>>,
    pub(crate) report: RefCell<Report>,
    pub(crate) strict: Cell<bool>,
    /// Number of iterations of the last sample, 1 if criterion does not tell it.
    pub(crate) iterations: Cell<u64>,
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
