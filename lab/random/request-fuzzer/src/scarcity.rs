//! Episodes in which one thing is scarce. Random requests nearly never reach the refusals that tell it.

mod checks;
mod start;

use cpuid_dumps::CpuIdentity;
use model::Quirk;
use simulation::SimMachine;

use crate::registers::of_counters;

/// What is scarce in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scarcity {
    /// Sessions that can sample at a time.
    Subscribers,
    /// Memory of rings.
    RingMemory,
    /// Slots of events by number.
    RawEvents,
    /// Registers for the values of off-core responses.
    ExtraRegisters,
    /// Counters that no other program uses.
    FreeCounters,
    /// Counters that work: those of one processor ignore what is written.
    WorkingCounters,
}

/// The processor whose counters do not work, if the machine has it.
const IDLE: u32 = 1;

/// Processors on which the rings of one session can take more memory than all may have.
const MANY: u32 = 22;

/// The register that every processor with off-core responses has.
const OFFCORE_RSP_0: u32 = 0x1A6;

impl Scarcity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Subscribers,
        Self::RingMemory,
        Self::RawEvents,
        Self::ExtraRegisters,
        Self::FreeCounters,
        Self::WorkingCounters,
    ];

    /// Returns whether it can be scarce on processors of an identity.
    pub fn can_be_on(self, identity: &'static CpuIdentity) -> bool {
        let many_events = ["Emon", "Amd64"].contains(&identity.expected.interface);
        match self {
            Self::Subscribers | Self::WorkingCounters => true,
            // A session has rings only on processors of its core type.
            Self::RingMemory => identity.odd_processors.is_none(),
            Self::RawEvents | Self::FreeCounters => many_events,
            Self::ExtraRegisters => {
                let machine = SimMachine::new(identity, 1);
                many_events && machine.processor(0).model().rdmsr(OFFCORE_RSP_0).is_ok()
            }
        }
    }

    /// Returns whether many sessions must run until it is scarce.
    pub fn takes_many_sessions(self) -> bool {
        matches!(self, Self::Subscribers | Self::RawEvents | Self::ExtraRegisters)
    }

    /// Returns how many processors the machine has, if the number matters.
    pub fn processors(self) -> Option<u32> {
        match self {
            Self::RingMemory => Some(MANY),
            Self::WorkingCounters => Some(IDLE + 1),
            _ => None,
        }
    }

    /// Prepares the processors, before there is an engine.
    pub fn set_up(self, machine: &SimMachine) {
        if self == Self::WorkingCounters {
            let quirks = of_counters().map(|register| Quirk::Ignores { register });
            machine.processor(IDLE).model().set_quirks(quirks);
        }
    }
}
