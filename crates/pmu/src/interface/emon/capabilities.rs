//! What tells the counters of one processor from those of another: all of it in a word, so that each processor of a
//! machine can have its own. On a hybrid one they differ (SDM Vol. 3B, "Performance Monitoring on Hybrid Processors").

use bitfield_struct::bitfield;
use x86_defs::cpuid::{Leaf1Ecx, LeafAEax, LeafAEbx, LeafAEcx, LeafAEdx, leaf};
use x86_defs::intel::perfmon::GlobalCtrl;

use super::precise::PreciseEvents;
use crate::cpu::Cpuid;
use crate::state;

/// The most general counters: IA32_PERFEVTSEL9 and IA32_PMC9 are the last that have addresses (SDM Vol. 4,
/// "Architectural MSRs").
pub const MAX_GENERAL: u8 = 10;

/// The fixed counters that are used: those of instructions, core cycles and reference cycles. The others count what no
/// source of the interface does.
pub const MAX_FIXED: u8 = 3;

/// The least bits of a fixed counter by which every interval can be armed.
const LEAST_WIDTH: u8 = 32;

/// The counters of a processor. Bits 0 to 9 and 32 to 34 stand where the global registers have those of the same
/// counters.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PmuCapabilities {
    /// A bit for each general counter.
    #[bits(10)]
    general: u16,
    /// General counters can be written whole. Not known from CPUID.
    pub full_width: bool,
    /// How many bits of 64 a general counter has not.
    #[bits(6)]
    pub missing_bits: u8,
    /// The same of a fixed counter.
    #[bits(6)]
    pub fixed_missing_bits: u8,
    /// Version of architectural performance monitoring.
    pub version: u8,
    /// There is IA32_PERF_CAPABILITIES.
    pub has_capabilities: bool,
    /// Bit i: fixed counter i can be used.
    #[bits(3)]
    pub fixed: u8,
    /// Leaf 0xA, EBX, as far as there are sources: a set bit says that the event is not available.
    #[bits(7)]
    absent: u8,
    /// How many of these mean something.
    #[bits(4)]
    enumerated: u8,
    /// General counters that record precisely (PEBS), from the first. Not known from CPUID.
    #[bits(3)]
    pub precise: u8,
    /// Which events they record: [`PreciseEvents`]. Known with these.
    #[bits(2)]
    precise_events_bits: u8,
    #[bits(9)]
    __: u16,
    /// How many general counters there are.
    #[bits(4)]
    pub count: u8,
}

const _: () = assert!(
    PmuCapabilities::EVERY == GlobalCtrl::new().with_general(0x3FF).with_fixed(0b111).into_bits(),
    "`own` and `EVERY` are values of the global registers"
);

impl PmuCapabilities {
    /// The bits of the global registers that belong to the counters, where there are all that can be.
    pub const EVERY: u64 = Self::new().with_general(0x3FF).with_fixed(0b111).into_bits();

    /// By the leaves of the current processor; without leaf 0xA it has no counters. Any IRQL.
    #[must_use]
    pub fn of(cpu: &impl Cpuid) -> Self {
        if cpu.cpuid(leaf::VENDOR, 0).eax < leaf::ARCHITECTURAL_PERFMON {
            return Self::new();
        }
        let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
        let (eax, ebx) = (LeafAEax::from_bits(perfmon.eax), LeafAEbx::from_bits(perfmon.ebx));
        let count = if eax.width() == 0 { 0 } else { eax.counters().min(MAX_GENERAL) };
        // No field below gets more than it has bits: to check that would be a panic.
        Self::new()
            .with_version(eax.version())
            .with_count(count & 0xF)
            .with_general((state::mask(count) & 0x3FF) as u16)
            .with_missing_bits(64_u8.saturating_sub(eax.width()) & 0x3F)
            .with_absent((ebx.into_bits() & 0x7F) as u8)
            .with_enumerated(eax.ebx_length().min(7) & 0xF)
            .with_has_capabilities(Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).pdcm())
            .fixed_by(LeafAEdx::from_bits(perfmon.edx), LeafAEcx::from_bits(perfmon.ecx))
    }

    /// Fixed counter i is there if it is below the number in EDX, or from version 5 on if ECX says so (SDM Vol. 2A, CPUID
    /// leaf 0xA).
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

    /// Which events are recorded precisely.
    #[must_use]
    pub const fn precise_events(self) -> PreciseEvents {
        PreciseEvents::from_bits(self.precise_events_bits())
    }

    /// The same processor, of which so many general counters record these events, from the first.
    #[must_use]
    pub const fn recording(self, counters: u8, events: PreciseEvents) -> Self {
        self.with_precise(counters & 7).with_precise_events_bits(events as u8)
    }

    /// General counters, and behind them places for the fixed ones up to the last that can be used.
    #[must_use]
    pub const fn counters(self) -> u8 {
        let places = u8::BITS - self.fixed().leading_zeros();
        self.count() + (places & 0xF) as u8
    }

    /// Whether there are registers over all counters.
    #[must_use]
    pub const fn has_global_control(self) -> bool {
        self.version() >= 2
    }

    /// The bits of the global registers that belong to the counters.
    #[must_use]
    pub const fn own(self) -> u64 {
        self.into_bits() & Self::EVERY
    }

    /// The bits of a general counter, all set.
    #[must_use]
    pub const fn mask(self) -> u64 {
        u64::MAX >> self.missing_bits()
    }

    /// How many bits a general counter has.
    #[must_use]
    pub const fn general_width(self) -> u8 {
        64 - self.missing_bits()
    }

    /// How many bits a fixed counter has.
    #[must_use]
    pub const fn fixed_width(self) -> u8 {
        64 - self.fixed_missing_bits()
    }

    /// Whether the bit of an event in leaf 0xA, EBX, means something.
    #[must_use]
    pub const fn enumerates(self, bit: u8) -> bool {
        bit < self.enumerated()
    }

    /// Whether that bit is set: the event is not available.
    #[must_use]
    pub const fn lacks(self, bit: u8) -> bool {
        self.absent() >> (bit & 7) & 1 == 1
    }
}
