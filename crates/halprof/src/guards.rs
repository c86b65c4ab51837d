//! What a group holds of Windows and of the driver. Each guard gives it back when it is dropped, by whatever way the
//! code is left. If the process is killed, Windows closes the driver's handle and ends the thread, which does the same.

use std::io;
use std::rc::Rc;

use protocol::{CountRecord, EventRequest, GroupReply, StartHeader, group_flags};

use crate::driver::Driver;
use crate::error::Error;
use crate::system::{Affinity, ProfilingData, ProfilingHandle, System};

/// A running session.
pub(crate) struct Session {
    driver: Rc<Driver>,
    number: u64,
}

impl Session {
    pub(crate) fn start(driver: Rc<Driver>, header: &StartHeader, events: &[EventRequest]) -> Result<Self, Error> {
        let number = driver.start(header, events)?.session;
        Ok(Self { driver, number })
    }

    /// Returns the counts of the CPU on which the request arrives. Its registers are compared.
    pub(crate) fn read_group(&self) -> Result<GroupReply, Error> {
        self.driver.read_group(self.number, group_flags::COMPARE)
    }

    /// Returns the counts of every CPU. Their registers are compared.
    pub(crate) fn read(&self) -> Result<Vec<CountRecord>, Error> {
        self.driver.read(self.number)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If the driver does not answer, the session ends with the handle.
        let _ = self.driver.stop_all(self.number);
    }
}

/// Profiling of the current thread.
pub(crate) struct Profiling {
    system: Rc<dyn System>,
    handle: ProfilingHandle,
}

impl Profiling {
    pub(crate) fn enable(system: Rc<dyn System>, counters: u64) -> io::Result<Self> {
        let handle = system.enable_profiling(counters)?;
        Ok(Self { system, handle })
    }

    pub(crate) fn read(&self) -> io::Result<ProfilingData> {
        self.system.read_profiling(&self.handle)
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        // If Windows refuses, it ends the profiling with the thread.
        let _ = self.system.disable_profiling(self.handle);
    }
}

/// The restriction of the current thread to one CPU.
pub(crate) struct Pinned {
    system: Rc<dyn System>,
    before: Affinity,
}

impl Pinned {
    pub(crate) fn to(system: Rc<dyn System>, cpu: u32) -> io::Result<Self> {
        let before = system.pin(cpu)?;
        Ok(Self { system, before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If Windows refuses, for example because a CPU was removed, the thread stays where it is.
        let _ = self.system.unpin(&self.before);
    }
}
