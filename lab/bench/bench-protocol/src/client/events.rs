//! Time, events, and the records of what happened.

use crate::{
    Answer, Command, DsWrites, EventCount, InterruptSite, Interruptions, LedgerEntry, ScriptedRequest, SiteInterrupts,
    TakenBranch, Ticks, Time, TimerMode,
};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::SetTime`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_time(&mut self, time: Time) -> Result<(), Error> {
        ask!(self, Command::SetTime(time), Answer::Done => ())
    }

    /// Sends [`Command::SetTimers`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_timers(&mut self, mode: TimerMode) -> Result<(), Error> {
        ask!(self, Command::SetTimers(mode), Answer::Done => ())
    }

    /// Sends [`Command::Run`].
    ///
    /// # Errors
    /// If the time is real, there is no such processor, or it stays at HIGH_LEVEL.
    pub fn run(&mut self, processor: u32, user: &[EventCount], kernel: &[EventCount]) -> Result<(), Error> {
        ask!(self, Command::Run { processor, user: user.to_vec(), kernel: kernel.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::ScriptRequests`].
    ///
    /// # Errors
    /// If the time is real or there is no such processor.
    pub fn script_requests(&mut self, processor: u32, script: Vec<ScriptedRequest>) -> Result<(), Error> {
        ask!(self, Command::ScriptRequests { processor, script }, Answer::Done => ())
    }

    /// Sends [`Command::ScriptedRequests`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn scripted_requests(&mut self) -> Result<u64, Error> {
        ask!(self, Command::ScriptedRequests, Answer::ScriptedRequests(left) => left)
    }

    /// Sends [`Command::Branch`].
    ///
    /// # Errors
    /// If the time is real, there is no such processor, or it stays at HIGH_LEVEL.
    pub fn branch(&mut self, processor: u32, user: bool, from: u64, step: u64, count: u64) -> Result<(), Error> {
        ask!(self, Command::Branch { processor, user, from, step, count }, Answer::Done => ())
    }

    /// Sends [`Command::TakeBranches`].
    ///
    /// # Errors
    /// If the time is real, or there is no such processor.
    pub fn take_branches(&mut self, processor: u32, branches: &[TakenBranch]) -> Result<(), Error> {
        ask!(self, Command::TakeBranches { processor, branches: branches.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::SetAccesses`].
    ///
    /// # Errors
    /// If there is no such processor.
    pub fn set_accesses(&mut self, processor: u32, loads: &[[u64; 4]], stores: &[[u64; 4]]) -> Result<(), Error> {
        let (loads, stores) = (loads.to_vec(), stores.to_vec());
        ask!(self, Command::SetAccesses { processor, loads, stores }, Answer::Done => ())
    }

    /// Sends [`Command::LoseLastBranches`].
    ///
    /// # Errors
    /// If there is no such processor.
    pub fn lose_last_branches(&mut self, processor: u32) -> Result<(), Error> {
        ask!(self, Command::LoseLastBranches { processor }, Answer::Done => ())
    }

    /// Sends [`Command::Tick`].
    ///
    /// # Errors
    /// If the time is real, there is no such processor, or the routines do not end.
    pub fn tick(&mut self, processor: u32, times: u64) -> Result<(), Error> {
        ask!(self, Command::Tick { processor, times }, Answer::Done => ())
    }

    /// Sends [`Command::Interruptions`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn interruptions(&mut self) -> Result<Vec<Interruptions>, Error> {
        ask!(self, Command::Interruptions, Answer::Interruptions(all) => all)
    }

    /// Sends [`Command::Ticks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn ticks(&mut self) -> Result<Ticks, Error> {
        ask!(self, Command::Ticks, Answer::Ticks(ticks) => ticks)
    }

    /// Sends [`Command::Skipped`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn skipped(&mut self) -> Result<Vec<u64>, Error> {
        ask!(self, Command::Skipped, Answer::Skipped(skipped) => skipped)
    }

    /// Sends [`Command::Sleep`].
    ///
    /// # Errors
    /// If the machine sleeps.
    pub fn sleep(&mut self) -> Result<(), Error> {
        ask!(self, Command::Sleep, Answer::Done => ())
    }

    /// Sends [`Command::Wake`].
    ///
    /// # Errors
    /// If the machine does not sleep.
    pub fn wake(&mut self, milliseconds: u64) -> Result<(), Error> {
        ask!(self, Command::Wake { milliseconds }, Answer::Done => ())
    }

    /// Sends [`Command::Advance`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn advance(&mut self, milliseconds: u64) -> Result<(), Error> {
        ask!(self, Command::Advance { milliseconds }, Answer::Done => ())
    }

    /// Sends [`Command::HoldClocks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hold_clocks(&mut self, hold: bool) -> Result<(), Error> {
        ask!(self, Command::HoldClocks(hold), Answer::Done => ())
    }

    /// Sends [`Command::SetInterruptSites`].
    ///
    /// # Errors
    /// If no site has a weight, or there is no such processor.
    pub fn set_interrupt_sites(&mut self, processor: u32, sites: &[InterruptSite]) -> Result<(), Error> {
        ask!(self, Command::SetInterruptSites { processor, sites: sites.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::InterruptSites`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn interrupt_sites(&mut self) -> Result<Vec<Vec<SiteInterrupts>>, Error> {
        ask!(self, Command::InterruptSites, Answer::InterruptSites(sites) => sites)
    }

    /// Sends [`Command::Ledger`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn ledger(&mut self) -> Result<Vec<Vec<LedgerEntry>>, Error> {
        ask!(self, Command::Ledger, Answer::Ledger(ledger) => ledger)
    }

    /// Sends [`Command::ClearLedger`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn clear_ledger(&mut self) -> Result<(), Error> {
        ask!(self, Command::ClearLedger, Answer::Done => ())
    }

    /// Sends [`Command::DsWrites`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn ds_writes(&mut self) -> Result<Vec<DsWrites>, Error> {
        ask!(self, Command::DsWrites, Answer::DsWrites(writes) => writes)
    }
}
