//! Processor generations by their events. Each family has its own event numbers (APM Vol. 2, 13.2.1): the HAL's table
//! has those of the K8, most of which Zen processors lack.

use x86_defs::cpuid::{Leaf1Ebx, Leaf80000008Ecx, Signature, leaf};

use super::{SOURCES, zen};
use crate::constraints::{Table, tables};
use crate::cpu::Cpuid;
use crate::source::ProfileSource;

/// Families that share a table of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Families before 10h: the events of the HAL's table.
    K8,
    /// Families 10h to 16h: the same events, and more that the HAL's table does not have.
    K10,
    /// Family 15h: the same, with events that only some counters count.
    Bulldozer,
    /// Family 17h: Zen, Zen+ and Zen 2.
    Zen,
    /// Family 19h: Zen 3, and Zen 4 under a hypervisor that hides PerfMonV2.
    Zen3,
    /// Family 19h with PerfMonV2: Zen 4.
    Zen4,
    /// Family 1Ah, Zen 5; and later families until they have a table.
    Zen5,
}

impl Generation {
    /// Returns the generation of the current processor, which must have long mode.
    pub fn of(cpu: &impl Cpuid, version_2: bool) -> Self {
        // The extended family is only added to the highest base family (same source).
        let signature = Signature::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).eax);
        match signature.family() {
            ..=0xF => Self::K8,
            0x15 => Self::Bulldozer,
            0x10..=0x16 => Self::K10,
            0x17 | 0x18 => Self::Zen,
            0x19 if version_2 => Self::Zen4,
            0x19 => Self::Zen3,
            0x1A.. => Self::Zen5,
        }
    }

    /// Returns whether EventSelect\[11:8\] exists: since family 10h (BKDG for family 10h, "Performance Event-Select
    /// Register").
    pub const fn has_wide_events(self) -> bool {
        !matches!(self, Self::K8)
    }

    /// Returns whether the current processor, of a family up to 14h, counts the events of its northbridge: the first core
    /// of each processor. All cores count them with the same counters, so that more than one would disturb each other
    /// (BKDG for family 10h, "Performance Monitor Events"; Linux, arch/x86/events/amd/core.c,
    /// `__amd_get_nb_event_constraints`). On a processor of two nodes, the second one is not counted.
    pub fn counts_northbridge(self, cpu: &impl Cpuid) -> bool {
        if !matches!(self, Self::K8 | Self::K10) || cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax < leaf::EXTENDED_CORES {
            return true;
        }
        let cores = Leaf80000008Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_CORES, 0).ecx);
        let bits = match cores.apic_id_size() {
            0 => u8::BITS - cores.cores_minus_1().leading_zeros(),
            size => u32::from(size),
        };
        let id = Leaf1Ebx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ebx).initial_apic_id();
        u32::from(id).trailing_zeros() >= bits
    }

    /// Returns the counters of each event, or `None` if all counters are alike.
    pub const fn constraints(self) -> Option<&'static Table> {
        match self {
            Self::Bulldozer => Some(&tables::BULLDOZER),
            _ => None,
        }
    }

    /// Returns whether an event can occur more than 15 times in a cycle, the most that one counter can add. It then
    /// takes an even counter and the following odd one, which are merged (PPR for family 17h, "Large Increment per Cycle
    /// Events").
    pub const fn has_large_increments(self, event: u16) -> bool {
        /// Retired SSE and AVX FLOPs.
        const FLOPS: u16 = 0x003;
        matches!(self, Self::Zen | Self::Zen3 | Self::Zen4 | Self::Zen5) && event == FLOPS
    }

    /// Returns the table of sources.
    pub const fn sources(self) -> &'static [ProfileSource] {
        match self {
            Self::K8 | Self::K10 | Self::Bulldozer => &SOURCES,
            Self::Zen => &zen::ZEN,
            Self::Zen3 => &zen::ZEN3,
            Self::Zen4 => &zen::ZEN4,
            Self::Zen5 => &zen::ZEN5,
        }
    }
}
