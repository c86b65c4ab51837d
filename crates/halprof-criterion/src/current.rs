//! The measurement that the bencher of this thread uses, which criterion does not show.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use crate::shared::Inner;

thread_local! {
    static CURRENT: RefCell<Vec<Weak<Inner>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a measurement of this thread.
pub fn set(inner: &Rc<Inner>) {
    CURRENT.with_borrow_mut(|current| {
        current.retain(|other| other.strong_count() > 0);
        current.push(Rc::downgrade(inner));
    });
}

/// Returns the only measurement of this thread; `None` if it has none, or several.
pub fn get() -> Option<Rc<Inner>> {
    CURRENT.with_borrow(|current| {
        let mut alive = current.iter().filter_map(Weak::upgrade);
        let first = alive.next()?;
        alive.next().is_none().then_some(first)
    })
}
