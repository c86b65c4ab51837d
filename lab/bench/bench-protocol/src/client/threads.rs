//! The threads of programs.

use crate::{Answer, Command, HardwareCounters, Scheduling, ThreadAnswer, ThreadCall, ThreadCommand, ThreadLedger};

use super::{Client, Error};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends a command about the threads of programs.
    fn ask_threads(&mut self, command: ThreadCommand) -> Result<ThreadAnswer, Error> {
        match self.ask(&Command::Threads(command))? {
            Answer::Threads(answer) => Ok(answer),
            other => Err(Error::Unexpected(Box::new(other))),
        }
    }

    /// Sends [`ThreadCommand::HardwareCounters`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hardware_counters(&mut self) -> Result<HardwareCounters, Error> {
        match self.ask_threads(ThreadCommand::HardwareCounters)? {
            ThreadAnswer::HardwareCounters(counters) => Ok(counters),
            other => Err(unexpected(other)),
        }
    }

    /// Sends [`ThreadCommand::ConfigureHardwareCounters`].
    ///
    /// # Errors
    /// If counters are configured already, or a thread profiles.
    pub fn configure_hardware_counters(&mut self, counters: &[u64]) -> Result<(), Error> {
        self.done(ThreadCommand::ConfigureHardwareCounters(counters.to_vec()))
    }

    /// Sends [`ThreadCommand::PretendProfiling`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn pretend_profiling(&mut self, pretends: bool) -> Result<(), Error> {
        self.done(ThreadCommand::PretendProfiling(pretends))
    }

    /// Sends [`ThreadCommand::StartProgram`].
    ///
    /// # Errors
    /// If there is no such process.
    pub fn start_program(&mut self, process: u32, scheduling: &Scheduling) -> Result<(), Error> {
        self.done(ThreadCommand::StartProgram { process, scheduling: scheduling.clone() })
    }

    /// Sends [`ThreadCommand::Call`]. The answer depends on the call.
    ///
    /// # Errors
    /// If the program was not started, or the time is real.
    pub fn thread_call(&mut self, process: u32, thread: u32, call: ThreadCall) -> Result<ThreadAnswer, Error> {
        self.ask_threads(ThreadCommand::Call { process, thread, call })
    }

    /// Sends [`ThreadCommand::TakeLedgers`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn take_ledgers(&mut self) -> Result<Vec<ThreadLedger>, Error> {
        match self.ask_threads(ThreadCommand::TakeLedgers)? {
            ThreadAnswer::Ledgers(ledgers) => Ok(ledgers),
            other => Err(unexpected(other)),
        }
    }

    /// Sends a command that has no result.
    fn done(&mut self, command: ThreadCommand) -> Result<(), Error> {
        match self.ask_threads(command)? {
            ThreadAnswer::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

fn unexpected(answer: ThreadAnswer) -> Error {
    Error::Unexpected(Box::new(Answer::Threads(answer)))
}
