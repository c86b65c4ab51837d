//! The results of the first accesses.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{Access, Fault, Phase, RegisterGroup};

/// Results of the first accesses on one processor. For each group a word: [`UNTRIED`], one more than the last phase
/// that passed, or a fault of any phase; and the value that faulted.
#[derive(Debug)]
pub(crate) struct FirstAccesses([(AtomicU64, AtomicU64); RegisterGroup::COUNT]);

impl FirstAccesses {
    /// Creates the results of a processor on which no access was made.
    pub(crate) const fn new() -> Self {
        Self([const { (AtomicU64::new(UNTRIED), AtomicU64::new(0)) }; RegisterGroup::COUNT])
    }

    /// Returns the result of a phase of `group`, if the accesses were made.
    pub(crate) fn get(&self, group: RegisterGroup, phase: Phase) -> Option<Result<(), Fault>> {
        let (word, value) = self.0.get(group as usize)?;
        decode(word.load(Ordering::Relaxed), value.load(Ordering::Relaxed), phase)
    }

    /// Stores the result of a phase of `group`.
    pub(crate) fn set(&self, group: RegisterGroup, phase: Phase, result: Result<(), Fault>) {
        if let Some((word, value)) = self.0.get(group as usize) {
            value.store(result.err().map_or(0, |fault| fault.value), Ordering::Relaxed);
            word.store(encode(phase, result), Ordering::Relaxed);
        }
    }
}

const UNTRIED: u64 = 0;
/// Marks a fault: the kind of access is in bits 39:32, the number in bits 31:0.
const FAULTED: u64 = 1 << 63;

fn encode(phase: Phase, result: Result<(), Fault>) -> u64 {
    result.map_or_else(
        |fault| FAULTED | (fault.access as u64) << 32 | u64::from(fault.number),
        |()| UNTRIED + 1 + phase as u64,
    )
}

fn decode(word: u64, value: u64, phase: Phase) -> Option<Result<(), Fault>> {
    let [n0, n1, n2, n3, access, ..] = word.to_le_bytes();
    if word & FAULTED == 0 {
        return (word >= encode(phase, Ok(()))).then_some(Ok(()));
    }
    Access::from_number(access).map(|access| Err(Fault { access, number: u32::from_le_bytes([n0, n1, n2, n3]), value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_remembered_as_it_was() {
        let both = |word| [Phase::Read, Phase::Write].map(|phase| decode(word, 7, phase));
        assert_eq!(both(UNTRIED), [None, None]);
        assert_eq!(both(encode(Phase::Read, Ok(()))), [Some(Ok(())), None]);
        assert_eq!(both(encode(Phase::Write, Ok(()))), [Some(Ok(())); 2]);
        for access in Access::ALL {
            for number in [0, 1, 0x186, 1 << 30, 0xC000_0302, u32::MAX] {
                let fault = Fault { access, number, value: 7 };
                for phase in [Phase::Read, Phase::Write] {
                    assert_eq!(both(encode(phase, Err(fault))), [Some(Err(fault)); 2]);
                }
            }
        }
    }
}
