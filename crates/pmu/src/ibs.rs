//! Instruction-Based Sampling of ops, AMD from family 10h on: after a period of cycles or of dispatched ops, the
//! processor tags an op, and when that has retired, its registers tell what happened to it (PPR, "Instruction Based
//! Sampling"; Linux, arch/x86/events/amd/ibs.c).
//!
//! The unit has an interrupt of its own, through an extended entry of the local vector table that firmware chooses.
//! Windows gives a driver no vector for it, so the entry stays masked, and a sample is looked at in the interrupt of a
//! counter, whose interval is a little longer than the period: the op was tagged just before.
//!
//! | look | accesses |
//! |---|---|
//! | no sample | 1 R + 1 W |
//! | an op | 4 R + 1 W, 3 R where no bit tells an invalid address |
//! | a store, a load | 1 R, 2 R more |
//!
//! A start needs 1 R + 2 W, a stop 1 R + 2 W. The physical address is never read.

mod missing_feature;
mod op;

use x86_defs::amd::ibs::{self as registers, IbsCtl, IbsOpCtl};
use x86_defs::cpuid::{
    AmdProcessor, Leaf1Ecx, Leaf8000001BEax, Leaf80000001Ecx, Signature, VENDOR_AMD, VENDOR_HYGON, leaf,
};
use x86_defs::local_apic::{LvtPerformance, X2APIC_EXTENDED_LVT};

use crate::cpu::{Cpu, Cpuid, Msr, vendor};
use crate::disturbance::Disturbance;
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi::{self, EntryLocation};

pub use missing_feature::MissingFeature;
pub use op::{MemoryOp, Op};

const IBS_OP_CTL: Msr = Msr::new(registers::IBS_OP_CTL);
const IBSCTL: Msr = Msr::new(registers::IBSCTL);

/// Number of extended entries that a local APIC can have (APM Vol. 2 16.4.4: offsets 500H to 530H).
const ENTRIES: u8 = 4;

/// Returns an extended entry of the local vector table, in x2APIC mode.
#[must_use]
pub const fn x2apic_entry(index: u8) -> Msr {
    Msr::new(X2APIC_EXTENDED_LVT).at(index & (ENTRIES - 1))
}

/// The least period (Linux, `ibs_op_pmu`).
const LEAST_PERIOD: u32 = 0x90;

/// Readings of the control register in which the unit samples an op of its [least period](LEAST_PERIOD): they take
/// dozens of cycles each. No loop runs for it, which the counters of other sessions would count.
const TRIAL: u32 = 64;

/// The low bits of the counter that the processor sets at random.
const RANDOM: u32 = 0x7F;

/// What is counted between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Core clock cycles.
    Cycles,
    /// Ops that are dispatched, also of wrong paths.
    Ops,
}

impl Counted {
    /// Returns what stands for an event of a counter: cycles (PMCx076), and ops for instructions (PMCx0C0) and ops that
    /// retired (PMCx0C1).
    #[must_use]
    pub const fn of(select: u64) -> Option<Self> {
        /// All fields but USR and OS, INT, AnyThread and EN.
        const EVENT: u64 = 0xF_FFFF_FFFF & !(3 << 16 | 7 << 20);
        match select & EVENT {
            0x76 => Some(Self::Cycles),
            0xC0 | 0xC1 => Some(Self::Ops),
            _ => None,
        }
    }
}

/// The unit of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ibs {
    features: Leaf8000001BEax,
    processor: Option<AmdProcessor>,
}

/// What a session lets the unit do on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    /// What was written, without the counter.
    control: IbsOpCtl,
    /// What the register contained, to be put back.
    found: u64,
}

/// What the unit shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// No op has retired since.
    Nothing,
    /// This op has.
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
    if !has_unit || !features.op_sam() {
        return Err(MissingFeature::NoUnit);
    }
    Ok(Ibs { features, processor: AmdProcessor::of(Signature::from_bits(identity.eax)) })
}

/// Accesses the registers for the first time. [`Phase::Write`](crate::first_access::Phase::Write) lets the unit sample
/// the accesses themselves; it is known by then that its interrupt is masked.
///
/// # Errors
/// The fault of a register, or [`Access::ReadBack`] of the control register if nothing was sampled.
pub(crate) fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
    let Ok(unit) = examine(first.cpuid()) else { return Ok(()) };
    let entry = entry_of(first.read(IBSCTL)?);
    if let (Some(entry), Some(EntryLocation::Register)) = (entry, lvt_pmi::place_by(first)?) {
        first.read(x2apic_entry(entry))?;
    }
    op::REGISTERS.into_iter().try_for_each(|register| first.read(register).map(drop))?;
    first.trying(IBS_OP_CTL, |_| {
        for counted in [Counted::Cycles, Counted::Ops] {
            if unit.counts(counted) {
                first.demand(IBS_OP_CTL, unit.settings(counted, u32::MAX).into_bits())?;
            }
        }
        if unit.features.rd_wr_op_cnt() {
            first.write(IBS_OP_CTL, IbsOpCtl::new().with_cur_cnt(RANDOM).into_bits())?;
        }
        first.write(IBS_OP_CTL, 0)?;
        first.write(IBS_OP_CTL, unit.settings(Counted::Cycles, LEAST_PERIOD).with_en(true).into_bits())?;
        let mut sampled = IbsOpCtl::from_bits(first.read(IBS_OP_CTL)?);
        for _ in 0..TRIAL {
            if sampled.val() {
                break;
            }
            sampled = IbsOpCtl::from_bits(first.read(IBS_OP_CTL)?);
        }
        first.write(IBS_OP_CTL, 0)?;
        if first.writes() && !sampled.val() {
            return Err(first.fail(Fault::of_value(Access::ReadBack, IBS_OP_CTL, sampled.into_bits())));
        }
        Ok(())
    })
}

/// Returns what the control register contains, after it was written back.
pub(crate) fn try_found(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<u64, Faulted> {
    first.read_write(IBS_OP_CTL)
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
        matches!(counted, Counted::Cycles) || self.features.op_cnt()
    }

    /// Returns whether its sources have five bits.
    #[must_use]
    pub const fn has_long_sources(self) -> bool {
        self.features.zen4_extensions()
    }

    /// Returns its processor, if it is known.
    #[must_use]
    pub const fn processor(self) -> Option<AmdProcessor> {
        self.processor
    }

    /// Checks that the current processor has the unit, whose interrupt cannot be delivered: two reads.
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
    pub fn in_use_elsewhere(self, cpu: &impl Cpu) -> Option<(u32, u64)> {
        let found = cpu.rdmsr(IBS_OP_CTL);
        IbsOpCtl::from_bits(found).en().then_some((IBS_OP_CTL.address(), found))
    }

    /// Lets the unit sample on the current processor, for a counter with this interval. `None` if the control register
    /// has other settings than its trial [found](crate::Hal::try_ibs): nothing was written then.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(self, cpu: &impl Cpu, counted: Counted, interval: u32, found: u64) -> Option<Armed> {
        let settings = |control| settings_of(IbsOpCtl::from_bits(control));
        if settings(cpu.rdmsr(IBS_OP_CTL)) != settings(found) {
            return None;
        }
        let control = self.settings(counted, period(interval)).with_en(true);
        // Family 16h to 18h begin a period only when the unit was off.
        cpu.wrmsr(IBS_OP_CTL, 0);
        cpu.wrmsr(IBS_OP_CTL, control.into_bits());
        Some(Armed { control, found })
    }

    /// Ends the sampling, with the register as it was found; one that another program has taken over stays as it is. An
    /// op that is tagged may still set [`val`](IbsOpCtl::val), which does not interrupt.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(self, cpu: &impl Cpu, armed: Armed) {
        let control = IbsOpCtl::from_bits(cpu.rdmsr(IBS_OP_CTL));
        if settings_of(control) != settings_of(armed.control) {
            return;
        }
        // Erratum 420: the period first.
        cpu.wrmsr(IBS_OP_CTL, control.with_max_cnt(0).with_max_cnt_ext(0).with_val(false).into_bits());
        cpu.wrmsr(IBS_OP_CTL, armed.found);
    }

    /// Compares the control register with what was written: one read.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn compare(self, cpu: &impl Cpu, armed: Armed) -> Option<Disturbance> {
        let found = settings_of(IbsOpCtl::from_bits(cpu.rdmsr(IBS_OP_CTL)));
        Disturbance::of(IBS_OP_CTL, found.into_bits(), settings_of(armed.control).into_bits())
    }

    /// Reads the op that was sampled since the last look, and begins the next period, for a counter with this interval.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn look(self, cpu: &impl Cpu, armed: &mut Armed, interval: u32) -> Look {
        let control = IbsOpCtl::from_bits(cpu.rdmsr(IBS_OP_CTL));
        if settings_of(control) != settings_of(armed.control) {
            return Look::Taken;
        }
        let op = control.val().then(|| op::read(cpu, self.features.rip_invalid_chk())).flatten();
        let next = self.settings(Counted::Cycles, period(interval));
        armed.control = armed.control.with_max_cnt(next.max_cnt()).with_max_cnt_ext(next.max_cnt_ext());
        // What the processor has set at random stays.
        let random = if self.features.rd_wr_op_cnt() { control.cur_cnt() & RANDOM } else { 0 };
        cpu.wrmsr(IBS_OP_CTL, armed.control.with_cur_cnt(random).into_bits());
        op.map_or(Look::Nothing, Look::Op)
    }

    /// Returns the settings for a period.
    fn settings(self, counted: Counted, period: u32) -> IbsOpCtl {
        let most = if self.features.op_cnt_ext() { (1 << 27) - 1 } else { (1 << 20) - 1 };
        let period = period.min(most);
        IbsOpCtl::new()
            .with_max_cnt((period >> 4 & 0xFFFF) as u16)
            .with_max_cnt_ext((period >> 20 & 0x7F) as u8)
            .with_cnt_ctl(counted == Counted::Ops)
    }
}

/// Returns what software alone changes.
const fn settings_of(control: IbsOpCtl) -> IbsOpCtl {
    control.with_val(false).with_cur_cnt(0)
}

/// Returns the period for a counter with this interval: an eighth of it, and at least 512, is left for the op to
/// retire, and for the time until the interrupt. Dispatched ops are more than those that retire, and cycles are also
/// counted where the counter does not count.
fn period(interval: u32) -> u32 {
    interval.saturating_sub((interval / 8).max(512)).max(LEAST_PERIOD)
}
