//! The behaviour of Windows, and injected failures.

use crate::{Answer, CancelMoment, Command, ControlAreaMode, Handler, KvaShadow, StopState};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::SetWindows`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_windows(&mut self, build: u32) -> Result<(), Error> {
        ask!(self, Command::SetWindows { build }, Answer::Done => ())
    }

    /// Sends [`Command::SetKvaShadow`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_kva_shadow(&mut self, shadow: KvaShadow) -> Result<(), Error> {
        ask!(self, Command::SetKvaShadow(shadow), Answer::Done => ())
    }

    /// Sends [`Command::SetControlAreas`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_control_areas(&mut self, areas: ControlAreaMode) -> Result<(), Error> {
        ask!(self, Command::SetControlAreas(areas), Answer::Done => ())
    }

    /// Sends [`Command::OccupyControlArea`].
    ///
    /// # Errors
    /// If there is no such processor, or its area is allocated.
    pub fn occupy_control_area(&mut self, processor: u32) -> Result<(), Error> {
        ask!(self, Command::OccupyControlArea { processor }, Answer::Done => ())
    }

    /// Sends [`Command::ControlAreas`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn control_areas(&mut self) -> Result<Vec<Option<u64>>, Error> {
        ask!(self, Command::ControlAreas, Answer::ControlAreas(areas) => areas)
    }

    /// Sends [`Command::NotifyPower`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn notify_power(&mut self, first: u64, second: u64) -> Result<(), Error> {
        ask!(self, Command::NotifyPower { first, second }, Answer::Done => ())
    }

    /// Sends [`Command::HalUnmasks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hal_unmasks(&mut self, unmasks: bool) -> Result<(), Error> {
        ask!(self, Command::HalUnmasks(unmasks), Answer::Done => ())
    }

    /// Sends [`Command::HalInformationSize`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hal_information_size(&mut self, bytes: u32) -> Result<(), Error> {
        ask!(self, Command::HalInformationSize(bytes), Answer::Done => ())
    }

    /// Sends [`Command::HideFrames`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hide_frames(&mut self, hide: bool) -> Result<(), Error> {
        ask!(self, Command::HideFrames(hide), Answer::Done => ())
    }

    /// Sends [`Command::StopDriver`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn stop_driver(&mut self) -> Result<StopState, Error> {
        ask!(self, Command::StopDriver, Answer::Stop(state) => state)
    }

    /// Sends [`Command::StopState`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn stop_state(&mut self) -> Result<StopState, Error> {
        ask!(self, Command::StopState, Answer::Stop(state) => state)
    }

    /// Sends [`Command::RefuseHandler`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn refuse_handler(&mut self, refuse: bool) -> Result<(), Error> {
        ask!(self, Command::RefuseHandler(refuse), Answer::Done => ())
    }

    /// Sends [`Command::Handler`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn handler(&mut self) -> Result<Handler, Error> {
        ask!(self, Command::Handler, Answer::Handler(handler) => handler)
    }

    /// Sends [`Command::RefuseCounters`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn refuse_counters(&mut self, status: Option<u32>) -> Result<(), Error> {
        ask!(self, Command::RefuseCounters(status), Answer::Done => ())
    }

    /// Sends [`Command::BusyCounters`].
    ///
    /// # Errors
    /// The connection is lost.
    pub fn busy_counters(&mut self, milliseconds: u64) -> Result<(), Error> {
        ask!(self, Command::BusyCounters { milliseconds }, Answer::Done => ())
    }

    /// Sends [`Command::CountersReserved`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn counters_reserved(&mut self) -> Result<bool, Error> {
        ask!(self, Command::CountersReserved, Answer::CountersReserved(reserved) => reserved)
    }

    /// Sends [`Command::DenyPrivilege`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn deny_privilege(&mut self, deny: bool) -> Result<(), Error> {
        ask!(self, Command::DenyPrivilege(deny), Answer::Done => ())
    }

    /// Sends [`Command::FailAllocation`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn fail_allocation(&mut self, nth: Option<u64>) -> Result<(), Error> {
        ask!(self, Command::FailAllocation(nth), Answer::Done => ())
    }

    /// Sends [`Command::FailCall`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn fail_call(&mut self, nth: Option<u64>) -> Result<(), Error> {
        ask!(self, Command::FailCall(nth), Answer::Done => ())
    }

    /// Sends [`Command::FailNewStack`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn fail_new_stack(&mut self, fail: bool) -> Result<(), Error> {
        ask!(self, Command::FailNewStack(fail), Answer::Done => ())
    }

    /// Sends [`Command::FailedCall`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn failed_call(&mut self) -> Result<Option<String>, Error> {
        ask!(self, Command::FailedCall, Answer::FailedCall(function) => function)
    }

    /// Sends [`Command::CancelAt`].
    ///
    /// # Errors
    /// If there is only one processor.
    pub fn cancel_at(&mut self, moment: Option<CancelMoment>) -> Result<(), Error> {
        ask!(self, Command::CancelAt(moment), Answer::Done => ())
    }
}
