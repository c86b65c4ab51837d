//! Instruction-Based Sampling, AMD from family 10h on: after a period of cycles or of dispatched ops, a processor tags
//! an op, and after one of fetches a fetch; when that has retired or was delivered, registers tell what happened to it
//! (PPR, "Instruction Based Sampling"; Linux, arch/x86/events/amd/ibs.c).
//!
//! The units have an interrupt of their own, through an extended entry of the local vector table that firmware chooses.
//! Windows gives a driver no vector for it, so the entry stays masked, and a sample is looked at in the interrupt of a
//! counter. For ops its interval is a little longer than the period: the op was tagged just before. Nothing counts
//! fetches as the unit does, so instructions are counted, and the period is the fetches that these need at least.
//!
//! | look | accesses |
//! |---|---|
//! | no op | 1 R + 1 W |
//! | an op | 4 R + 1 W, 3 R where no bit tells an invalid address |
//! | a store, a load | 1 R, 2 R more |
//! | no fetch, a fetch | 1 R + 1 W, 2 R + 1 W; on families 16h to 18h 1 W more |
//!
//! A start needs 1 R + 1 W, a stop 1 R + 2 W. Physical addresses are never read.

pub(crate) mod control;
mod fetch;
mod missing_feature;
mod op;
mod summary;

use x86_defs::amd::ibs::{self as registers, IbsCtl};
use x86_defs::cpuid::{
    AmdProcessor, Leaf1Ecx, Leaf8000001BEax, Leaf80000001Ecx, Signature, VENDOR_AMD, VENDOR_HYGON, leaf,
};
use x86_defs::local_apic::{LvtPerformance, X2APIC_EXTENDED_LVT};

use crate::cpu::{Cpu, Cpuid, Msr, vendor};
use crate::disturbance::Disturbance;
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi::{self, EntryLocation};

use control::Control;
pub use missing_feature::MissingFeature;
pub use op::{MemoryOp, Op};
pub use summary::Summary;

const IBSCTL: Msr = Msr::new(registers::IBSCTL);

/// Number of extended entries that a local APIC can have (APM Vol. 2 16.4.4: offsets 500H to 530H).
const ENTRIES: u8 = 4;

/// Returns an extended entry of the local vector table, in x2APIC mode.
#[must_use]
pub const fn x2apic_entry(index: u8) -> Msr {
    Msr::new(X2APIC_EXTENDED_LVT).at(index & (ENTRIES - 1))
}

/// Readings of a control register in which its unit samples something of the least period: they take dozens of cycles
/// each. No loop runs for it, which the counters of other sessions would count.
const TRIAL: u32 = 64;

/// What is counted between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Core clock cycles.
    Cycles,
    /// Ops that are dispatched, also of wrong paths.
    Ops,
    /// Fetches, also abandoned ones and those of wrong paths. It is fetches that are sampled then.
    Fetches,
}

impl Counted {
    /// Returns what stands for an event of a counter: cycles (PMCx076), and ops for instructions (PMCx0C0) and ops that
    /// retired (PMCx0C1). Where `fetches` are to be sampled, they stand for instructions alone.
    #[must_use]
    pub const fn of(select: u64, fetches: bool) -> Option<Self> {
        /// All fields but USR and OS, INT, AnyThread and EN.
        const EVENT: u64 = 0xF_FFFF_FFFF & !(3 << 16 | 7 << 20);
        match select & EVENT {
            0xC0 if fetches => Some(Self::Fetches),
            _ if fetches => None,
            0x76 => Some(Self::Cycles),
            0xC0 | 0xC1 => Some(Self::Ops),
            _ => None,
        }
    }

    /// Returns what a processor lacks that does not count this.
    #[must_use]
    pub const fn lacking(self) -> MissingFeature {
        match self {
            Self::Cycles | Self::Ops => MissingFeature::NoOps,
            Self::Fetches => MissingFeature::NoFetches,
        }
    }

    /// Returns the control register of the unit.
    const fn control(self) -> &'static Control {
        match self {
            Self::Cycles | Self::Ops => &control::OPS,
            Self::Fetches => &control::FETCHES,
        }
    }
}

/// The units of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ibs {
    features: Leaf8000001BEax,
    processor: Option<AmdProcessor>,
}

/// What a session lets a unit do on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    counted: Counted,
    /// What was written.
    control: u64,
    /// What the register contained, to be put back.
    found: u64,
}

/// What the unit shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing since the last look.
    Nothing,
    /// This op.
    Op(Op),
    /// Another program uses the unit.
    Taken,
}

/// Examines the current processor, by CPUID alone.
///
/// # Errors
/// What it lacks.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn examine(cpu: &impl Cpuid) -> Result<Ibs, MissingFeature> {
    /// The features where the leaf does not say (BKDG of family 10h).
    const WITHOUT_LEAF: Leaf8000001BEax = Leaf8000001BEax::new().with_ibs_ffv(true).with_op_sam(true);
    let last = cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax;
    let has_unit = matches!(vendor(cpu), VENDOR_AMD | VENDOR_HYGON)
        && last >= leaf::EXTENDED_FEATURES
        && Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx).ibs();
    let identity = cpu.cpuid(leaf::FEATURES, 0);
    if Leaf1Ecx::from_bits(identity.ecx).hypervisor() {
        return Err(MissingFeature::Hypervisor);
    }
    let has_leaf = last >= leaf::INSTRUCTION_BASED_SAMPLING;
    let listed =
        Leaf8000001BEax::from_bits(if has_leaf { cpu.cpuid(leaf::INSTRUCTION_BASED_SAMPLING, 0).eax } else { 0 });
    let features = if listed.ibs_ffv() { listed } else { WITHOUT_LEAF };
    if !has_unit || !features.op_sam() && !features.fetch_sam() {
        return Err(MissingFeature::NoUnit);
    }
    Ok(Ibs { features, processor: AmdProcessor::of(Signature::from_bits(identity.eax)) })
}

/// Accesses the registers of a unit for the first time. [`Phase::Write`](crate::first_access::Phase::Write) lets it
/// sample the accesses themselves; it is known by then that its interrupt is masked.
///
/// # Errors
/// The fault of a register, or [`Access::ReadBack`] of the control register if nothing was sampled.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>, control: &Control) -> Result<(), Faulted> {
    let Ok(unit) = examine(first.cpuid()) else { return Ok(()) };
    let entry = entry_of(first.read(IBSCTL)?);
    if let (Some(entry), Some(EntryLocation::Register)) = (entry, lvt_pmi::place_by(first)?) {
        first.read(x2apic_entry(entry))?;
    }
    let msr = control.msr;
    control.registers.iter().try_for_each(|register| first.read(*register).map(drop))?;
    first.trying(msr, |_| {
        for counted in control.counted.iter().copied().filter(|counted| unit.counts(*counted)) {
            first.demand(msr, control::settings(counted, unit.features, u32::MAX))?;
        }
        if unit.features.rd_wr_op_cnt() && control.random != 0 {
            first.write(msr, control.random)?;
        }
        first.write(msr, 0)?;
        let least = control.counted.first().map_or(0, |counted| control::settings(*counted, unit.features, 0));
        first.write(msr, least | control.enable)?;
        let mut sampled = first.read(msr)?;
        for _ in 0..TRIAL {
            if sampled & control.valid != 0 {
                break;
            }
            sampled = first.read(msr)?;
        }
        first.write(msr, sampled & !control.cleared_first)?;
        first.write(msr, 0)?;
        if first.writes() && sampled & control.valid == 0 {
            return Err(first.fail(Fault::of_value(Access::ReadBack, msr, sampled)));
        }
        Ok(())
    })
}

/// Returns what the control register of a unit contains, after it was written back.
pub(crate) fn try_found(first: &FirstAccess<'_, impl GuardedCpu>, counted: Counted) -> Result<u64, Faulted> {
    first.read_write(counted.control().msr)
}

/// Returns the extended entry through which the unit interrupts, if firmware has chosen one that exists.
fn entry_of(control: u64) -> Option<u8> {
    let control = IbsCtl::from_bits(control);
    Some(control.lvt_offset()).filter(|entry| control.lvt_offset_val() && *entry < ENTRIES)
}

impl Ibs {
    /// Returns whether it counts this.
    #[must_use]
    pub const fn counts(self, counted: Counted) -> bool {
        match counted {
            Counted::Cycles => self.features.op_sam(),
            Counted::Ops => self.features.op_sam() && self.features.op_cnt(),
            Counted::Fetches => self.features.fetch_sam(),
        }
    }

    /// Returns whether sources have five bits, and fetches tell misses of the op cache and of the L3 cache.
    #[must_use]
    pub const fn has_zen4_extensions(self) -> bool {
        self.features.zen4_extensions()
    }

    /// Returns its processor, if it is known.
    #[must_use]
    pub const fn processor(self) -> Option<AmdProcessor> {
        self.processor
    }

    /// Returns whether the counter of fetches begins a period only when the unit was off: families 16h to 18h (Linux,
    /// `fetch_count_reset_broken`).
    const fn counts_on(self) -> bool {
        matches!(self.processor, Some(AmdProcessor::Family16 | AmdProcessor::Zen))
    }

    /// Checks that the current processor has the units, whose interrupt cannot be delivered: two reads.
    ///
    /// # Errors
    /// What it lacks, or why it could.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn check(self, cpu: &impl Cpu) -> Result<(), MissingFeature> {
        if examine(cpu)? != self {
            return Err(MissingFeature::NoUnit);
        }
        let entry = entry_of(cpu.rdmsr(IBSCTL)).ok_or(MissingFeature::NoEntry)?;
        let entry = LvtPerformance::from_bits(cpu.extended_lvt(entry));
        if entry.masked() { Ok(()) } else { Err(MissingFeature::Interrupts) }
    }

    /// Returns the control register and what it contains if another program uses the unit: one read.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(self, cpu: &impl Cpu, counted: Counted) -> Option<(u32, u64)> {
        let control = counted.control();
        let found = cpu.rdmsr(control.msr);
        (found & control.enable != 0).then_some((control.msr.address(), found))
    }

    /// Lets the unit sample on the current processor, for a counter with this interval. `None` if the control register
    /// has other settings than its trial [found](crate::Hal::try_ibs): nothing was written then.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(self, cpu: &impl Cpu, counted: Counted, interval: u32, found: u64) -> Option<Armed> {
        let control = counted.control();
        let now = cpu.rdmsr(control.msr);
        if control.differs(now, found) {
            return None;
        }
        if now & control.enable != 0 {
            control.leave(cpu, now, 0);
        }
        let written = control::settings(counted, self.features, control::period(counted, interval)) | control.enable;
        cpu.wrmsr(control.msr, written);
        Some(Armed { counted, control: written, found })
    }

    /// Ends the sampling, with the register as it was found; one that another program has taken over stays as it is.
    /// What is tagged may still be valid later, which does not interrupt.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(self, cpu: &impl Cpu, armed: Armed) {
        let control = armed.counted.control();
        let now = cpu.rdmsr(control.msr);
        if control.differs(now, armed.control) {
            return;
        }
        control.leave(cpu, now, armed.found);
    }

    /// Compares the control register with what was written: one read.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn compare(self, cpu: &impl Cpu, armed: Armed) -> Option<Disturbance> {
        let control = armed.counted.control();
        let found = cpu.rdmsr(control.msr) & control.settings;
        Disturbance::of(control.msr, found, armed.control & control.settings)
    }

    /// Reads what was sampled since the last look, and begins the next period, for a counter with this interval.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn look(self, cpu: &impl Cpu, armed: &mut Armed, interval: u32) -> Look {
        let control = armed.counted.control();
        let now = cpu.rdmsr(control.msr);
        if control.differs(now, armed.control) {
            return Look::Taken;
        }
        let op = (now & control.valid != 0).then(|| match armed.counted {
            Counted::Fetches => fetch::read(cpu, now),
            Counted::Cycles | Counted::Ops => op::read(cpu, self.features.rip_invalid_chk()),
        });
        let period = control::period(armed.counted, interval);
        armed.control = control::settings(armed.counted, self.features, period) | control.enable;
        if armed.counted == Counted::Fetches && self.counts_on() {
            cpu.wrmsr(control.msr, armed.control & !control.enable);
        }
        // What the processor has set at random stays.
        let random = if self.features.rd_wr_op_cnt() { now & control.random } else { 0 };
        cpu.wrmsr(control.msr, armed.control | random);
        op.flatten().map_or(Look::Nothing, Look::Op)
    }
}
