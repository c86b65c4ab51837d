//! Core types of hybrid processors, and the events that mean the same on all of them.
//!
//! The processors of a hybrid differ in their counters and events. The same event number can be two different events,
//! so counts of the two types are not summed.

use core::fmt;

use x86_defs::cpuid::{CORE_TYPE_ATOM, CORE_TYPE_CORE, Leaf1AEax, Leaf7Edx, LeafAEax, LeafAEbx, VENDOR_INTEL, leaf};
use x86_defs::intel::perfmon::ARCHITECTURAL_EVENTS;

use crate::cpu::{Cpuid, vendor};
use crate::source::RawEvent;

/// The type of a core. Its number is that in CPUID leaf 0x1A, EAX\[31:24\].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CoreType {
    /// Intel Atom: an E core.
    Atom = CORE_TYPE_ATOM,
    /// Intel Core: a P core.
    Core = CORE_TYPE_CORE,
}

impl CoreType {
    /// All types, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Core, Self::Atom];

    /// Returns the type of the current processor, or `None` if CPUID does not report one.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    #[must_use]
    pub fn of(cpu: &impl Cpuid) -> Option<Self> {
        if vendor(cpu) != VENDOR_INTEL || cpu.cpuid(leaf::VENDOR, 0).eax < leaf::NATIVE_MODEL {
            return None;
        }
        Self::from_number(Leaf1AEax::from_bits(cpu.cpuid(leaf::NATIVE_MODEL, 0).eax).core_type().into())
    }

    /// Returns the type with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|core_type| core_type.number() == number)
    }

    /// Returns the number in CPUID leaf 0x1A.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the name of its PMU in perf, with which the notation of its events begins.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Atom => "cpu_atom",
            Self::Core => "cpu_core",
        }
    }
}

impl fmt::Display for CoreType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns whether CPUID says that the machine has processors of both types, also if they are not active or are hidden
/// by a hypervisor.
///
/// # IRQL
/// Any.
#[must_use]
pub fn is_hybrid(cpu: &impl Cpuid) -> bool {
    vendor(cpu) == VENDOR_INTEL
        && cpu.cpuid(leaf::VENDOR, 0).eax >= leaf::STRUCTURED_FEATURES
        && Leaf7Edx::from_bits(cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx).hybrid()
}

/// A set of architectural events: bit i is event i of leaf 0xA EBX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchitecturalEvents(pub u32);

impl ArchitecturalEvents {
    /// Returns the events that the current processor has.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    #[must_use]
    pub fn of(cpu: &impl Cpuid) -> Self {
        if vendor(cpu) != VENDOR_INTEL || cpu.cpuid(leaf::VENDOR, 0).eax < leaf::ARCHITECTURAL_PERFMON {
            return Self(0);
        }
        let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
        let length = u32::from(LeafAEax::from_bits(perfmon.eax).ebx_length());
        let not_enumerated = u32::MAX.checked_shl(length).unwrap_or_default();
        Self(!(not_enumerated | LeafAEbx::from_bits(perfmon.ebx).into_bits()))
    }

    /// Returns whether the set contains a raw event: its event number and unit mask alone, because the other fields
    /// count clocks, whose number of events differs.
    #[must_use]
    pub fn contains(self, event: RawEvent) -> bool {
        let is_it = |(number, umask): &(u8, u8)| {
            RawEvent::new().with_event((*number).into()).with_umask((*umask).into()) == event
        };
        ARCHITECTURAL_EVENTS.iter().position(is_it).is_some_and(|index| self.0 >> index & 1 == 1)
    }
}
