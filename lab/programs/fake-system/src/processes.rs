//! The processes of a fake system.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::shared::Shared;
use system::processes::nt_modules;

use crate::payloads::hidden_modules;
use system::{LoadedModule, OpenTask, ProcessSource, RunningProcess, Task};
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
