//! The functions of thread profiling, affinity, and requests to drivers.

use crate::{
    PerformanceData, Processors, Scheduler, ThreadId,
    profile::{Profile, ProfileHandle, ProfilingData},
};
use bench_protocol::UserRdpmc;
use std::fmt;

/// THREAD_PROFILING_FLAG_DISPATCH of EnableThreadProfiling.
pub const ENABLE_DISPATCH: u32 = 1;
/// READ_THREAD_PROFILING_FLAG_DISPATCHING of ReadThreadProfilingData.
pub const READ_DISPATCH: u32 = 1;
/// READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS of ReadThreadProfilingData.
pub const READ_COUNTERS: u32 = 2;

/// ERROR_INVALID_HANDLE.
pub const INVALID_HANDLE: Error = Error(6);
/// ERROR_INVALID_PARAMETER.
pub const INVALID_PARAMETER: Error = Error(87);
/// ERROR_WMI_ALREADY_ENABLED.
pub const ALREADY_ENABLED: Error = Error(4206);

/// STATUS_PRIVILEGED_INSTRUCTION: the program executes RDPMC, which faults, and ends with this code.
pub const PRIVILEGED_INSTRUCTION: Error = Error(0xC000_0096);

/// Most attempts of a read in user mode. The last one takes what it gets.
const MAX_RETRIES: u32 = 10;

/// A Win32 error code, or [`PRIVILEGED_INSTRUCTION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub u32);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Win32 error {}", self.0)
    }
}

impl std::error::Error for Error {}

/// The calls of a thread. Each executes events in user mode before and after, those of its system call in kernel mode,
/// and the thread can be switched in between.
impl Scheduler {
    /// EnableThreadProfiling: profiles the calling thread. Bits of `mask` for counters that are not configured read as
    /// zero.
    ///
    /// # Errors
    /// `target` is not the calling thread or profiles already, a flag is unknown, or the mask has more than 16 bits.
    pub fn enable(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        target: ThreadId,
        flags: u32,
        mask: u64,
    ) -> Result<ProfileHandle, Error> {
        self.system_call(machine, caller, |scheduler, machine, processor| {
            if target != caller || flags & !ENABLE_DISPATCH != 0 || mask > u64::from(u16::MAX) {
                return Err(INVALID_PARAMETER);
            }
            if scheduler.thread(caller).profile.is_some() {
                return Err(ALREADY_ENABLED);
            }
            let handle = scheduler.new_handle();
            let (configured, meaning) = (scheduler.configuration.counters(), scheduler.behavior.mask);
            let mut profile = Profile::new(handle, flags & ENABLE_DISPATCH != 0, mask, configured, meaning);
            profile.enable(machine, processor);
            scheduler.thread(caller).profile = Some(profile);
            Ok(handle)
        })
    }

    /// ReadThreadProfilingData, without the checks of the structure that the caller passes. It reads the counters by
    /// RDPMC in user mode, again if the thread is switched meanwhile.
    ///
    /// # Errors
    /// The handle is not that of the calling thread's profile, or a flag is unknown. [`PRIVILEGED_INSTRUCTION`] ends
    /// the program.
    pub fn read(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        handle: ProfileHandle,
        flags: u32,
    ) -> Result<ProfilingData, Error> {
        self.user_part(machine, caller);
        let mut retries = 0;
        let read = loop {
            let processor = self.run_on(machine, caller);
            let read = self.data(machine, caller, processor, handle, flags);
            self.step(machine, caller);
            if self.running_on(caller).is_some() || retries == MAX_RETRIES {
                break read;
            }
            retries += 1;
        };
        self.user_part(machine, caller);
        self.step(machine, caller);
        read.map(|data| ProfilingData { retries, ..data })
    }

    /// Returns the values of a thread that runs on `processor`.
    fn data(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        processor: u32,
        handle: ProfileHandle,
        flags: u32,
    ) -> Result<ProfilingData, Error> {
        if flags & !(READ_DISPATCH | READ_COUNTERS) != 0 {
            return Err(INVALID_PARAMETER);
        }
        let (accounting, faults) = (self.behavior.accounting, !self.rdpmc_works(Some(caller), processor));
        let thread = self.thread(caller);
        let profile = thread.profile.as_ref().filter(|profile| profile.handle == handle).ok_or(INVALID_HANDLE)?;
        if flags & READ_COUNTERS != 0 && faults && profile.has_counters() {
            return Err(PRIVILEGED_INSTRUCTION);
        }
        let mut data = ProfilingData::default();
        if flags & READ_DISPATCH != 0 && profile.counts_switches {
            data.context_switches = profile.switches;
            data.wait_reasons = profile.wait_reasons;
            data.cycles = thread.ledger.cycles;
        }
        if flags & READ_COUNTERS != 0 {
            (data.counters, data.counter_count) = profile.values(machine, processor, accounting);
        }
        Ok(data)
    }

    /// Returns CR4.PCE of a processor: whether the thread that runs there may execute RDPMC in user mode.
    #[must_use]
    pub fn rdpmc_works_on(&self, processor: u32) -> bool {
        let place = usize::try_from(processor).unwrap_or(usize::MAX);
        self.rdpmc_works(self.running.get(place).copied().flatten(), processor)
    }

    fn rdpmc_works(&self, thread: Option<ThreadId>, processor: u32) -> bool {
        let profile = || self.threads.get(&thread?)?.profile.as_ref();
        match self.behavior.rdpmc {
            UserRdpmc::Faults => false,
            UserRdpmc::Works => true,
            UserRdpmc::WorksOnProcessor0 => processor == 0,
            UserRdpmc::WorksInProfiledThreads => profile().is_some_and(|profile| profile.mask != 0),
        }
    }

    /// Returns the memory to which the handle of a thread's profile points, as a thread that runs finds it. `None` if
    /// the thread does not profile, or the memory cannot be read.
    #[must_use]
    pub fn performance_data(&self, thread: ThreadId) -> Option<PerformanceData> {
        let profile = self.threads.get(&thread)?.profile.as_ref()?;
        profile.performance_data(self.behavior.handle)
    }

    /// Reads that memory as a thread does, which can be switched afterwards.
    pub fn read_memory(&mut self, machine: &mut dyn Processors, caller: ThreadId) -> Option<PerformanceData> {
        self.run_on(machine, caller);
        let memory = self.performance_data(caller);
        self.step(machine, caller);
        memory
    }

    /// DisableThreadProfiling.
    ///
    /// # Errors
    /// The handle is not that of the calling thread's profile.
    pub fn disable(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        handle: ProfileHandle,
    ) -> Result<(), Error> {
        self.system_call(machine, caller, |scheduler, _, _| {
            let removed = scheduler.thread(caller).profile.take_if(|profile| profile.handle == handle);
            removed.map(|_| ()).ok_or(INVALID_HANDLE)
        })
    }

    /// QueryThreadProfiling: returns whether the calling thread profiles.
    ///
    /// # Errors
    /// `target` is not the calling thread.
    pub fn query(&mut self, machine: &mut dyn Processors, caller: ThreadId, target: ThreadId) -> Result<bool, Error> {
        self.system_call(machine, caller, |scheduler, _, _| {
            if target == caller { Ok(scheduler.thread(caller).profile.is_some()) } else { Err(INVALID_PARAMETER) }
        })
    }

    /// Restricts a thread to the processors of a mask, and returns the mask before. A thread that runs elsewhere is
    /// switched.
    ///
    /// # Errors
    /// The mask has no processor of the machine.
    pub fn set_affinity(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        target: ThreadId,
        mask: u64,
    ) -> Result<u64, Error> {
        self.system_call(machine, caller, |scheduler, machine, _| {
            let all = u64::MAX >> (u64::BITS - scheduler.processors());
            if mask & all == 0 {
                return Err(INVALID_PARAMETER);
            }
            let before = scheduler.thread(target).affinity & all;
            scheduler.thread(target).affinity = mask & all;
            if scheduler.running_on(target).is_some_and(|processor| mask >> processor & 1 == 0) {
                scheduler.preempt(machine, target);
            }
            Ok(before)
        })
    }

    /// Returns the processors that a thread may use.
    #[must_use]
    pub fn affinity(&mut self, thread: ThreadId) -> u64 {
        self.thread(thread).affinity & (u64::MAX >> (u64::BITS - self.processors()))
    }

    /// GetCurrentProcessorNumber: returns the processor on which a thread runs. It may run on another one when the
    /// caller uses the result.
    pub fn current_processor(&mut self, machine: &mut dyn Processors, caller: ThreadId) -> u32 {
        let processor = self.run_on(machine, caller);
        self.step(machine, caller);
        processor
    }

    /// Sends a request to a driver: calls `serve` with the processor of the thread, in kernel mode, in a system call.
    /// Nothing is switched while `serve` runs, as at HIGH_LEVEL.
    pub fn request<M: Processors, T>(
        &mut self,
        machine: &mut M,
        caller: ThreadId,
        serve: impl FnOnce(&mut M, u32) -> T,
    ) -> T {
        let processor = self.begin_request(machine, caller);
        let reply = serve(machine, processor);
        self.end_request(machine, caller);
        reply
    }

    /// The way into a system call, up to the driver. Returns the processor of the thread, which stays there until the
    /// next call of the scheduler.
    pub fn begin_request(&mut self, machine: &mut dyn Processors, caller: ThreadId) -> u32 {
        self.user_part(machine, caller);
        self.step(machine, caller);
        self.kernel_part(machine, caller);
        self.run_on(machine, caller)
    }

    /// The way out of the system call.
    pub fn end_request(&mut self, machine: &mut dyn Processors, caller: ThreadId) {
        self.kernel_part(machine, caller);
        self.step(machine, caller);
        self.user_part(machine, caller);
        self.step(machine, caller);
    }

    /// Executes `body` in a system call, on the processor of the thread.
    fn system_call<T>(
        &mut self,
        machine: &mut dyn Processors,
        caller: ThreadId,
        body: impl FnOnce(&mut Self, &mut dyn Processors, u32) -> T,
    ) -> T {
        let processor = self.begin_request(machine, caller);
        let result = body(self, machine, processor);
        self.end_request(machine, caller);
        result
    }
}
