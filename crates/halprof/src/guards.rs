//! What a group holds of Windows and of the driver. Each guard gives it back when it is dropped, by whatever way the
//! code is left. If the process is killed, Windows closes the driver's handle and ends the thread, which does the same.

use std::io;
use std::rc::Rc;

use protocol::{CountRecord, EventRequest, GroupReply, StartHeader, group_flags, group_state};

use crate::driver::Driver;
use crate::error::Error;
use crate::system::{Affinity, CounterValues, ProfilingData, ProfilingHandle, System};
use crate::thread_memory::ThreadMemory;

/// A running session.
pub(crate) struct SessionGuard {
    driver: Rc<Driver>,
    number: u64,
}

impl SessionGuard {
    pub(crate) fn start(driver: Rc<Driver>, header: &StartHeader, events: &[EventRequest]) -> Result<Self, Error> {
        let number = driver.start(header, events)?.session;
        Ok(Self { driver, number })
    }

    /// Returns the counts of the CPU on which the request arrives. Its registers are compared.
    pub(crate) fn read_group(&self) -> Result<GroupReply, Error> {
        self.driver.read_group(self.number, group_flags::COMPARE)
    }

    /// Returns whether this thread may execute RDPMC in user mode on the CPU on which the request arrives.
    pub(crate) fn may_execute_rdpmc(&self) -> Result<bool, Error> {
        Ok(self.driver.read_group(self.number, 0)?.state & group_state::USER_RDPMC != 0)
    }

    /// Returns the counts of every CPU. Their registers are compared.
    pub(crate) fn read(&self) -> Result<Vec<CountRecord>, Error> {
        self.driver.read(self.number)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        // If the driver does not answer, the session ends with the handle.
        let _ = self.driver.stop_all(self.number);
    }
}

/// Profiling of the current thread.
pub(crate) struct Profiling {
    system: Rc<dyn System>,
    handle: ProfilingHandle,
    counters: u64,
}

impl Profiling {
    pub(crate) fn enable(system: Rc<dyn System>, counters: u64) -> io::Result<Self> {
        let handle = system.enable_profiling(counters)?;
        Ok(Self { system, handle, counters })
    }

    pub(crate) fn read(&self) -> io::Result<ProfilingData> {
        self.system.read_profiling(&self.handle)
    }

    /// Executes RDPMC in user mode.
    pub(crate) fn read_counters(&self) -> io::Result<CounterValues> {
        self.system.read_counters(&self.handle)
    }

    pub(crate) fn read_memory(&self) -> io::Result<ThreadMemory> {
        let bytes = self.system.read_memory(&self.handle)?;
        ThreadMemory::of(&bytes, self.counters).map_err(|why| io::Error::other(why.to_string()))
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
