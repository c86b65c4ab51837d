//! The processes and threads that are recorded, if not all are.

use std::io;

use recording::RecordedTasks;
use thiserror::Error as ThisError;

use system::{OpenTask, ProcessSource, Task};
use user_error::exit::Exit;
use user_error::{UserError, win32};

/// What is recorded of all that runs on the processors.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// All of it.
    All,
    /// These processes and threads. The recording ends with them.
    Tasks(&'a Tasks),
    /// The command and the processes that it starts.
    Command,
}

/// Processes and threads that were chosen.
pub struct Tasks {
    /// Their IDs.
    pub recorded: RecordedTasks,
    /// Keeps the IDs from others.
    open: Vec<Box<dyn OpenTask>>,
}

/// Why a process or a thread cannot be recorded.
#[derive(Debug, ThisError)]
pub enum TaskError {
    /// There is none.
    #[error("no {what} has the ID {id}")]
    None {
        /// `process` or `thread`.
        what: &'static str,
        /// The ID.
        id: u32,
    },
    /// No process has the name.
    #[error("no running process has the name {name}")]
    NoName {
        /// The name, as the user wrote it.
        name: String,
    },
    /// Windows does not open it.
    #[error("the {what} {id} cannot be opened")]
    Closed {
        /// `process` or `thread`.
        what: &'static str,
        /// The ID.
        id: u32,
        /// Its error.
        #[source]
        cause: io::Error,
    },
    /// Windows does not tell what the command starts.
    #[error("Windows does not tell the processes that the command starts")]
    Command {
        /// Its error.
        #[source]
        cause: io::Error,
    },
    /// Windows does not tell the processes.
    #[error("Windows does not tell the running processes")]
    Processes {
        /// Its error.
        #[source]
        cause: io::Error,
    },
}

impl UserError for TaskError {
    fn exit(&self) -> Exit {
        match self {
            Self::None { .. } | Self::NoName { .. } => Exit::NotRunning,
            Self::Closed { .. } => Exit::Denied,
            Self::Command { .. } | Self::Processes { .. } => Exit::Failure,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::None { what: "thread", .. } => Some("-p with its process".to_owned()),
            Self::None { .. } | Self::NoName { .. } => Some("tasklist   (lists processes)".to_owned()),
            Self::Closed { .. } => Some("run from an elevated prompt".to_owned()),
            Self::Command { .. } => Some("-a, which records all processes".to_owned()),
            Self::Processes { .. } => None,
        }
    }
}

impl Tasks {
    /// Opens processes and threads.
    ///
    /// # Errors
    /// If one of them does not run, or Windows does not open it.
    pub fn open(recorded: RecordedTasks, source: &dyn ProcessSource) -> Result<Self, TaskError> {
        let open_one = |what, id, task| match source.open(task) {
            // The ID of one that has ended is not free while a program has a handle to it.
            Ok(open) if open.has_ended() => Err(TaskError::None { what, id }),
            Err(cause) if cause.raw_os_error() == Some(win32::ERROR_INVALID_PARAMETER) => {
                Err(TaskError::None { what, id })
            }
            opened => opened.map_err(|cause| TaskError::Closed { what, id, cause }),
        };
        let processes = recorded.processes.iter().map(|id| open_one("process", *id, Task::Process(*id)));
        let threads = recorded.threads.iter().map(|id| open_one("thread", *id, Task::Thread(*id)));
        let open = processes.chain(threads).collect::<Result<_, _>>()?;
        Ok(Self { recorded, open })
    }

    /// Returns them.
    #[must_use]
    pub fn list(&self) -> Vec<Task> {
        let processes = self.recorded.processes.iter().map(|id| Task::Process(*id));
        processes.chain(self.recorded.threads.iter().map(|id| Task::Thread(*id))).collect()
    }

    /// Returns whether all of them have ended.
    #[must_use]
    pub fn have_ended(&self) -> bool {
        self.open.iter().all(|one| one.has_ended())
    }
}
