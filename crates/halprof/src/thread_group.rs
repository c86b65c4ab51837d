//! Counters of the current thread.

mod build;
mod region;

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::availability::Availability;
use crate::counts::Counts;
use crate::error::Error;
use crate::group_error::GroupError;
use crate::guards::{Pinned, Profiling, SessionGuard};
use crate::overhead::Overhead;
use crate::quality::Grade;
use crate::system::System;
use crate::truncation::Modulus;
use region::{Base, Part};

pub(crate) use build::Options;

/// Number of empty regions that a calibration measures.
const CALIBRATION_REGIONS: usize = 64;

/// Number of attempts to get them, because some may be disturbed.
const CALIBRATION_ATTEMPTS: usize = 4 * CALIBRATION_REGIONS;

/// Counters of the current thread, from [`Builder::build_for_thread`](crate::Builder::build_for_thread).
///
/// The group belongs to the thread that built it and cannot be sent to another. When it is dropped, the counters are
/// free again, and the thread is neither profiled nor pinned any more.
///
/// ```no_run
/// let mut group = halprof::Builder::new().event("instructions")?.event("cycles")?.build_for_thread()?;
/// group.calibrate()?;
/// let counts = group.measure(|| (0..1_000_u64).sum::<u64>())?;
/// println!("{:?} instructions, {}", counts.get("instructions"), counts.quality);
/// # Ok::<(), halprof::Error>(())
/// ```
pub struct ThreadGroup {
    // Dropped in this order: Windows keeps the driver's configuration while a thread is profiled.
    profiling: Option<Profiling>,
    session: SessionGuard,
    #[expect(dead_code, reason = "held until it is dropped")]
    pinned: Option<Pinned>,
    system: Rc<dyn System>,
    names: Arc<[String]>,
    events: Vec<ThreadEvent>,
    availability: Availability,
    /// Bits of a counter.
    width: u32,
    /// The CPU of a counter that does not count under the hypervisor.
    does_not_count: Option<u32>,
    modulus: Modulus,
    base_age: Duration,
    base: Option<Base>,
    region: Option<Region>,
    overhead: Option<Overhead>,
}

/// An event of the group.
struct ThreadEvent {
    /// Where it is counted: once, or on a hybrid once for each core type.
    slots: Vec<Slot>,
    counts_kernel: bool,
}

/// A counter, and the events of the request that it counts.
struct Slot {
    /// Position in the configuration of Windows.
    counter: usize,
    /// Indexes in the request that started the session.
    requests: Vec<usize>,
}

/// A region that has begun.
struct Region {
    /// The counts until the last checkpoint.
    until_now: Option<Counts>,
    /// The part since then.
    part: Part,
}

impl ThreadGroup {
    /// Returns the counts of `work`. Its result is kept alive until the counters are read, and then dropped.
    ///
    /// If `work` panics, the region ends without counts, and the group can be used again.
    ///
    /// # Errors
    /// If a region has begun already, or Windows or the driver cannot read the counters. That a count is not exact is
    /// no error but its [`quality`](Counts::quality).
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> Result<Counts, Error> {
        self.begin()?;
        let cancel = CancelRegion(self);
        let result = black_box(work());
        let counts = cancel.0.end();
        drop(cancel);
        drop(result);
        counts
    }

    /// Begins a region.
    ///
    /// # Errors
    /// If a region has begun already, or Windows or the driver cannot read the counters. Then none has begun.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.region.is_some() {
            return Err(GroupError::AlreadyBegun.into());
        }
        let part = self.begin_part()?;
        self.region = Some(Region { until_now: None, part });
        Ok(())
    }

    /// Ends the region and returns its counts.
    ///
    /// # Errors
    /// If no region has begun, or Windows or the driver cannot read the counters. In the latter case the region goes
    /// on, and can be ended by another call.
    pub fn end(&mut self) -> Result<Counts, Error> {
        let region = self.region.as_ref().ok_or(GroupError::NotBegun)?;
        let last = self.end_part(&region.part)?;
        let Some(mut until_now) = self.region.take().and_then(|region| region.until_now) else { return Ok(last) };
        until_now.append(last);
        Ok(until_now)
    }

    /// Ends one part of the region and begins the next. The counts of the parts are added at the end; what happens
    /// between two parts does not count.
    ///
    /// Parts make long regions exact: Windows may keep only 32 bits of what a counter counts between two context
    /// switches, and a short part cannot have more events than that. A part of 50 ms is usually short enough. On a
    /// machine where `.\client selftest` has shown that Windows keeps more, no region needs it.
    ///
    /// # Errors
    /// If no region has begun, or Windows or the driver cannot read the counters. In the latter case the part goes on.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        let region = self.region.as_ref().ok_or(GroupError::NotBegun)?;
        let counts = self.end_part(&region.part)?;
        let part = self.begin_part()?;
        if let Some(region) = &mut self.region {
            match &mut region.until_now {
                Some(until_now) => until_now.append(counts),
                until_now @ None => *until_now = Some(counts),
            }
            region.part = part;
        }
        Ok(())
    }

    /// Ends the region, if one has begun, without counts.
    pub fn cancel(&mut self) {
        self.region = None;
    }

    /// Measures the overhead of a region, and subtracts it from later counts.
    ///
    /// # Errors
    /// If a region has begun already, the counters cannot be read, or no empty region has exact counts although the
    /// [availability](Self::availability) promises them. The overhead is then as it was.
    pub fn calibrate(&mut self) -> Result<&Overhead, Error> {
        let mut regions = Vec::with_capacity(CALIBRATION_REGIONS);
        let before = self.overhead.take();
        let outcome = self.measure_empty_regions(&mut regions);
        let overhead = outcome
            .and_then(|()| Overhead::of(&self.names, &regions).ok_or_else(|| GroupError::CannotCalibrate.into()));
        match overhead {
            Ok(overhead) => Ok(self.overhead.insert(overhead)),
            Err(error) => {
                self.overhead = before;
                Err(error)
            }
        }
    }

    fn measure_empty_regions(&mut self, regions: &mut Vec<Vec<u64>>) -> Result<(), Error> {
        let promises_exact = self.availability.grade() != Grade::Disturbed;
        for _ in 0..CALIBRATION_ATTEMPTS {
            let counts = self.measure(|| ())?;
            if counts.quality.is_exact() || !promises_exact {
                regions.push(counts.values);
            }
            if regions.len() == CALIBRATION_REGIONS {
                break;
            }
        }
        Ok(())
    }

    /// Returns the overhead of a region; `None` before [calibration](Self::calibrate).
    #[must_use]
    pub fn overhead(&self) -> Option<&Overhead> {
        self.overhead.as_ref()
    }

    /// Returns the best grade of the group's counts, and why they have no better one.
    #[must_use]
    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Returns the events as the builder got them.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// Ends the region of a group when the closure that it measures panics.
struct CancelRegion<'a>(&'a mut ThreadGroup);

impl Drop for CancelRegion<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
