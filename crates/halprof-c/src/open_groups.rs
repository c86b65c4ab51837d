//! The open groups: which handle stands for which group, and which thread owns it.
//!
//! A group stays in the thread that opened it. A handle is found without a lock in its own thread; the list of all
//! handles is only locked to open, to close, and to tell a closed handle from one of another thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::failure::{Failure, c_string};
use crate::group::{Grade, Group, Region};
use crate::outcome::{GroupHandle, HALPROF_BAD_HANDLE, HALPROF_BAD_ORDER, HALPROF_DEFECT, HALPROF_WRONG_THREAD};

/// Regions that [`OpenGroup::calibrate`] measures.
const CALIBRATION_REGIONS: usize = 64;

/// Why an end without a begin is refused.
const NOT_COUNTING: &str = "the group does not count: call halprof_begin() first";

/// The next handle. 64 bits do not repeat, so that a closed handle never stands for a later group.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The handles of all threads.
static HANDLES: Mutex<BTreeSet<GroupHandle>> = Mutex::new(BTreeSet::new());

thread_local! {
    static GROUPS: RefCell<Owned> = RefCell::default();
}

/// The groups of one thread. They are closed when it ends.
#[derive(Default)]
struct Owned(BTreeMap<GroupHandle, OpenGroup>);

impl Drop for Owned {
    fn drop(&mut self) {
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in self.0.keys() {
            handles.remove(handle);
        }
    }
}

/// What a call needs of the group next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No region is open.
    Idle,
    /// Between begin and end.
    Counting,
    /// A call panicked.
    Broken,
}

/// A group with the texts that C programs hold pointers to.
pub struct OpenGroup {
    group: Box<dyn Group>,
    phase: Phase,
    names: Vec<CString>,
    limit: CString,
    best: Grade,
    last: Option<Region>,
    reason: CString,
    /// Events of the functions of this ABI in each region, which the library does not know.
    overhead: Vec<u64>,
}

/// Opens a group for the calling thread and returns its handle.
pub fn insert(group: Box<dyn Group>) -> Result<GroupHandle, Failure> {
    let names: Vec<CString> = group.events().iter().map(|name| c_string(name)).collect();
    let (best, limit) = group.availability();
    let opened = OpenGroup {
        overhead: vec![0; names.len()],
        names,
        limit: c_string(&limit),
        best,
        group,
        phase: Phase::Idle,
        last: None,
        reason: CString::default(),
    };
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    in_thread(|owned| owned.0.insert(handle, opened))?;
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner).insert(handle);
    Ok(handle)
}

/// Closes a group.
pub fn remove(handle: GroupHandle) -> Result<(), Failure> {
    let Some(removed) = in_thread(|owned| owned.0.remove(&handle))? else { return Err(not_ours(handle)) };
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    drop(removed);
    Ok(())
}

/// Calls `work` with a group of the calling thread.
pub fn with<T>(handle: GroupHandle, work: impl FnOnce(&mut OpenGroup) -> Result<T, Failure>) -> Result<T, Failure> {
    in_thread(|owned| owned.0.get_mut(&handle).map(work))?.unwrap_or_else(|| Err(not_ours(handle)))
}

fn in_thread<T>(work: impl FnOnce(&mut Owned) -> T) -> Result<T, Failure> {
    let ended = |_| Failure::new(HALPROF_WRONG_THREAD, "this thread is ending and its groups are closed");
    let busy = |_| Failure::defect("a group was used inside a call of this library");
    GROUPS.try_with(|groups| Ok(work(&mut *groups.try_borrow_mut().map_err(busy)?))).map_err(ended)?
}

/// Returns why this thread has no group of this handle.
fn not_ours(handle: GroupHandle) -> Failure {
    if HANDLES.lock().unwrap_or_else(PoisonError::into_inner).contains(&handle) {
        let text = "the group was opened by another thread; only that thread can use it";
        return Failure::new(HALPROF_WRONG_THREAD, text);
    }
    Failure::new(HALPROF_BAD_HANDLE, format!("no open group has the handle {handle}"))
}

impl OpenGroup {
    /// Calls the group, which is in the phase `next` if the call succeeds. If it panics, the group can only be closed.
    fn call<T>(&mut self, next: Phase, work: impl FnOnce(&mut dyn Group) -> Result<T, Failure>) -> Result<T, Failure> {
        let before = mem::replace(&mut self.phase, Phase::Broken);
        let result = work(&mut *self.group);
        self.phase = if result.is_ok() { next } else { before };
        result
    }

    fn expect(&self, phase: Phase, text: &str) -> Result<(), Failure> {
        match self.phase {
            Phase::Broken => {
                Err(Failure::new(HALPROF_DEFECT, "an earlier call failed inside halprof; the group can only be closed"))
            }
            found if found == phase => Ok(()),
            _ => Err(Failure::new(HALPROF_BAD_ORDER, text)),
        }
    }

    /// Begins a region.
    pub fn begin(&mut self) -> Result<(), Failure> {
        self.expect(Phase::Idle, "the group counts already: call halprof_end() before the next halprof_begin()")?;
        self.call(Phase::Counting, |group| group.begin())
    }

    /// Ends a region and keeps its counts.
    pub fn end(&mut self) -> Result<&Region, Failure> {
        self.expect(Phase::Counting, NOT_COUNTING)?;
        self.last = None; // the counts of an earlier region must not pass for those of this one if it fails
        let mut region = self.call(Phase::Idle, |group| group.end())?;
        if region.counts.len() != self.names.len() {
            return Err(Failure::defect("the number of counts differs from the number of events"));
        }
        for (count, overhead) in region.counts.iter_mut().zip(&self.overhead) {
            *count = count.saturating_sub(*overhead);
        }
        self.reason = c_string(&region.reason);
        Ok(self.last.insert(region))
    }

    /// Ends one part of the region and begins the next.
    pub fn checkpoint(&mut self) -> Result<(), Failure> {
        self.expect(Phase::Counting, NOT_COUNTING)?;
        self.call(Phase::Counting, |group| group.checkpoint())
    }

    /// Calibrates the library, then measures what this ABI adds, by empty regions through `begin` and `end`: the
    /// functions of the ABI for this group.
    pub fn calibrate(
        handle: GroupHandle,
        begin: impl Fn() -> Result<(), Failure>,
        end: impl Fn() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let is_counted = with(handle, |open| {
            open.expect(Phase::Idle, "the group counts: call halprof_end() before halprof_calibrate()")?;
            open.overhead.fill(0);
            open.call(Phase::Idle, |group| group.calibrate())
        })?;
        if !is_counted {
            return Ok(());
        }
        let mut least: Option<Vec<u64>> = None;
        for _ in 0..CALIBRATION_REGIONS {
            begin()?;
            end()?;
            let region = with(handle, |open| Ok(open.last.take()))?;
            let Some(region) = region.filter(|region| region.grade != Grade::Disturbed) else { continue };
            match &mut least {
                None => least = Some(region.counts),
                Some(least) => {
                    least.iter_mut().zip(region.counts).for_each(|(least, count)| *least = count.min(*least));
                }
            }
        }
        with(handle, |open| {
            open.reason = CString::default();
            open.overhead = least.unwrap_or_else(|| mem::take(&mut open.overhead));
            Ok(())
        })
    }

    /// Returns the count of an event in the last region.
    pub fn count(&self, index: usize) -> Result<u64, Failure> {
        let none = || Failure::new(HALPROF_BAD_ORDER, "the group has no counts yet: end a region first");
        self.name(index)?;
        self.last.as_ref().and_then(|region| region.counts.get(index).copied()).ok_or_else(none)
    }

    /// Returns the name of an event.
    pub fn name(&self, index: usize) -> Result<&CString, Failure> {
        let number = self.names.len();
        let none = || Failure::argument(format!("no event {index}: the group has {number}, the first is 0"));
        self.names.get(index).ok_or_else(none)
    }

    /// Returns why the last region is disturbed; empty if it is not.
    pub fn reason(&self) -> &CString {
        &self.reason
    }

    /// Returns the best grade, and why no better one.
    pub fn availability(&self) -> (Grade, &CString) {
        (self.best, &self.limit)
    }
}
