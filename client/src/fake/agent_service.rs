//! The service of the agent.

use std::cell::RefCell;
use std::ffi::OsString;

/// The arguments of the service and whether it runs, if it exists.
#[derive(Debug, Default)]
pub struct FakeAgent(RefCell<Option<(Vec<OsString>, bool)>>);

impl FakeAgent {
    /// Creates the service.
    pub fn register(&self, arguments: Vec<OsString>) {
        self.0.replace(Some((arguments, false)));
    }

    /// Starts the service.
    pub fn start(&self) {
        if let Some((_, is_running)) = &mut *self.0.borrow_mut() {
            *is_running = true;
        }
    }

    /// Stops the service, unless it is `busy`. Returns whether it ran.
    pub fn stop(&self, busy: bool) -> bool {
        self.0.borrow_mut().as_mut().is_some_and(|(_, is_running)| std::mem::replace(is_running, *is_running && busy))
    }

    /// Deletes the service. Returns whether it existed.
    pub fn delete(&self) -> bool {
        self.0.take().is_some()
    }

    /// Returns the arguments, and whether the service runs.
    pub fn state(&self) -> Option<(Vec<OsString>, bool)> {
        self.0.borrow().clone()
    }
}
