//! The first access of each register, guarded against #GP.
//!
//! CPUID enumerates registers that a hypervisor, or a faulty processor, may not have. RDMSR, WRMSR and RDPMC then raise
//! #GP, which stops the machine at the levels at which counters are programmed. So every register, and every counter
//! that RDPMC reads, is accessed for the first time through [`GuardedCpu`], on a thread that is pinned to the
//! processor. A fault becomes a [`Fault`], and the session is refused.
//!
//! Hypervisors also check values: they fault for bits that they do not support, or drop them (intel/pcm, pull request
//! 142; Linux, arch/x86/kvm/pmu.c). So the values that are written later are written here first, zero among them,
//! without the bits that let a counter count, then read back, and replaced by what was found. Counters that CPUID
//! [hides](crate::interface::emon::hides_counters) are the exception: they have to count. What was found is written
//! back before any other value, because nothing could restore a register that faults for what it contains. Where a
//! value faults or is not kept, the processor does without the feature that needs it, if it can. What is read back is
//! what [later comparisons](crate::ProfileInterface::compare) expect.
//!
//! Each interface lists its registers in one function, next to its other accesses. Which registers it needs may depend
//! on what others contain, so that the list is code: it reads what it finds.

mod results;

use core::cell::Cell;
use core::fmt;

pub(crate) use results::FirstAccesses;

use crate::cpu::{Cpuid, Msr};
use crate::known_loop;

/// #GP(0), raised by a guarded access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneralProtection;

/// The processor of a pinned thread, with accesses that may fault.
///
/// It is a type of its own, so that code at PROFILE_LEVEL, which has a [`Cpu`](crate::Cpu), cannot use it.
///
/// # IRQL
/// Below DISPATCH_LEVEL.
pub trait GuardedCpu {
    /// What executes CPUID, which does not fault: the type that others use for it too, so that what reads CPUID is
    /// compiled once.
    type Identity: Cpuid;

    /// Returns that of the processor.
    fn identity(&self) -> &Self::Identity;

    /// Reads a register.
    ///
    /// # Errors
    /// The access faulted.
    fn try_rdmsr(&self, msr: Msr) -> Result<u64, GeneralProtection>;

    /// Writes a register.
    ///
    /// # Errors
    /// The access faulted; the register is unchanged.
    fn try_wrmsr(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection>;

    /// Executes RDPMC.
    ///
    /// # Errors
    /// The access faulted.
    fn try_rdpmc(&self, index: u32) -> Result<u64, GeneralProtection>;

    /// Executes the [known loop](crate::known_loop).
    fn run_loop(&self, iterations: u32);
}

/// Kind of an access. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Access {
    /// RDMSR.
    Read = 0,
    /// WRMSR.
    Write = 1,
    /// RDPMC.
    Counter = 2,
    /// RDMSR after a WRMSR: the register does not keep the value.
    ReadBack = 3,
}

impl Access {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Counter, Self::ReadBack];

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|access| *access as u8 == number)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "RDMSR",
            Self::Write => "WRMSR",
            Self::Counter => "RDPMC",
            Self::ReadBack => "RDMSR after WRMSR",
        })
    }
}

/// An access that faulted, or a value that a register does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{access} of {number:#x} failed, with the value {value:#x}")]
pub struct Fault {
    /// The kind of access.
    pub access: Access,
    /// ECX: the address of the register, or the index of the counter.
    pub number: u32,
    /// The value that was written, or 0.
    pub value: u64,
}

/// An access that failed, whose fault [`FirstAccess`] has. Without the fault, the result of an access fits into two
/// registers, and each caller returns it on without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faulted;

impl Fault {
    pub(crate) const fn of_value(access: Access, msr: Msr, value: u64) -> Self {
        Self { access, number: msr.address(), value }
    }
}

/// Registers that are accessed for the same purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RegisterGroup {
    /// Those of the profile interface.
    Counters = 0,
    /// Those through which the LVT entry is found and, in x2APIC mode, written.
    LocalApic = 1,
    /// Those that enumerate the Debug Store.
    DebugStoreFeatures = 2,
    /// IA32_DS_AREA.
    SaveArea = 3,
    /// Those that control the Debug Store.
    DebugStore = 4,
    /// Those of MSR_OFFCORE_RSP_0, MSR_OFFCORE_RSP_1 and MSR_OMR_0 to 3 that the processor has.
    OffcoreResponse = 5,
    /// MSR_PEBS_LD_LAT_THRESHOLD.
    LoadLatency = 6,
    /// MSR_PEBS_FRONTEND.
    FrontEnd = 7,
    /// Fixed counter 3 and MSR_PERF_METRICS.
    Metrics = 8,
    /// Those of last branches.
    LastBranches = 9,
    /// Those of Instruction-Based Sampling of ops.
    IbsOps = 10,
    /// Those of Instruction-Based Sampling of fetches.
    IbsFetches = 11,
}

impl RegisterGroup {
    /// Number of groups.
    pub(crate) const COUNT: usize = 12;
}

/// The part of the first accesses that is due. Nothing is written before it is known that no other program uses the
/// registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Reads every register that can be read, and every counter.
    Read = 0,
    /// Reads every register again, writes what the driver will write, and writes back what was read.
    Write = 1,
}

/// A register or a counter that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// [`Access::Read`] or [`Access::Counter`].
    pub access: Access,
    /// ECX: the address of the register, or the index of the counter.
    pub number: u32,
    /// What it contains, or that the access faulted.
    pub value: Result<u64, GeneralProtection>,
}

/// Passes a reading on.
#[inline(never)] // it calls a closure by its address, which no other function does
fn pass(note: &dyn Fn(Reading), reading: Reading) {
    note(reading);
}

/// Before an access has failed.
const NO_FAULT: Fault = Fault { access: Access::Read, number: 0, value: 0 };

/// Performs the accesses of one phase on the current processor.
pub struct FirstAccess<'a, C> {
    cpu: &'a C,
    phase: Phase,
    /// Fault of the last access that failed. Elsewhere, so that the rest is known not to change with it.
    fault: &'a Cell<Fault>,
    /// Receives each reading. With it, a register that faults is taken for zero, so that the others are read too.
    note: Option<&'a dyn Fn(Reading)>,
}

impl<'a, C: GuardedCpu> FirstAccess<'a, C> {
    /// Performs the accesses of a phase.
    ///
    /// # Errors
    /// The fault of the access that failed.
    pub fn perform<T>(
        cpu: &C,
        phase: Phase,
        accesses: impl FnOnce(&FirstAccess<'_, C>) -> Result<T, Faulted>,
    ) -> Result<T, Fault> {
        let fault = Cell::new(NO_FAULT);
        accesses(&FirstAccess { cpu, phase, fault: &fault, note: None }).map_err(|Faulted| fault.get())
    }

    /// Performs accesses that write nothing and call `note` with each reading. A register that faults is taken for
    /// zero.
    pub fn note<T>(cpu: &C, note: &dyn Fn(Reading), accesses: impl FnOnce(&FirstAccess<'_, C>) -> T) -> T {
        accesses(&FirstAccess { cpu, phase: Phase::Read, fault: &Cell::new(NO_FAULT), note: Some(note) })
    }

    /// Notes the fault of accesses that fail.
    pub(crate) fn fail(&self, fault: Fault) -> Faulted {
        self.fault.set(fault);
        Faulted
    }

    /// Returns the fault of the access that has just failed.
    pub(crate) fn fault(&self) -> Fault {
        self.fault.get()
    }

    /// Returns what an access has read.
    ///
    /// # Errors
    /// The fault, unless it is noted.
    #[inline]
    fn noted(&self, access: Access, number: u32, value: Result<u64, GeneralProtection>) -> Result<u64, Faulted> {
        let Some(note) = self.note else {
            return value.map_err(|_| self.fail(Fault { access, number, value: 0 }));
        };
        pass(note, Reading { access, number, value });
        Ok(value.unwrap_or(0))
    }

    /// Returns CPUID of the current processor.
    #[must_use]
    pub fn cpuid(&self) -> &'a C::Identity {
        self.cpu.identity()
    }

    /// [`Phase::Write`] executes the [known loop](known_loop).
    pub fn run_loop(&self) {
        if self.writes() {
            self.cpu.run_loop(known_loop::ITERATIONS);
        }
    }

    /// Returns whether this is [`Phase::Write`].
    #[must_use]
    pub const fn writes(&self) -> bool {
        matches!(self.phase, Phase::Write)
    }

    /// Reads a register that is only read.
    ///
    /// # Errors
    /// The fault.
    pub fn read(&self, msr: Msr) -> Result<u64, Faulted> {
        self.noted(Access::Read, msr.address(), self.cpu.try_rdmsr(msr))
    }

    /// Reads a register that is read and written. [`Phase::Write`] also writes the value back.
    ///
    /// # Errors
    /// The fault.
    pub fn read_write(&self, msr: Msr) -> Result<u64, Faulted> {
        let value = self.read(msr)?;
        self.write(msr, value)?;
        Ok(value)
    }

    /// [`Phase::Write`] writes this value.
    ///
    /// # Errors
    /// The fault.
    pub fn write(&self, msr: Msr, value: u64) -> Result<(), Faulted> {
        match self.phase {
            Phase::Read => Ok(()),
            Phase::Write => {
                self.cpu.try_wrmsr(msr, value).map_err(|_| self.fail(Fault::of_value(Access::Write, msr, value)))
            }
        }
    }

    /// [`Phase::Write`] writes this value, and returns what the register then contains. The caller restores the
    /// register. [`Phase::Read`] returns the value.
    ///
    /// # Errors
    /// The fault; the register is unchanged.
    pub fn kept(&self, msr: Msr, value: u64) -> Result<u64, Faulted> {
        self.write(msr, value)?;
        match self.phase {
            Phase::Read => Ok(value),
            Phase::Write => self.read(msr),
        }
    }

    /// As [`kept`](Self::kept), for a value that the register must keep.
    ///
    /// # Errors
    /// The fault, or that the register does not keep the value.
    pub fn demand(&self, msr: Msr, value: u64) -> Result<(), Faulted> {
        if self.kept(msr, value)? == value {
            Ok(())
        } else {
            Err(self.fail(Fault::of_value(Access::ReadBack, msr, value)))
        }
    }

    /// Returns those of `bits` that a register takes beside `others`: it keeps them, and does not fault. The caller
    /// restores the register.
    #[must_use]
    pub fn taken(&self, msr: Msr, others: u64, bits: u64) -> u64 {
        if let Ok(kept) = self.kept(msr, others | bits) {
            return kept & bits;
        }
        let each = (0..u64::BITS).map(|number| bits & 1 << number).filter(|bit| *bit != 0);
        each.filter(|bit| self.kept(msr, others | bit).is_ok_and(|kept| kept & bit != 0)).fold(0, |all, bit| all | bit)
    }

    /// Performs `accesses`, then [restores](Self::restore) `found`, whatever they return.
    ///
    /// # Errors
    /// That of the accesses, or the fault of the register.
    pub fn restoring<T>(
        &self,
        msr: Msr,
        found: u64,
        accesses: impl FnOnce() -> Result<T, Faulted>,
    ) -> Result<T, Faulted> {
        let result = accesses();
        self.restore(msr, found)?;
        result
    }

    /// Reads a register and writes the value back, then performs `trials`, which get that value, and
    /// [restores](Self::restore) it. A register that faults for what it contains is never changed: nothing could
    /// restore it.
    ///
    /// # Errors
    /// A fault of the register, or that of the trials.
    pub fn trying<T>(&self, msr: Msr, trials: impl FnOnce(u64) -> Result<T, Faulted>) -> Result<T, Faulted> {
        let found = self.read_write(msr)?;
        self.restoring(msr, found, || trials(found))
    }

    /// Writes the value that a register contained before it was changed. A fault of that value is passing, so the write
    /// is repeated once.
    ///
    /// # Errors
    /// The second fault; the register is still changed.
    pub fn restore(&self, msr: Msr, found: u64) -> Result<(), Faulted> {
        // A fault that passes is not noted: it would replace that of the accesses.
        if self.writes() && self.cpu.try_wrmsr(msr, found).is_err() { self.write(msr, found) } else { Ok(()) }
    }

    /// Writes a value that the register must keep, and what it contained before.
    ///
    /// # Errors
    /// The fault, or that the register does not keep the value.
    pub fn try_value(&self, msr: Msr, value: u64) -> Result<(), Faulted> {
        let found = self.read(msr)?;
        self.restoring(msr, found, || self.demand(msr, value))
    }

    /// Reads a counter by RDPMC.
    ///
    /// # Errors
    /// The fault.
    pub fn counter(&self, index: u32) -> Result<u64, Faulted> {
        self.noted(Access::Counter, index, self.cpu.try_rdpmc(index))
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use raw_cpuid::CpuIdResult;

    use super::*;
    use crate::cpu::Cpuid;

    const REGISTER: Msr = Msr::new(0x1D9);

    /// A register that keeps what it contains, and faults for the writes with these numbers.
    struct Keeping {
        faulting: &'static [u32],
        writes: Cell<u32>,
    }

    impl Cpuid for Keeping {
        fn cpuid(&self, _leaf: u32, _subleaf: u32) -> CpuIdResult {
            CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
        }
    }

    impl GuardedCpu for Keeping {
        type Identity = Self;

        fn identity(&self) -> &Self {
            self
        }

        fn try_rdmsr(&self, _msr: Msr) -> Result<u64, GeneralProtection> {
            Ok(5)
        }

        fn try_wrmsr(&self, _msr: Msr, _value: u64) -> Result<(), GeneralProtection> {
            self.writes.set(self.writes.get() + 1);
            if self.faulting.contains(&self.writes.get()) { Err(GeneralProtection) } else { Ok(()) }
        }

        fn try_rdpmc(&self, _index: u32) -> Result<u64, GeneralProtection> {
            Err(GeneralProtection)
        }

        fn run_loop(&self, _iterations: u32) {}
    }

    /// The first write is that of the trial, the second and the third restore the register.
    #[test]
    fn the_reported_fault_is_that_of_the_access_that_failed() {
        let not_kept = Fault::of_value(Access::ReadBack, REGISTER, 7);
        for (faulting, reported) in [
            (&[][..], not_kept),
            (&[1], Fault::of_value(Access::Write, REGISTER, 7)),
            (&[2], not_kept),
            (&[2, 3], Fault::of_value(Access::Write, REGISTER, 5)),
        ] {
            let cpu = Keeping { faulting, writes: Cell::new(0) };
            let tried = FirstAccess::perform(&cpu, Phase::Write, |first| first.try_value(REGISTER, 7));
            assert_eq!(tried, Err(reported), "{faulting:?}");
        }
    }
}
