//! Counters of a processor, packed into one word, so that each processor can have its own. On hybrid machines they
//! differ (SDM Vol. 3B, "Performance Monitoring on Hybrid Processors").

use bitfield_struct::bitfield;
use raw_cpuid::CpuIdResult;
use x86_defs::cpuid::{
    CORE_TYPE_CORE, IntelProcessor, Leaf1AEax, Leaf1Ecx, Leaf23Eax, Leaf23Ebx, Leaf71Eax, LeafAEax, LeafAEbx, LeafAEcx,
    LeafAEdx, Signature, leaf,
};
use x86_defs::intel::perfmon::{GLOBAL_FIXED_SHIFT, GlobalCtrl, GlobalStatus};

use super::Microarchitecture;
use crate::core_type;
use crate::cpu::Cpuid;
use crate::errata::workarounds::{Action, Workarounds};
use crate::state;

/// Maximum number of general counters: IA32_PERFEVTSEL9 and IA32_PMC9 are the last with addresses (SDM Vol. 4,
/// "Architectural MSRs").
pub const MAX_GENERAL: u8 = 10;

/// Number of fixed counters used: instructions, core cycles and reference cycles. The events of the others have no
/// source.
pub const MAX_FIXED: u8 = 3;

/// Minimum width of a fixed counter that can be armed with every interval.
const LEAST_WIDTH: u8 = 32;

/// Width of fixed counter 3 (SDM Vol. 3B, "Performance Metrics").
const SLOTS_WIDTH: u8 = 48;

/// The general counters of a P core that [hides](hides_counters) some.
const HIDDEN_GENERAL: u64 = 0xFF;

/// The counters of a processor that record precisely (PEBS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorders {
    /// Number of general counters, starting with counter 0: 0, 1, 4 or all.
    pub general: u8,
    /// Whether fixed counter 0 does.
    pub fixed: bool,
}

/// Numbers of general counters that record precisely: without PEBS, before Nehalem and on small cores, to Comet Lake,
/// and since Ice Lake, where all do.
const RECORDERS: [u8; 4] = [0, 1, 4, MAX_GENERAL];

/// The counters of a processor. Bits 0 to 9 and 32 to 34 have the positions of these counters in the global registers,
/// and bit 59 that of CTR_Frz in the status.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PmuCapabilities {
    /// Bit i: general counter i exists.
    #[bits(10)]
    pub general: u16,
    /// Whether general counters support full-width writes. CPUID does not report this.
    pub full_width: bool,
    /// 64 minus the width of a general counter.
    #[bits(6)]
    pub missing_bits: u8,
    /// 64 minus the width of a fixed counter.
    #[bits(6)]
    pub fixed_missing_bits: u8,
    /// Version of architectural performance monitoring; 7 for later ones.
    #[bits(3)]
    pub version: u8,
    /// Whether general counters above 3 count nothing in user mode alone.
    pub low_for_user_alone: bool,
    /// Whether the general counters must be [reset](super::reset) before they start.
    pub needs_reset: bool,
    /// Whether periods of some precise events must be aligned.
    pub aligns_periods: bool,
    /// Whether some events disturb the other thread of the core.
    pub disturbs_other_thread: bool,
    /// Whether the select registers have AnyThread.
    pub any_thread: bool,
    /// Whether IA32_PERF_CAPABILITIES exists.
    pub has_capabilities: bool,
    /// Bit i: fixed counter i is usable.
    #[bits(3)]
    pub fixed: u8,
    /// Leaf 0xA EBX for the events that have sources: a set bit means that the event is not available.
    #[bits(7)]
    absent: u8,
    /// Number of valid bits in `absent`.
    #[bits(3)]
    enumerated: u8,
    /// Whether it is a server of Sandy Bridge or Ivy Bridge, whose off-core responses have more bits.
    pub is_server: bool,
    /// Which of [`RECORDERS`] is the number of general counters that record precisely (PEBS). CPUID does not report
    /// this.
    #[bits(2)]
    recorders_code: u8,
    /// Whether fixed counter 0 records precisely. CPUID does not report this.
    fixed_records: bool,
    /// Number of the [`Microarchitecture`].
    #[bits(5)]
    microarchitecture_number: u8,
    /// Whether the processor has fixed counter 3, and by its microarchitecture the [metrics](super::metrics) of it.
    /// CPUID does not report these.
    pub slots: bool,
    /// Whether the select registers have UMASK2.
    pub umask2: bool,
    /// Whether the select registers have EQ.
    pub eq: bool,
    /// Whether counters can stand still in System Management Mode. CPUID does not report this.
    pub freeze_while_smm: bool,
    /// Whether IA32_DEBUGCTL can stop counters (SDM Vol. 4, IA32_DEBUGCTL), and answers.
    pub debug_control: bool,
    /// Whether the status has CTR_Frz, and the driver may clear it.
    pub ctr_frz: bool,
    /// Number of indexes of general counters: one more than that of the last one.
    #[bits(4)]
    pub count: u8,
}

const _: () = assert!(
    PmuCapabilities::EVERY == GlobalCtrl::new().with_general(0x3FF).with_fixed(0b111).into_bits(),
    "`own` and `EVERY` are values of the global registers"
);

const _: () = assert!(Microarchitecture::ALL.len() <= 1 << 5, "each has a number of 5 bits");

const _: () = assert!(
    PmuCapabilities::FREEZE == PmuCapabilities::new().with_ctr_frz(true).into_bits(),
    "`clearable` is a value of the status"
);

/// The first version whose status has CTR_Frz (SDM Vol. 3B 21.2.4).
const FIRST_WITH_FREEZE: u8 = 4;

impl PmuCapabilities {
    /// The bits of all possible counters in the global registers.
    pub const EVERY: u64 = Self::new().with_general(0x3FF).with_fixed(0b111).into_bits();

    /// CTR_Frz of the status.
    const FREEZE: u64 = GlobalStatus::new().with_ctr_frz(true).into_bits();

    /// Reads the CPUID leaves of the current processor, and adds the counters that they may [hide](hides_counters).
    /// Without leaf 0xA it has no counters.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn of(cpu: &impl Cpuid) -> Self {
        if cpu.cpuid(leaf::VENDOR, 0).eax < leaf::ARCHITECTURAL_PERFMON {
            return Self::new();
        }
        let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
        let (eax, ebx) = (LeafAEax::from_bits(perfmon.eax), LeafAEbx::from_bits(perfmon.ebx));
        let count = if eax.width() == 0 { 0 } else { eax.counters().min(MAX_GENERAL) };
        let hidden = if count > 0 && hides_counters(cpu) { HIDDEN_GENERAL } else { 0 };
        let has_capabilities = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).pdcm();
        // Values are masked to the width of their fields, because a check would be a panic.
        Self::new()
            .with_version(eax.version().min(7))
            .with_ctr_frz(eax.version() >= FIRST_WITH_FREEZE)
            .with_general_counters(state::mask(count) | hidden)
            .with_missing_bits(64_u8.saturating_sub(eax.width()) & 0x3F)
            .with_absent((ebx.into_bits() & 0x7F) as u8)
            .with_enumerated(eax.ebx_length().min(7) & 7)
            .with_is_server(is_server(cpu))
            .with_any_thread(eax.version() >= 3 && !LeafAEdx::from_bits(perfmon.edx).no_any_thread())
            .with_microarchitecture_number(Microarchitecture::of(cpu) as u8 & 0x1F)
            .with_has_capabilities(has_capabilities)
            .with_debug_control(has_capabilities && eax.version() >= 2)
            .fixed_by(LeafAEdx::from_bits(perfmon.edx), LeafAEcx::from_bits(perfmon.ecx))
            .extended_by_leaf_23(cpu)
            .with_workarounds(Workarounds::of_processor(cpu))
            .with_slots_of(cpu)
    }

    /// Adds fixed counter 3, if it has all its bits, and the processor can have metrics of it.
    fn with_slots_of(self, cpu: &impl Cpuid) -> Self {
        let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
        let (edx, ecx) = (LeafAEdx::from_bits(perfmon.edx), LeafAEcx::from_bits(perfmon.ecx));
        let by_leaf_23 = leaf_23(cpu).filter(|main| Leaf23Eax::from_bits(main.eax).counters());
        let fixed = match by_leaf_23 {
            Some(_) => cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 1).ebx.into(),
            None => state::mask(edx.fixed()) | u64::from(ecx.fixed_counters()),
        };
        let is_there = fixed >> MAX_FIXED & 1 == 1 || hides_counters(cpu);
        let has_counter = self.has_global_control() && self.fixed_width() == SLOTS_WIDTH && is_there;
        self.with_slots(has_counter && self.has_capabilities() && self.microarchitecture().metrics() > 0)
    }

    /// Applies the workarounds that concern counters.
    fn with_workarounds(self, workarounds: Workarounds) -> Self {
        let left = if workarounds.has(Action::LeaveCounter3) { 1 << 3 } else { 0 };
        let applied = self
            .with_general_counters(u64::from(self.general() & !left))
            // A hypervisor may hide the global registers that the reset uses.
            .with_needs_reset(self.has_global_control() & workarounds.has(Action::ResetCounters))
            .with_aligns_periods(workarounds.has(Action::AlignPeriods))
            .with_disturbs_other_thread(workarounds.has(Action::KeepOtherThreadFree))
            .with_low_for_user_alone(workarounds.has(Action::LowCountersForUserAlone));
        if workarounds.has(Action::ThreeFixedCounters) { applied.with_assumed_fixed() } else { applied }
    }

    /// Returns the capabilities with three fixed counters, which are as wide as the general ones if leaf 0xA reports no
    /// width (64 minus no missing bits).
    const fn with_assumed_fixed(self) -> Self {
        match self.fixed_width() {
            64 => self.with_fixed(0b111).with_fixed_missing_bits(self.missing_bits()),
            ..LEAST_WIDTH => self,
            _ => self.with_fixed(0b111),
        }
    }

    /// Sets the general counters by their bitmap; those without an address are ignored.
    const fn with_general_counters(self, bitmap: u64) -> Self {
        let general = (bitmap & 0x3FF) as u16;
        let count = u16::BITS - general.leading_zeros();
        self.with_general(general).with_count((count & 0xF) as u8)
    }

    /// Replaces the counters by those of leaf 0x23, and adds the bits of the select registers that it reports.
    fn extended_by_leaf_23(self, cpu: &impl Cpuid) -> Self {
        let Some(main) = leaf_23(cpu).filter(|_| self.count() > 0) else { return self };
        let selects = Leaf23Ebx::from_bits(main.ebx);
        let extended = self.with_umask2(selects.umask2()).with_eq(selects.eq());
        if !Leaf23Eax::from_bits(main.eax).counters() {
            return extended;
        }
        let counters = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 1);
        // A width that is too small leaves no usable fixed counter in either leaf.
        let fixed = if 64 - self.fixed_missing_bits() < LEAST_WIDTH { 0 } else { counters.ebx & 0b111 };
        extended.with_general_counters(counters.eax.into()).with_fixed((fixed & 0b111) as u8)
    }

    /// Adds the fixed counters. Fixed counter i exists if it is below the number in EDX, or from version 5 on if its
    /// bit in ECX is set (SDM Vol. 2A, CPUID leaf 0xA).
    fn fixed_by(self, edx: LeafAEdx, ecx: LeafAEcx) -> Self {
        let contiguous = state::mask(edx.fixed());
        let there = match self.version() {
            ..2 => 0,
            2..5 => contiguous,
            _ => contiguous | u64::from(ecx.fixed_counters()),
        };
        let usable = if edx.fixed_width() >= LEAST_WIDTH { there } else { 0 };
        self.with_fixed((usable & 0b111) as u8).with_fixed_missing_bits(64_u8.saturating_sub(edx.fixed_width()) & 0x3F)
    }

    /// Returns the microarchitecture.
    #[must_use]
    pub const fn microarchitecture(self) -> Microarchitecture {
        Microarchitecture::from_number(self.microarchitecture_number())
    }

    /// Returns the capabilities with these recorders.
    #[must_use]
    pub const fn recording(self, recorders: Recorders) -> Self {
        let code = match recorders.general {
            0 => 0,
            1..4 => 1,
            4 | 5 => 2,
            6.. => 3,
        };
        self.with_recorders_code(code).with_fixed_records(recorders.fixed)
    }

    /// Returns the counters that record precisely.
    #[must_use]
    pub const fn recorders(self) -> Recorders {
        let [none, one, four, all] = RECORDERS;
        let general = match self.recorders_code() {
            0 => none,
            1 => one,
            2 => four,
            _ => all,
        };
        Recorders { general, fixed: self.fixed_records() }
    }

    /// Returns the number of counter indexes: general counters, then fixed ones up to the last usable one.
    #[must_use]
    pub const fn counters(self) -> u8 {
        let places = u8::BITS - self.fixed().leading_zeros();
        self.count() + (places & 0xF) as u8
    }

    /// Returns whether the processor has global registers.
    #[must_use]
    pub const fn has_global_control(self) -> bool {
        self.version() >= 2
    }

    /// Returns the bits of the counters in the global registers.
    #[must_use]
    pub const fn own(self) -> u64 {
        self.into_bits() & Self::EVERY
    }

    /// Returns the capabilities without the counters that have these bits in the global registers. The others keep
    /// their indexes.
    #[must_use]
    pub const fn without(self, bits: u64) -> Self {
        Self::from_bits(self.into_bits() & !(bits & Self::EVERY))
    }

    /// Returns the bits of the status that the driver clears: those of the counters, and CTR_Frz. Not LBR_Frz, which
    /// belongs to the program that records last branches.
    #[must_use]
    pub const fn clearable(self) -> u64 {
        self.into_bits() & (Self::EVERY | Self::FREEZE)
    }

    /// Returns the general counters that count in these modes.
    #[must_use]
    pub const fn general_in(self, user: bool, kernel: bool) -> u16 {
        /// The counters that a thread also has while its core has two.
        const LOW: u16 = 0xF;
        if user && !kernel && self.low_for_user_alone() { self.general() & LOW } else { self.general() }
    }

    /// Returns the mask of a general counter.
    #[must_use]
    pub const fn mask(self) -> u64 {
        u64::MAX >> self.missing_bits()
    }

    /// Returns the width of a general counter.
    #[must_use]
    pub const fn general_width(self) -> u8 {
        64 - self.missing_bits()
    }

    /// Returns the width of a fixed counter.
    #[must_use]
    pub const fn fixed_width(self) -> u8 {
        64 - self.fixed_missing_bits()
    }

    /// Returns whether the bit of an event in leaf 0xA EBX is valid.
    #[must_use]
    pub const fn enumerates(self, bit: u8) -> bool {
        bit < self.enumerated()
    }

    /// Returns whether that bit is set: the event is not available.
    #[must_use]
    pub const fn lacks(self, bit: u8) -> bool {
        self.absent() >> (bit & 7) & 1 == 1
    }
}

/// Returns whether CPUID may hide counters of the current processor.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn hides_counters(cpu: &impl Cpuid) -> bool {
    let features = cpu.cpuid(leaf::FEATURES, 0);
    let processor = IntelProcessor::of(Signature::from_bits(features.eax));
    matches!(processor, Some(IntelProcessor::AlderLake | IntelProcessor::MeteorLake))
        && core_type::is_hybrid(cpu)
        && Leaf1AEax::from_bits(cpu.cpuid(leaf::NATIVE_MODEL, 0).eax).core_type() == CORE_TYPE_CORE
        && !Leaf1Ecx::from_bits(features.ecx).hypervisor()
}

/// Returns the bitmap of the general counters that leaf 0xA reports. On P cores that [hide](hides_counters) some, leaf
/// 0x23 reports no others.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn reported_general(cpu: &impl Cpuid) -> u64 {
    state::mask(LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).counters())
}

/// Returns whether the current processor is a server of Sandy Bridge or Ivy Bridge (Linux, `intel_pmu_init`).
fn is_server(cpu: &impl Cpuid) -> bool {
    let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
    matches!(IntelProcessor::of(signature), Some(IntelProcessor::SandyBridgeServer | IntelProcessor::IvyBridgeServer))
}

/// Returns subleaf 0 of leaf 0x23 of the current processor, if it has that leaf.
fn leaf_23(cpu: &impl Cpuid) -> Option<CpuIdResult> {
    let last_subleaf_of_7 = cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).eax;
    let has_leaf = cpu.cpuid(leaf::VENDOR, 0).eax >= leaf::ARCHITECTURAL_PERFMON_EXTENDED
        && last_subleaf_of_7 >= 1
        && Leaf71Eax::from_bits(cpu.cpuid(leaf::STRUCTURED_FEATURES, 1).eax).arch_perfmon_ext();
    has_leaf.then(|| cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 0))
}

/// Returns the counters that record by architectural PEBS, if the current processor has it (CPUID leaf 0x23, subleaves
/// 4 and 5; Linux wants both, arch/x86/events/intel/core.c, `intel_pmu_init`).
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn architectural_recorders(cpu: &impl Cpuid) -> Option<Recorders> {
    let subleaves = Leaf23Eax::from_bits(leaf_23(cpu)?.eax);
    if !subleaves.pebs_capabilities() || !subleaves.pebs_counters() {
        return None;
    }
    let counters = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 5);
    let general = (counters.eax.trailing_ones() & 0xFF) as u8;
    Some(Recorders { general: general.min(MAX_GENERAL), fixed: counters.ecx & 1 == 1 })
}

/// Returns the bits in the global registers of the counters that can reload each other, if the current processor has
/// that (CPUID leaf 0x23, subleaf 2). Under a hypervisor there are none: it virtualizes what others use.
///
/// # IRQL
/// Any.
pub fn reloadable(cpu: &impl Cpuid) -> u64 {
    let is_virtual = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).hypervisor();
    let has_reload = |main: &CpuIdResult| Leaf23Eax::from_bits(main.eax).auto_counter_reload();
    if is_virtual || !leaf_23(cpu).is_some_and(|main| has_reload(&main)) {
        return 0;
    }
    let counters = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON_EXTENDED, 2);
    let both = |general: u32, fixed: u32| u64::from(general) | u64::from(fixed) << GLOBAL_FIXED_SHIFT;
    both(counters.eax, counters.ebx) & both(counters.ecx, counters.edx)
}
