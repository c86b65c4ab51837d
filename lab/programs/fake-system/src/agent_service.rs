//! The service of the agent.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use system::AgentService;

/// The service, if it exists.
#[derive(Debug, Default)]
pub struct FakeAgent(RefCell<Option<AgentService>>);

impl FakeAgent {
    /// Creates the service, or changes it.
    pub fn register(&self, program: &Path, arguments: Vec<OsString>) {
        let words: Vec<OsString> = [program.as_os_str().to_owned()].into_iter().chain(arguments).collect();
        let runs = self.state().is_some_and(|state| state.runs);
        self.0.replace(Some(AgentService { command: words.join(OsStr::new(" ")), runs }));
    }

    /// Sets its command line.
    pub fn set_command(&self, command: &OsStr) {
        if let Some(service) = &mut *self.0.borrow_mut() {
            command.clone_into(&mut service.command);
        }
    }

    /// Starts the service.
    pub fn start(&self) {
        if let Some(service) = &mut *self.0.borrow_mut() {
            service.runs = true;
        }
    }

    /// Stops the service, unless it is `busy`. Returns whether it ran.
    pub fn stop(&self, busy: bool) -> bool {
        self.0.borrow_mut().as_mut().is_some_and(|service| {
            let ran = service.runs;
            service.runs &= busy;
            ran
        })
    }

    /// Deletes the service. Returns whether it existed.
    pub fn delete(&self) -> bool {
        self.0.take().is_some()
    }

    /// Returns the service.
    pub fn state(&self) -> Option<AgentService> {
        self.0.borrow().clone()
    }
}
