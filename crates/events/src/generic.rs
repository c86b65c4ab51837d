//! Names of events that are alike on all processors, as in perf.

use std::fmt;

use thiserror::Error;
use x86_defs::cpuid::{AmdProcessor, IntelProcessor};

use crate::event::{Counters, Encoding};
use crate::identity::{Identity, Vendor};

/// An event that perf names alike on all processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generic {
    /// `cycles`, `cpu-cycles`: clocks of a core that is not halted.
    Cycles,
    /// `instructions`: instructions retired.
    Instructions,
    /// `branches`, `branch-instructions`: branches retired.
    Branches,
    /// `branch-misses`: branches retired that were mispredicted.
    BranchMisses,
    /// `cache-references`: requests to the last-level cache; to the L2 on AMD's Zen.
    CacheReferences,
    /// `cache-misses`: those that missed.
    CacheMisses,
    /// `cpu-clock`: time, which no counter counts.
    CpuClock,
    /// `ref-cycles`: clocks of a core that is not halted, at a constant rate.
    RefCycles,
}

/// What a generic name stands for on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The passing of time.
    Time,
    /// An event of counters.
    Event {
        /// Its encoding; event 0 if only a fixed counter counts it.
        encoding: Encoding,
        /// The counters that count it.
        counters: Counters,
    },
    /// A profile source of the HAL, by its number: the processor has no event select registers of the usual form.
    Source(u32),
}

/// Why a generic name stands for nothing.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum GenericError {
    /// The processor has no such event.
    #[error("this processor ({1}) has no event for {0}")]
    NoEvent(Generic, Identity),
    /// The events of the processor are unknown.
    #[error("the events of this processor ({0}) are unknown")]
    UnknownProcessor(Identity),
}

impl Generic {
    /// All generic events.
    pub const ALL: [Self; 8] = [
        Self::Cycles,
        Self::Instructions,
        Self::Branches,
        Self::BranchMisses,
        Self::CacheReferences,
        Self::CacheMisses,
        Self::CpuClock,
        Self::RefCycles,
    ];

    /// Returns the names, the usual one first.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Cycles => &["cycles", "cpu-cycles"],
            Self::Instructions => &["instructions"],
            Self::Branches => &["branches", "branch-instructions"],
            Self::BranchMisses => &["branch-misses"],
            Self::CacheReferences => &["cache-references"],
            Self::CacheMisses => &["cache-misses"],
            Self::CpuClock => &["cpu-clock"],
            Self::RefCycles => &["ref-cycles"],
        }
    }

    /// Returns the usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names().first().copied().unwrap_or_default()
    }

    /// Returns the event of this name, in any case of letters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generic| generic.names().iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns what it stands for on a processor.
    ///
    /// # Errors
    /// If the processor is unknown, or has no such event.
    ///
    /// # References
    /// Intel: SDM Vol. 3B, Table 21-1 (architectural events) and Table 21-2 (fixed counters); P6: Linux,
    /// arch/x86/events/intel/p6.c, `p6_perfmon_event_map`. AMD: Linux, arch/x86/events/amd/core.c,
    /// `amd_perfmon_event_map`, `amd_zen1_perfmon_event_map` to `amd_zen4_perfmon_event_map`.
    pub fn target(self, identity: Identity) -> Result<Target, GenericError> {
        if self == Self::CpuClock {
            return Ok(Target::Time);
        }
        let found = match (identity.vendor, identity.family) {
            (Vendor::Intel, 5 | 0xF) => self.source().map(Target::Source),
            (Vendor::Intel, 6) if is_p6(identity) => self.on_p6(),
            (Vendor::Intel, 6..=0xE | 0x10..) => Some(self.architectural()),
            (Vendor::Amd, 0xF..=0x16) => self.before_zen(),
            (Vendor::Amd | Vendor::Hygon, 0x17..) => self.on_zen(has_reference_cycles(identity)),
            _ => return Err(GenericError::UnknownProcessor(identity)),
        };
        found.ok_or(GenericError::NoEvent(self, identity))
    }

    /// Returns the profile source, by its number in WDM.H. P5 and NetBurst select events by other registers.
    const fn source(self) -> Option<u32> {
        match self {
            Self::Cycles => Some(0x13),
            Self::Instructions => Some(0x02),
            Self::Branches => Some(0x06),
            Self::BranchMisses => Some(0x0B),
            Self::CacheMisses => Some(0x0A),
            Self::CacheReferences | Self::RefCycles | Self::CpuClock => None,
        }
    }

    const fn architectural(self) -> Target {
        match self {
            Self::Cycles => event(0x3C, 0x00, 1 << 1),
            Self::Instructions => event(0xC0, 0x00, 1),
            Self::Branches => event(0xC4, 0x00, 0),
            Self::BranchMisses => event(0xC5, 0x00, 0),
            Self::CacheReferences => event(0x2E, 0x4F, 0),
            Self::CacheMisses => event(0x2E, 0x41, 0),
            Self::CpuClock => Target::Time,
            // Event 3CH, unit mask 01H, counts in another unit on most processors (SDM Vol. 3B, 21.2.3).
            Self::RefCycles => Target::Event {
                encoding: Encoding { event: 0, umask: 3, ..NO_ENCODING },
                counters: Counters { general_mask: 0, fixed_mask: 1 << 2 },
            },
        }
    }

    const fn on_p6(self) -> Option<Target> {
        Some(match self {
            Self::Cycles => event(0x79, 0x00, 0),
            Self::Instructions => event(0xC0, 0x00, 0),
            Self::Branches => event(0xC4, 0x00, 0),
            Self::BranchMisses => event(0xC5, 0x00, 0),
            Self::CacheReferences => event(0x2E, 0x0F, 0),
            Self::CacheMisses => event(0x2E, 0x01, 0),
            Self::CpuClock => Target::Time,
            Self::RefCycles => return None,
        })
    }

    const fn before_zen(self) -> Option<Target> {
        Some(match self {
            Self::CacheReferences => event(0x7D, 0x07, 0),
            Self::CacheMisses => event(0x7E, 0x07, 0),
            Self::RefCycles => return None,
            other => return other.on_zen(false),
        })
    }

    const fn on_zen(self, has_reference_cycles: bool) -> Option<Target> {
        Some(match self {
            Self::Cycles => event(0x76, 0x00, 0),
            Self::Instructions => event(0xC0, 0x00, 0),
            Self::Branches => event(0xC2, 0x00, 0),
            Self::BranchMisses => event(0xC3, 0x00, 0),
            Self::CacheReferences => event(0x60, 0xFF, 0),
            Self::CacheMisses => event(0x64, 0x09, 0),
            Self::CpuClock => Target::Time,
            Self::RefCycles if has_reference_cycles => event(0x120, 0x01, 0),
            Self::RefCycles => return None,
        })
    }
}

impl fmt::Display for Generic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const NO_ENCODING: Encoding = Encoding { event: 0, umask: 0, cmask: 0, inv: false, edge: false, any: false, eq: false };

/// Returns an event of every general counter and these fixed ones.
const fn event(event: u16, umask: u16, fixed_mask: u16) -> Target {
    let encoding = Encoding { event, umask, ..NO_ENCODING };
    Target::Event { encoding, counters: Counters { fixed_mask, ..Counters::ANY } }
}

/// Returns whether a processor of Intel is older than architectural events: Pentium Pro to Pentium M.
fn is_p6(identity: Identity) -> bool {
    IntelProcessor::of_model(identity.family, identity.model) == Some(IntelProcessor::P6)
}

/// Returns whether a Zen has the event of reference cycles: since Zen 4.
fn has_reference_cycles(identity: Identity) -> bool {
    use AmdProcessor::{Milan, Zen, Zen3};
    match AmdProcessor::of_model(identity.family, identity.model) {
        Some(processor) => !matches!(processor, Zen | Milan | Zen3),
        None => identity.family >= 0x1A,
    }
}
