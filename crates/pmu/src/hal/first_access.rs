//! The first accesses of each processor, and their results.

use core::sync::atomic::{AtomicU64, Ordering};

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::debug_store;
use crate::first_access::{Access, Fault, FirstAccess, GuardedCpu, Phase, RegisterGroup};
use crate::lvt_pmi;

/// Results of the first accesses on one processor, one word for each group: [`UNTRIED`], one more than the last phase
/// that passed, or a fault of any phase.
#[derive(Debug, Default)]
pub(super) struct FirstAccesses([AtomicU64; RegisterGroup::COUNT]);

const UNTRIED: u64 = 0;
/// Marks a fault: the kind of access is in bits 39:32, the number in bits 31:0.
const FAULTED: u64 = 1 << 63;

fn encode(phase: Phase, result: Result<(), Fault>) -> u64 {
    result.map_or_else(
        |fault| FAULTED | (fault.access as u64) << 32 | u64::from(fault.number),
        |()| UNTRIED + 1 + phase as u64,
    )
}

fn decode(word: u64, phase: Phase) -> Option<Result<(), Fault>> {
    let [n0, n1, n2, n3, access, ..] = word.to_le_bytes();
    if word & FAULTED == 0 {
        return (word >= encode(phase, Ok(()))).then_some(Ok(()));
    }
    Access::from_number(access).map(|access| Err(Fault { access, number: u32::from_le_bytes([n0, n1, n2, n3]) }))
}

impl Hal {
    /// Returns the result of the first accesses to `group` on `processor`, if they were made. It is remembered as long
    /// as the driver is loaded.
    #[must_use]
    pub fn first_accessed(
        &self,
        processor: ProcessorIndex,
        group: RegisterGroup,
        phase: Phase,
    ) -> Option<Result<(), Fault>> {
        let known = self.first_accesses.get(processor.as_usize())?.0.get(group as usize)?;
        decode(known.load(Ordering::Relaxed), phase)
    }

    /// Accesses the registers of `group` on the current processor, which is `processor`, for the first time. Stops at
    /// the first fault. The counters of the processor must not be [held](Self::holds). The caller holds the planning
    /// lock.
    ///
    /// # Errors
    /// The fault of a register that the driver cannot do without.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn access_first(
        &self,
        processor: ProcessorIndex,
        group: RegisterGroup,
        phase: Phase,
        cpu: &impl GuardedCpu,
    ) -> Result<(), Fault> {
        let first = FirstAccess::new(cpu, phase);
        let result = match group {
            RegisterGroup::Counters => self.access_counters(processor, &first),
            RegisterGroup::LocalApic => lvt_pmi::access_first(&first),
            RegisterGroup::DebugStoreFeatures => debug_store::examine_first(&first).map(|_| ()),
            RegisterGroup::SaveArea => debug_store::access_save_area(&first),
            RegisterGroup::DebugStore => debug_store::access_first(&first),
        };
        if let Some(known) = self.first_accesses.get(processor.as_usize()).and_then(|each| each.0.get(group as usize)) {
            known.store(encode(phase, result), Ordering::Relaxed);
        }
        result
    }

    fn access_counters(
        &self,
        processor: ProcessorIndex,
        first: &FirstAccess<'_, impl GuardedCpu>,
    ) -> Result<(), Fault> {
        let interface = self.whole_interface_of(processor).access_first(first)?;
        if let Some(held) = self.held.get(processor.as_usize()) {
            held.known.set_capabilities(interface.capabilities());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_remembered_as_it_was() {
        let both = |word| [Phase::Read, Phase::Write].map(|phase| decode(word, phase));
        assert_eq!(both(UNTRIED), [None, None]);
        assert_eq!(both(encode(Phase::Read, Ok(()))), [Some(Ok(())), None]);
        assert_eq!(both(encode(Phase::Write, Ok(()))), [Some(Ok(())); 2]);
        for access in Access::ALL {
            for number in [0, 1, 0x186, 1 << 30, 0xC000_0302, u32::MAX] {
                let fault = Fault { access, number };
                for phase in [Phase::Read, Phase::Write] {
                    assert_eq!(both(encode(phase, Err(fault))), [Some(Err(fault)); 2]);
                }
            }
        }
    }
}
