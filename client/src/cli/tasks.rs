//! The options that choose processes and threads to record.

use clap::Args;
use recording::RecordedTasks;
use report::NamePattern;

use crate::cli::number;
use crate::cli::selection::ProcessName;
use recorder::tasks::{TaskError, Tasks};
use system::System;
use terminal::context::Context;
use user_error::Error;

/// The processes and threads that are counted or recorded.
#[derive(Debug, Clone, Default, Args)]
pub struct TaskArgs {
    /// Only these processes, or all that have a name now; end when they have ended
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,...", value_delimiter = ',')]
    processes: Vec<ProcessName>,
    /// Only these threads; end when they have ended
    #[arg(short = 't', long = "tid", value_name = "TID,...", value_delimiter = ',', value_parser = number::parse)]
    threads: Vec<u32>,
}

impl TaskArgs {
    /// Opens them as [`open`](Self::open) does, beside an option that stands for everything, and which they override.
    pub fn open_beside(&self, all: bool, context: &mut Context) -> Result<Option<Tasks>, Error> {
        let tasks = self.open(context.system()?)?;
        if tasks.is_some() && all {
            context.warn("note: -p and -t choose processes and threads, and -a does not")?;
        }
        Ok(tasks)
    }

    /// Opens the processes and threads; `None` if all are recorded.
    pub fn open(&self, system: &dyn System) -> Result<Option<Tasks>, TaskError> {
        if self.processes.is_empty() && self.threads.is_empty() {
            return Ok(None);
        }
        let source = system.process_source();
        let mut processes = Vec::new();
        for wanted in &self.processes {
            match wanted {
                ProcessName::Number(id) => processes.push(*id),
                ProcessName::Name(name) => {
                    let running = source.processes().map_err(|cause| TaskError::Processes { cause })?;
                    let pattern = NamePattern::new(name.as_str());
                    let before = processes.len();
                    processes.extend(running.iter().filter(|one| pattern.matches_file(&one.name)).map(|one| one.id));
                    if processes.len() == before {
                        return Err(TaskError::NoName { name: name.clone() });
                    }
                }
            }
        }
        let unique = |mut ids: Vec<u32>| {
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        };
        let recorded =
            RecordedTasks { processes: unique(processes), threads: unique(self.threads.clone()), with_children: false };
        Tasks::open(recorded, &*source).map(Some)
    }
}
