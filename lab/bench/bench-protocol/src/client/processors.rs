//! The processors and their registers.

use crate::{Accesses, Answer, Command, Counter, DebugStore, EnabledCounter, InterruptMode, RegisterQuirk};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::Identities`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn identities(&mut self) -> Result<Vec<String>, Error> {
        ask!(self, Command::Identities, Answer::Names(names) => names)
    }

    /// Sends [`Command::SetIdentity`].
    ///
    /// # Errors
    /// If a driver is loaded, or the identity does not exist.
    pub fn set_identity(&mut self, name: &str) -> Result<(), Error> {
        ask!(self, Command::SetIdentity(name.to_owned()), Answer::Done => ())
    }

    /// Sends [`Command::SetProcessors`].
    ///
    /// # Errors
    /// If a driver is loaded, or the lab does not support the numbers.
    pub fn set_processors(&mut self, active: u32, maximum: u32) -> Result<(), Error> {
        ask!(self, Command::SetProcessors { active, maximum }, Answer::Done => ())
    }

    /// Sends [`Command::AddProcessor`].
    ///
    /// # Errors
    /// If the maximum number of processors is active.
    pub fn add_processor(&mut self) -> Result<bool, Error> {
        ask!(self, Command::AddProcessor, Answer::Added(added) => added)
    }

    /// Sends [`Command::SetApic`].
    ///
    /// # Errors
    /// If a driver is loaded.
    pub fn set_apic(&mut self, x2apic: bool) -> Result<(), Error> {
        ask!(self, Command::SetApic { x2apic }, Answer::Done => ())
    }

    /// Sends [`Command::SetLvt`].
    ///
    /// # Errors
    /// If there is no such processor.
    pub fn set_lvt(&mut self, processor: u32, value: u32) -> Result<(), Error> {
        ask!(self, Command::SetLvt { processor, value }, Answer::Done => ())
    }

    /// Sends [`Command::Lvt`].
    ///
    /// # Errors
    /// If there is no such processor.
    pub fn lvt(&mut self, processor: u32) -> Result<u32, Error> {
        ask!(self, Command::Lvt { processor }, Answer::Lvt(value) => value)
    }

    /// Sends [`Command::SetInterruptMode`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_interrupt_mode(&mut self, mode: InterruptMode) -> Result<(), Error> {
        ask!(self, Command::SetInterruptMode(mode), Answer::Done => ())
    }

    /// Sends [`Command::SetFaulting`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_faulting(&mut self, registers: &[u32]) -> Result<(), Error> {
        ask!(self, Command::SetFaulting { registers: registers.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::SetQuirks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_quirks(&mut self, quirks: &[RegisterQuirk]) -> Result<(), Error> {
        ask!(self, Command::SetQuirks { quirks: quirks.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::SetMovement`].
    ///
    /// # Errors
    /// If there is no such processor.
    pub fn set_movement(&mut self, processor: u32, shares: &[(Counter, u16)]) -> Result<(), Error> {
        ask!(self, Command::SetMovement { processor, shares: shares.to_vec() }, Answer::Done => ())
    }

    /// Sends [`Command::SetPhase`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_phase(&mut self, counted: (u16, u16), factor: u32) -> Result<(), Error> {
        ask!(self, Command::SetPhase { counted, factor }, Answer::Done => ())
    }

    /// Sends [`Command::WriteMsr`].
    ///
    /// # Errors
    /// If there is no such processor, or the access faults.
    pub fn write_msr(&mut self, processor: u32, register: u32, value: u64) -> Result<(), Error> {
        ask!(self, Command::WriteMsr { processor, register, value }, Answer::Done => ())
    }

    /// Sends [`Command::ReadMsr`].
    ///
    /// # Errors
    /// If there is no such processor, or the access faults.
    pub fn read_msr(&mut self, processor: u32, register: u32) -> Result<u64, Error> {
        ask!(self, Command::ReadMsr { processor, register }, Answer::Msr(value) => value)
    }

    /// Sends [`Command::SetDebugStore`].
    ///
    /// # Errors
    /// If there is no such processor, or the access faults.
    pub fn set_debug_store(
        &mut self,
        processor: u32,
        area: u64,
        debugctl: u64,
        misc_enable: Option<u64>,
    ) -> Result<(), Error> {
        ask!(self, Command::SetDebugStore { processor, area, debugctl, misc_enable }, Answer::Done => ())
    }

    /// Sends [`Command::DebugStore`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn debug_store(&mut self) -> Result<Vec<DebugStore>, Error> {
        ask!(self, Command::DebugStore, Answer::DebugStore(registers) => registers)
    }

    /// Sends [`Command::EnabledCounters`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn enabled_counters(&mut self) -> Result<Vec<Vec<EnabledCounter>>, Error> {
        ask!(self, Command::EnabledCounters, Answer::EnabledCounters(enabled) => enabled)
    }

    /// Sends [`Command::Accesses`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn accesses(&mut self) -> Result<Vec<Accesses>, Error> {
        ask!(self, Command::Accesses, Answer::Accesses(accesses) => accesses)
    }
}
