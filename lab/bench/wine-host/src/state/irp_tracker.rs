//! The state of requests, by the address of their IRPs: whether the dispatch routine returned STATUS_PENDING, and
//! whether the IRP was marked pending. Windows requires both or neither.

use std::collections::HashMap;

/// The first of the two events of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    /// The dispatch routine has returned.
    Returned {
        pending: bool,
    },
    /// The request is complete.
    Completed {
        marked: bool,
    },
}

/// The requests of drivers until both their dispatch routine has returned and they are complete.
#[derive(Debug, Default)]
pub struct IrpTracker {
    known: HashMap<usize, (usize, Progress)>,
}

impl IrpTracker {
    /// Records that a dispatch routine is about to be called for a request.
    pub fn begin(&mut self, request: usize, routine: usize) {
        self.known.insert(request, (routine, Progress::Nothing));
    }

    /// Records that the dispatch routine has returned. Returns the violation, if there is one.
    pub fn returned(&mut self, request: usize, pending: bool) -> Option<&'static str> {
        match self.known.get_mut(&request)? {
            (_, Progress::Completed { marked }) => {
                let marked = *marked;
                self.known.remove(&request);
                wrong(pending, marked)
            }
            (_, known) => {
                *known = Progress::Returned { pending };
                (!pending).then_some("was neither completed nor reported as pending")
            }
        }
    }

    /// Records that the request is complete. Returns the violation, if there is one.
    pub fn completed(&mut self, request: usize, marked: bool) -> Option<&'static str> {
        match self.known.get_mut(&request)? {
            (_, Progress::Returned { pending }) => {
                let pending = *pending;
                self.known.remove(&request);
                wrong(pending, marked)
            }
            (_, known) => {
                *known = Progress::Completed { marked };
                None
            }
        }
    }

    /// Returns whether a driver holds the request: it received it and has not completed it.
    #[must_use]
    pub fn holds(&self, request: usize) -> bool {
        self.known.get(&request).is_some_and(|(_, known)| !matches!(known, Progress::Completed { .. }))
    }

    /// Returns the number of pending requests: their dispatch routine returned STATUS_PENDING, and they are not
    /// complete.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.known.values().filter(|(_, known)| *known == Progress::Returned { pending: true }).count()
    }

    /// Returns whether a dispatch routine of a driver has not returned yet.
    pub fn is_in_dispatch(&self, is_its: impl Fn(usize) -> bool) -> bool {
        let returned = |known: Progress| matches!(known, Progress::Returned { .. });
        self.known.values().any(|(routine, known)| is_its(*routine) && !returned(*known))
    }

    /// Removes the requests of a driver. Returns how many were not complete.
    pub fn forget(&mut self, is_its: impl Fn(usize) -> bool) -> usize {
        let before = self.known.len();
        self.known.retain(|_, (routine, _)| !is_its(*routine));
        before - self.known.len()
    }
}

const fn wrong(pending: bool, marked: bool) -> Option<&'static str> {
    match (pending, marked) {
        (true, false) => Some("was reported as pending and not marked pending"),
        (false, true) => Some("was marked pending and not reported as pending"),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pending_mark_must_match_the_status() {
        for (pending, marked) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut tracker = IrpTracker::default();
            tracker.begin(8, 0);
            assert_eq!(tracker.completed(8, marked), None);
            assert_eq!(tracker.returned(8, pending).is_some(), pending != marked, "{pending} {marked}");
            assert_eq!(tracker.forget(|_| true), 0);
        }
    }

    #[test]
    fn the_order_of_completion_and_return_does_not_matter() {
        for marked in [false, true] {
            let mut tracker = IrpTracker::default();
            tracker.begin(8, 0);
            assert_eq!(tracker.returned(8, true), None);
            assert_eq!(tracker.completed(8, marked).is_some(), !marked);
            assert_eq!(tracker.forget(|_| true), 0);
        }
    }

    #[test]
    fn a_request_that_is_neither_complete_nor_pending_is_reported() {
        let mut tracker = IrpTracker::default();
        tracker.begin(8, 0);
        assert!(tracker.returned(8, false).is_some());
    }

    #[test]
    fn a_driver_is_in_dispatch_until_its_routine_returns() {
        for completed_first in [false, true] {
            let mut tracker = IrpTracker::default();
            tracker.begin(8, 100);
            assert!(tracker.is_in_dispatch(|routine| routine == 100));
            assert!(!tracker.is_in_dispatch(|routine| routine == 200));
            if completed_first {
                assert_eq!(tracker.completed(8, true), None);
                assert!(tracker.is_in_dispatch(|_| true));
            }
            assert_eq!(tracker.returned(8, true), None);
            assert!(!tracker.is_in_dispatch(|_| true));
        }
    }

    #[test]
    fn a_driver_holds_a_request_until_it_completes_it() {
        let mut tracker = IrpTracker::default();
        assert!(!tracker.holds(8), "the request was never dispatched");
        for completed_first in [false, true] {
            tracker.begin(8, 100);
            assert!(tracker.holds(8) && tracker.waiting() == 0);
            if completed_first {
                assert_eq!(tracker.completed(8, true), None);
                assert!(!tracker.holds(8), "completed inside the dispatch routine");
            }
            assert_eq!(tracker.returned(8, true), None);
            assert_eq!((tracker.holds(8), tracker.waiting()), (!completed_first, usize::from(!completed_first)));
            if !completed_first {
                assert_eq!(tracker.completed(8, true), None);
            }
            assert_eq!((tracker.holds(8), tracker.waiting()), (false, 0));
        }
    }

    #[test]
    fn forgetting_counts_the_requests_of_one_driver() {
        let mut tracker = IrpTracker::default();
        for (request, routine) in [(8, 100), (16, 100), (24, 200)] {
            tracker.begin(request, routine);
            assert_eq!(tracker.returned(request, true), None);
        }
        assert_eq!(tracker.completed(16, true), None);
        assert_eq!(tracker.forget(|routine| routine == 100), 1);
        assert_eq!(tracker.forget(|routine| routine == 200), 1);
    }

    #[test]
    fn an_undispatched_request_is_ignored() {
        let mut tracker = IrpTracker::default();
        assert_eq!(tracker.completed(8, true), None);
        assert_eq!(tracker.returned(8, true), None);
    }
}
