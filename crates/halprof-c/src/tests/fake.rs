//! A group whose regions are known in advance.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use crate::failure::Failure;
use crate::group::{Grade, Group, Region};
use crate::open_groups;
use crate::outcome::GroupHandle;

/// What the test and the group share.
#[derive(Default)]
pub struct Script {
    /// The next results of `end`. An empty one panics.
    pub ends: RefCell<VecDeque<Result<Region, Failure>>>,
    /// What happened, in order.
    pub log: RefCell<Vec<&'static str>>,
    /// The result of regions behind the last of `ends`.
    pub always: RefCell<Option<Region>>,
    /// The next `begin` or `checkpoint` fails.
    pub refuse: RefCell<Option<Failure>>,
}

struct FakeGroup(Rc<Script>);

impl Group for FakeGroup {
    fn events(&self) -> Vec<String> {
        vec!["instructions".into(), "cycles".into()]
    }

    fn availability(&self) -> (Grade, String) {
        (Grade::Undisturbed, "Windows has no thread profiling".into())
    }

    fn calibrate(&mut self) -> Result<bool, Failure> {
        self.0.log.borrow_mut().push("calibrate");
        Ok(true)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.0.log.borrow_mut().push("begin");
        self.0.refuse.take().map_or(Ok(()), Err)
    }

    fn checkpoint(&mut self) -> Result<(), Failure> {
        self.0.log.borrow_mut().push("checkpoint");
        self.0.refuse.take().map_or(Ok(()), Err)
    }

    fn end(&mut self) -> Result<Region, Failure> {
        self.0.log.borrow_mut().push("end");
        let next = self.0.ends.borrow_mut().pop_front();
        next.unwrap_or_else(|| Ok(self.0.always.borrow().clone().expect("a region")))
    }
}

impl Drop for FakeGroup {
    fn drop(&mut self) {
        self.0.log.borrow_mut().push("close");
    }
}

/// Opens a group of a script for this thread.
pub fn open(script: &Rc<Script>) -> GroupHandle {
    open_groups::insert(Box::new(FakeGroup(Rc::clone(script)))).unwrap()
}

/// A region with these counts.
pub fn region(counts: [u64; 2], grade: Grade, reason: &str) -> Region {
    Region {
        counts: counts.into(),
        grade,
        reason: reason.into(),
        enabled: Duration::from_nanos(70),
        running: Duration::from_nanos(60),
    }
}
