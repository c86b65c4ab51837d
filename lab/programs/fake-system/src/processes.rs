//! The processes of a fake system.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use super::shared::Shared;
use system::processes::nt_modules;

use crate::payloads::hidden_modules;
use system::{LoadedModule, OpenTask, ProcessChange, ProcessSource, RunningProcess, StartedProcesses, Task};
use user_error::win32;

/// ID of a process that cannot be opened.
pub const PROTECTED: u32 = 88;

/// A process or thread, which runs until it is removed from the list.
struct OpenFake {
    id: u32,
    processes: Arc<Shared<Vec<(u32, String)>>>,
}

impl OpenTask for OpenFake {
    fn has_ended(&self) -> bool {
        !self.processes.borrow().iter().any(|(id, _)| *id == self.id)
    }
}

/// What a fake system shares with the thread that queries processes.
pub struct FakeProcesses {
    /// ID and name of each.
    pub processes: Arc<Shared<Vec<(u32, String)>>>,
    /// The modules of those that can be opened.
    pub modules: Arc<Shared<BTreeMap<u32, Vec<LoadedModule>>>>,
    /// The modules of the kernel.
    pub kernel: Arc<Shared<Vec<LoadedModule>>>,
    /// Whether the token lacks SeDebugPrivilege.
    pub is_kernel_hidden: bool,
}

impl ProcessSource for FakeProcesses {
    fn processes(&self) -> io::Result<Vec<RunningProcess>> {
        let running = |(id, name): &(u32, String)| {
            let name = name.clone();
            RunningProcess { id: *id, name, created: 0, created_on_clock: None }
        };
        Ok(self.processes.borrow().iter().map(running).collect())
    }

    fn modules(&self, process: u32) -> io::Result<Vec<LoadedModule>> {
        let denied = || io::Error::from_raw_os_error(win32::ERROR_ACCESS_DENIED);
        self.modules.borrow().get(&process).cloned().ok_or_else(denied)
    }

    /// A thread has the ID of its process here.
    fn open(&self, task: Task) -> io::Result<Box<dyn OpenTask>> {
        let (Task::Process(id) | Task::Thread(id)) = task;
        let opened = OpenFake { id, processes: Arc::clone(&self.processes) };
        match id {
            PROTECTED => Err(io::Error::from_raw_os_error(win32::ERROR_ACCESS_DENIED)),
            _ if opened.has_ended() => Err(io::Error::from_raw_os_error(win32::ERROR_INVALID_PARAMETER)),
            _ => Ok(Box::new(opened)),
        }
    }

    /// Those of a token without SeDebugPrivilege are parsed from what Windows 11 24H2 answers.
    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>> {
        if self.is_kernel_hidden {
            return nt_modules::parse(&hidden_modules(), "C:\\Windows");
        }
        Ok(self.kernel.borrow().clone())
    }
}

/// The starts and ends of the processes of a command, as the test sets them.
#[derive(Debug, Clone, Default)]
pub struct FakeStarts(Arc<Shared<FakeChanges>>);

#[derive(Debug, Default)]
struct FakeChanges {
    /// ID, and whether it is a start.
    left: VecDeque<(u32, bool)>,
    starts: u64,
}

impl FakeStarts {
    /// Adds starts (`true`) and ends of processes.
    pub fn add(&self, changes: &[(u32, bool)]) {
        let mut all = self.0.borrow_mut();
        all.left.extend(changes);
        all.starts += changes.iter().filter(|(_, is_start)| *is_start).count() as u64;
    }

    /// Adds starts that Windows does not tell of.
    pub fn lose(&self, starts: u64) {
        self.0.borrow_mut().starts += starts;
    }
}

impl StartedProcesses for FakeStarts {
    fn next_change(&mut self) -> io::Result<Option<ProcessChange>> {
        let change =
            |(id, is_start)| if is_start { ProcessChange::Started(id, None) } else { ProcessChange::Ended(id) };
        Ok(self.0.borrow_mut().left.pop_front().map(change))
    }

    fn total(&self) -> io::Result<u64> {
        Ok(self.0.borrow().starts)
    }
}
