//! What a trace session tells of processes.
//!
//! A process that ends soon cannot be queried, and its start and its images are in the trace alone. They are kept until
//! the process has samples, which usually arrive before. The time of creation of a process in the recording is that
//! which was known first; the other one differs by milliseconds.

use std::time::Instant;

use protocol::is_kernel_address;
use recording::{KERNEL, Method, Methods};

use super::Processes;
use system::trace::{CodeEvent, StartedProcess, TracedImage, TracedMethod};
use system::{LoadedModule, ProcessSource};

/// Part of a second by which the two times of the creation of a process can differ: the one in the list of processes is
/// converted from system time.
const SLACK: u64 = 10;

/// Number of methods from which on those of processes without samples are written as well.
const MANY_METHODS: usize = 200_000;

/// What the trace session reported about the last process with an ID.
#[derive(Debug)]
pub struct TracedProcess {
    /// Time of its start in units of the clock of samples; `None` if it started before the trace.
    pub created: Option<u64>,
    /// File name of its program; empty if it is unknown.
    pub name: String,
    /// Images that it loaded and that were not reported.
    pub modules: Vec<LoadedModule>,
    /// Functions that .NET compiled in it and that were not reported.
    pub methods: Vec<Method>,
    /// When the session reported the last of it.
    pub told: Instant,
}

impl TracedProcess {
    fn new(now: Instant) -> Self {
        Self { created: None, name: String::new(), modules: Vec::new(), methods: Vec::new(), told: now }
    }

    /// Returns whether it started before the process with a time of creation.
    pub fn is_before(&self, created: Option<u64>, slack: u64) -> bool {
        matches!((self.created, created), (Some(started), Some(known)) if started.saturating_add(slack) < known)
    }

    /// Returns whether it started after the process with a time of creation, or that time is unknown.
    pub fn is_after(&self, created: Option<u64>, slack: u64) -> bool {
        match (self.created, created) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(started), Some(known)) => started > known.saturating_add(slack),
        }
    }
}

impl Processes {
    /// Sets the frequency of the clock of samples.
    pub fn set_clock(&mut self, clock: u64) {
        self.slack = clock / SLACK;
    }

    /// Notes what the trace tells. Schedules a query of the process if it has samples.
    pub fn note(&mut self, event: CodeEvent, source: &dyn ProcessSource, now: Instant) {
        let id = match event {
            CodeEvent::Process(StartedProcess { id, time, name }) => {
                let new = TracedProcess { created: Some(time), name, ..TracedProcess::new(now) };
                if let Some(old) = self.from_trace.insert(id, new) {
                    self.methods_from_trace -= old.methods.len();
                }
                id
            }
            CodeEvent::Image(TracedImage { process, base, size, path, .. }) => {
                let id = if is_kernel_address(base) { KERNEL } else { process };
                let path = source.win32_path(&path);
                self.traced_process(id, now).modules.push(LoadedModule { base, size, path });
                id
            }
            CodeEvent::Method(TracedMethod { process, method }) => {
                self.traced_process(process, now).methods.push(method);
                self.methods_from_trace += 1;
                return; // It is reported without a query.
            }
        };
        if let Some(tracked) = self.tracked.get_mut(&id).filter(|tracked| id != KERNEL && !tracked.is_scheduled) {
            tracked.is_scheduled = true;
            self.scheduled.push_back(id);
        }
    }

    fn traced_process(&mut self, id: u32, now: Instant) -> &mut TracedProcess {
        let process = self.from_trace.entry(id).or_insert_with(|| TracedProcess::new(now));
        process.told = now;
        process
    }

    /// Removes and returns the methods of a process that was reported; if there are too many, those of any process.
    pub fn take_methods(&mut self) -> Option<Methods> {
        let Self { tracked, from_trace, methods_from_trace, .. } = self;
        let too_many = *methods_from_trace > MANY_METHODS;
        from_trace.iter_mut().find_map(|(id, started)| {
            let process = tracked.get(id).filter(|process| process.is_reported);
            if started.methods.is_empty() || process.is_none() && !too_many {
                return None;
            }
            let methods = std::mem::take(&mut started.methods);
            *methods_from_trace -= methods.len();
            let created = process.map_or(started.created, |process| process.created_on_clock);
            Some(Methods { id: *id, created, methods })
        })
    }
}
