//! Errata that the driver works around, and other traits of processors that CPUID does not report as they are.
//!
//! The table is the only place that knows which processors a workaround is for. The code of each workaround asks for
//! its [`Action`].

use core::ops::RangeInclusive;

use x86_defs::cpuid::{
    IntelProcessor, Leaf1Ecx, Leaf7Edx, Leaf80000001Ecx, LeafAEax, LeafAEdx, Signature, VENDOR_AMD, VENDOR_HYGON,
    VENDOR_INTEL, leaf,
};

use super::processors::IntelProcessors;
use crate::cpu::{Cpuid, vendor};
use crate::topology;

/// What the driver does on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Before general counters start, all four count certain events for a moment (`emon/reset.rs`).
    ResetCounters,
    /// While a thread counts an event of memory access, the other thread of its core does not use the counter with the
    /// same number (`hal/other_thread.rs`).
    KeepOtherThreadFree,
    /// General counter 3 is not touched (`emon/capabilities.rs`).
    LeaveCounter3,
    /// The processor has three fixed counters, even if CPUID reports fewer (`emon/capabilities.rs`).
    ThreeFixedCounters,
    /// Precise records are refused (`debug_store/errata.rs`).
    NoPreciseRecords,
    /// Precise records need at least this revision of the microcode (`debug_store/errata.rs`).
    PreciseRecordsSince(u32),
    /// Periods of INST_RETIRED.PREC_DIST are multiples of 64, at least 128 (`emon.rs`).
    AlignPeriods,
    /// Counters stand still in System Management Mode, if IA32_PERF_CAPABILITIES reports that they can
    /// (`emon/freeze.rs`).
    StopInSmm,
    /// An event that can occur more than 15 times in a cycle takes an even counter and the following odd one, which are
    /// merged (`amd64/pairs.rs`).
    MergeCounters,
    /// The first core of each node counts the events of the northbridge, the others do not (`topology.rs`).
    OneCorePerNode,
    /// Events in user mode alone take no general counter above 3 (`emon.rs`).
    LowCountersForUserAlone,
}

/// A trait, besides the signature, that a processor must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// Cores have several threads.
    Threads,
    /// CPUID reports the register TSX_FORCE_ABORT, and does not report that all transactions abort.
    Transactions,
    /// CPUID reports fewer than three fixed counters, and no hypervisor.
    FewFixedCounters,
    /// IA32_PERF_CAPABILITIES exists, in version 2 and later.
    Capabilities,
    /// The northbridge has no counters of its own.
    NoNorthbridgeCounters,
    /// CPUID reports more than four general counters: hyperthreading is off.
    MoreThanFourCounters,
}

/// The processors that a workaround is for.
#[derive(Debug)]
enum Processors {
    /// All of Intel's with architectural performance monitoring.
    Intel,
    /// Some of Intel's.
    Of(&'static [IntelProcessors]),
    /// AMD's families with these numbers, and Hygon's.
    Amd(RangeInclusive<u16>),
}

/// A workaround.
#[derive(Debug)]
pub struct Workaround {
    /// Its number, which never changes: replies have it as the number of a bit.
    pub number: u8,
    /// Numbers of the errata in the specification updates; none if the vendor gives none.
    pub errata: &'static [&'static str],
    /// What is done.
    pub action: Action,
    /// What is done, for users.
    pub effect: &'static str,
    /// Where it is described.
    pub source: &'static str,
    processors: Processors,
    condition: Condition,
}

const NEHALEM: IntelProcessors = IntelProcessors::of(&[IntelProcessor::Nehalem, IntelProcessor::Westmere]);
const CORE_2: IntelProcessors = IntelProcessors::of(&[IntelProcessor::Merom]);
/// Sandy Bridge, Ivy Bridge and Haswell.
const LEAKING: IntelProcessors = IntelProcessors::of(&[
    IntelProcessor::SandyBridge,
    IntelProcessor::SandyBridgeServer,
    IntelProcessor::IvyBridge,
    IntelProcessor::IvyBridgeServer,
    IntelProcessor::Haswell,
]);
const BROADWELL: IntelProcessors = IntelProcessors::of(&[IntelProcessor::Broadwell]);
const SKYLAKE: IntelProcessors = IntelProcessors::of(&[IntelProcessor::Skylake]);

const fn sandy_bridge(steppings: RangeInclusive<u8>) -> IntelProcessors {
    IntelProcessors { processors: &[IntelProcessor::SandyBridge], steppings }
}

const fn sandy_bridge_server(steppings: RangeInclusive<u8>) -> IntelProcessors {
    IntelProcessors { processors: &[IntelProcessor::SandyBridgeServer], steppings }
}

/// The workarounds, in the order of their numbers. Each has a test on the model of a processor that needs it:
///
/// | numbers | test |
/// |---|---|
/// | 0, 2, 3, 11, 13 | `crates/pmu/tests/workarounds.rs`, in a module with the name of the action |
/// | 1 | `crates/engine/tests/other_thread.rs` |
/// | 4 to 8 | `crates/pmu/tests/debug_store.rs` |
/// | 9 | `crates/pmu/tests/placement.rs` |
/// | 10 | `crates/engine/tests/sampling/unkind.rs` |
/// | 12 | `crates/engine/tests/northbridge.rs` |
pub const WORKAROUNDS: &[Workaround] = &[
    Workaround {
        number: 0,
        errata: &["AAK100", "AAP53", "BD53"],
        action: Action::ResetCounters,
        effect: "the general counters are reset before each start",
        source: "Linux, arch/x86/events/intel/core.c, intel_pmu_nhm_enable_all",
        processors: Processors::Of(&[NEHALEM]),
        condition: Condition::Always,
    },
    Workaround {
        number: 1,
        errata: &["BJ122", "BV98", "HSD29"],
        action: Action::KeepOtherThreadFree,
        effect: "events 0xD0 to 0xD3 keep the other thread's counter free",
        source: "Linux, arch/x86/events/intel/core.c, intel_ht_bug",
        processors: Processors::Of(&[LEAKING]),
        condition: Condition::Threads,
    },
    Workaround {
        number: 2,
        errata: &[],
        action: Action::LeaveCounter3,
        effect: "counter 3 is left to the microcode of TSX",
        source: "Linux commit 400816f60c54; CPUID.(7,0):EDX[13] and [11]",
        processors: Processors::Of(&[SKYLAKE]),
        condition: Condition::Transactions,
    },
    Workaround {
        number: 3,
        errata: &[],
        action: Action::ThreeFixedCounters,
        effect: "three fixed counters are used, though CPUID reports fewer",
        source: "Linux, arch/x86/events/intel/core.c, intel_pmu_init",
        processors: Processors::Intel,
        condition: Condition::FewFixedCounters,
    },
    Workaround {
        number: 4,
        errata: &["AJ67", "AJ68", "AJ69", "AJ106"],
        action: Action::NoPreciseRecords,
        effect: "precise events are refused: their records are unreliable",
        source: "Linux, arch/x86/events/intel/core.c, intel_clovertown_quirk",
        processors: Processors::Of(&[CORE_2]),
        condition: Condition::Always,
    },
    Workaround {
        number: 5,
        errata: &[],
        action: Action::PreciseRecordsSince(0x28),
        effect: "precise events need microcode 0x28 or newer",
        source: "Linux, arch/x86/events/intel/core.c, intel_sandybridge_quirk",
        processors: Processors::Of(&[sandy_bridge(7..=7)]),
        condition: Condition::Always,
    },
    Workaround {
        number: 6,
        errata: &[],
        action: Action::PreciseRecordsSince(0x618),
        effect: "precise events need microcode 0x618 or newer",
        source: "Linux, arch/x86/events/intel/core.c, intel_sandybridge_quirk",
        processors: Processors::Of(&[sandy_bridge_server(6..=6)]),
        condition: Condition::Always,
    },
    Workaround {
        number: 7,
        errata: &[],
        action: Action::PreciseRecordsSince(0x70C),
        effect: "precise events need microcode 0x70C or newer",
        source: "Linux, arch/x86/events/intel/core.c, intel_sandybridge_quirk",
        processors: Processors::Of(&[sandy_bridge_server(7..=7)]),
        condition: Condition::Always,
    },
    Workaround {
        number: 8,
        errata: &[],
        action: Action::PreciseRecordsSince(u32::MAX),
        effect: "precise events are refused: no microcode records them",
        source: "Linux, arch/x86/events/intel/core.c, intel_sandybridge_quirk",
        processors: Processors::Of(&[
            sandy_bridge(0..=6),
            sandy_bridge(8..=0xF),
            sandy_bridge_server(0..=5),
            sandy_bridge_server(8..=0xF),
        ]),
        condition: Condition::Always,
    },
    Workaround {
        number: 9,
        errata: &["BDM11", "BDM55"],
        action: Action::AlignPeriods,
        effect: "intervals of INST_RETIRED.PREC_DIST are multiples of 64",
        source: "Linux, arch/x86/events/intel/core.c, bdw_limit_period",
        processors: Processors::Of(&[BROADWELL]),
        condition: Condition::Always,
    },
    Workaround {
        number: 10,
        errata: &[],
        action: Action::StopInSmm,
        effect: "counters stop in System Management Mode, if they can",
        source: "Linux commit a01994f5e5c7; SDM Vol. 4, IA32_DEBUGCTL[14]",
        processors: Processors::Intel,
        condition: Condition::Capabilities,
    },
    Workaround {
        number: 11,
        errata: &[],
        action: Action::MergeCounters,
        effect: "event 0x003 takes two counters, which are merged",
        source: "Linux, arch/x86/events/amd/core.c, amd_core_pmu_init",
        processors: Processors::Amd(0x17..=u16::MAX),
        condition: Condition::Always,
    },
    Workaround {
        number: 12,
        errata: &[],
        action: Action::OneCorePerNode,
        effect: "one core of each node counts events of the northbridge",
        source: "Linux, arch/x86/events/amd/core.c, __amd_get_nb_event_constraints",
        processors: Processors::Amd(0..=0x14),
        condition: Condition::NoNorthbridgeCounters,
    },
    Workaround {
        number: 13,
        errata: &[],
        action: Action::LowCountersForUserAlone,
        effect: "events in user mode alone take counters 0 to 3",
        source: "likwid issues 59 and 517",
        processors: Processors::Of(&[BROADWELL]),
        condition: Condition::MoreThanFourCounters,
    },
];

impl Workaround {
    /// Returns the workaround as a set of one.
    const fn bit(&self) -> u64 {
        1 << (self.number & 0x3F)
    }

    const fn is_intels(&self) -> bool {
        !matches!(self.processors, Processors::Amd(_))
    }

    fn is_for(&self, cpu: &impl Cpuid, signature: Signature) -> bool {
        let is_listed = match &self.processors {
            Processors::Intel => true,
            Processors::Of(sets) => sets.iter().any(|set| set.has(signature)),
            Processors::Amd(families) => families.contains(&signature.family()),
        };
        is_listed && self.condition.holds(cpu)
    }
}

impl Condition {
    fn holds(self, cpu: &impl Cpuid) -> bool {
        match self {
            Self::Always => true,
            Self::Threads => topology::core_with_threads(cpu).is_some(),
            Self::Transactions => {
                let features = Leaf7Edx::from_bits(if highest_leaf(cpu) >= leaf::STRUCTURED_FEATURES {
                    cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx
                } else {
                    0
                });
                features.tsx_force_abort() && !features.rtm_always_abort()
            }
            Self::FewFixedCounters => {
                let perfmon = cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0);
                let version = LeafAEax::from_bits(perfmon.eax).version();
                let has_hypervisor = Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).hypervisor();
                (2..5).contains(&version) && !has_hypervisor && LeafAEdx::from_bits(perfmon.edx).fixed() < 3
            }
            Self::Capabilities => {
                LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).version() >= 2
                    && Leaf1Ecx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ecx).pdcm()
            }
            Self::NoNorthbridgeCounters => {
                !Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx).perf_ctr_ext_nb()
            }
            Self::MoreThanFourCounters => {
                LeafAEax::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).eax).counters() > 4
            }
        }
    }
}

fn highest_leaf(cpu: &impl Cpuid) -> u32 {
    cpu.cpuid(leaf::VENDOR, 0).eax
}

fn highest_extended_leaf(cpu: &impl Cpuid) -> u32 {
    cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax
}

/// The workarounds of a processor, by their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Workarounds(u64);

impl Workarounds {
    /// Returns those of the current processor.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn of_processor(cpu: &impl Cpuid) -> Self {
        let (is_intels, leaf) = match vendor(cpu) {
            VENDOR_INTEL if highest_leaf(cpu) >= leaf::ARCHITECTURAL_PERFMON => (true, leaf::FEATURES),
            VENDOR_AMD | VENDOR_HYGON if highest_extended_leaf(cpu) >= leaf::EXTENDED_FEATURES => {
                (false, leaf::EXTENDED_FEATURES)
            }
            _ => return Self::default(),
        };
        let signature = Signature::from_bits(cpu.cpuid(leaf, 0).eax);
        let of_vendor = WORKAROUNDS.iter().filter(|workaround| workaround.is_intels() == is_intels);
        let those = of_vendor.filter(|workaround| workaround.is_for(cpu, signature));
        Self(those.fold(0, |all, workaround| all | workaround.bit()))
    }

    /// Creates the set from its [bits](Self::bits). Unknown ones are ignored.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set as a mask: bit n stands for the workaround with number n.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the workarounds, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = &'static Workaround> {
        WORKAROUNDS.iter().filter(move |workaround| self.0 & workaround.bit() != 0)
    }

    /// Returns whether an action is among them.
    #[must_use]
    pub fn has(self, action: Action) -> bool {
        self.iter().any(|workaround| workaround.action == action)
    }
}
