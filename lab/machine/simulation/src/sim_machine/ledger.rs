//! What the counters of a machine have counted, by the ledger of the model.

use model::LedgerEntry;

use super::SimMachine;

impl SimMachine {
    /// Returns the total number of events of a counter in the model's ledger.
    #[must_use]
    pub fn counted(&self, processor: u32, counter: u32) -> u64 {
        self.ledger_sum(processor, counter, |entry| entry.counted)
    }

    /// Returns how many of the [`counted`](Self::counted) events occurred between two accesses of the code under test.
    /// A counter of user mode alone has none.
    #[must_use]
    pub fn between(&self, processor: u32, counter: u32) -> u64 {
        self.ledger_sum(processor, counter, |entry| entry.between)
    }

    fn ledger_sum(&self, processor: u32, counter: u32, of_entry: impl Fn(LedgerEntry) -> u64) -> u64 {
        let id = u8::try_from(counter).map(|counter| self.counter(processor, counter));
        self.ledger(processor).into_iter().filter(|entry| Ok(entry.counter) == id).map(of_entry).sum()
    }

    /// Returns the entries of the model's ledger, without the events that Nehalem's counters count while they are reset
    /// (Linux, arch/x86/events/intel/core.c, `intel_pmu_nhm_workaround`): they are of no session.
    #[must_use]
    pub fn ledger(&self, processor: u32) -> Vec<LedgerEntry> {
        const RESET: [u16; 3] = [0xB5, 0xD2, 0xB1];
        let is_reset = |entry: &LedgerEntry| entry.between == entry.counted && RESET.contains(&entry.selected.event);
        self.processor(processor).model().ledger().entries().filter(|entry| !is_reset(entry)).collect()
    }
}
