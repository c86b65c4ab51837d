//! What the counters of a processor count while it executes code.

use super::Processor;
use crate::{
    bits::ones,
    counter::CounterId,
    debug_store::{Counted, Precise},
    ledger::LedgerEntry,
    loads::{self, Load},
    mode::Mode,
    movement,
    pmu::Running,
    select::Selected,
};

impl Processor {
    /// Executes a loop in kernel mode that decrements a register and branches while it is not zero.
    pub fn run_loop(&mut self, iterations: u32) {
        let events = movement::events_of_loop(&*self.cpuid, iterations);
        self.run(Mode::Kernel, &events);
    }

    /// Executes code in `mode`. For each counter that counts in that mode, `events` returns the number of occurrences
    /// of the selected event. A counter that cannot count its event counts nothing, nor does one whose event needs an
    /// extra register that selects nothing.
    ///
    /// A counter that overflows with its interrupt enabled makes an interrupt pending, unless one is pending or the
    /// status bit of the counter is already set (Intel, version 2 and later). [`LedgerEntry::interrupts`] describes how
    /// overflows merge. After an overflow of a counter that is enabled in `IA32_PEBS_ENABLE`, its next event writes a
    /// record to memory and reloads the counter, and the record that reaches the threshold interrupts. In between, the
    /// status bit of the counter is set. The overflow itself interrupts only if the control register of the counter
    /// enables the interrupt. For an event or counter without PEBS support, `IA32_PEBS_ENABLE` has no effect.
    ///
    /// The first interrupt that `IA32_DEBUGCTL` lets freeze the counters does so at the end of this call.
    pub fn run(&mut self, mode: Mode, events: &dyn Fn(Selected) -> u64) {
        self.run_with_extra(mode, &|selected, _| events(selected));
    }

    /// As [`run`](Self::run). `events` also gets the value of the extra register of the event, which is 0 if the event
    /// needs none.
    pub fn run_with_extra(&mut self, mode: Mode, events: &dyn Fn(Selected, u64) -> u64) {
        self.run_counters(events, false, |counter| match mode {
            Mode::User => counter.user,
            Mode::Kernel => counter.kernel,
        });
    }

    /// As [`run`](Self::run) in kernel mode, for the time that passes between two accesses of the code under test: the
    /// counters do not wait for it. [`LedgerEntry::between`] has these events, besides `counted`.
    pub fn run_between_accesses(&mut self, events: &dyn Fn(Selected) -> u64) {
        self.run_counters(&|selected, _| events(selected), true, |counter| counter.kernel);
    }

    /// As [`run`](Self::run), with loads instead of events: a number of each kind. Loads that no event of the processor
    /// counts are not counted.
    pub fn run_loads(&mut self, mode: Mode, loads: &[(Load, u64)]) {
        let events = loads.iter().map(|(load, number)| (loads::event(&self.cpuid, *load), *number));
        let events: Vec<_> = events.collect();
        let number = |selected: Selected| {
            events.iter().filter(|(event, _)| *event == Some(selected)).map(|(_, number)| number).sum()
        };
        self.run(mode, &number);
    }

    /// Executes code in System Management Mode. Firmware runs parts of it at CPL 3, so counters of either mode count
    /// (Linux commit a01994f5e5c7), unless `IA32_DEBUGCTL.FREEZE_WHILE_SMM` freezes them (SDM, "Freezing LBR and
    /// Performance Counters on PMI"; Vol. 4, `IA32_DEBUGCTL`).
    pub fn run_in_smm(&mut self, events: &dyn Fn(Selected) -> u64) {
        if !self.debug_store.freezes_in_smm() {
            self.run_counters(&|selected, _| events(selected), false, |_| true);
        }
    }

    /// Returns the counters that are enabled in any mode and can count their event.
    pub(super) fn running(&self) -> Vec<Running> {
        let mut running = self.pmu.running();
        running.retain(|counter| self.countable.counts(counter.id, counter.selected));
        running.retain(|counter| self.extra.counts(counter.selected, self.debug_store.measures_latency(counter.id)));
        running
    }

    fn run_counters(
        &mut self,
        events: &dyn Fn(Selected, u64) -> u64,
        is_between: bool,
        counts: impl Fn(&Running) -> bool,
    ) {
        let mut freezes = false;
        self.let_records_arrive();
        self.run_ops(events);
        // That Nehalem's counters were idle for a moment in a handler is no matter of the events in it.
        if !is_between {
            self.pmu.elapse();
        }
        for counter in self.running() {
            let counted = if counts(&counter) { self.seen(&counter, events) } else { 0 };
            if counted == 0 {
                continue;
            }
            let by_counter = self.pmu.counted(&counter, counted);
            let by_counter = self.movements.counted(counter.id, counter.selected, by_counter);
            let (overflows, interrupts) = self.count(&counter, by_counter);
            let is_silent = overflows > 0 && self.reload_after(counter.id);
            let interrupts = interrupts && !is_silent;
            freezes |= interrupts;
            let raised = interrupts && self.raise();
            self.ledger.add(LedgerEntry {
                counter: counter.id,
                selected: counter.selected,
                extra: self.extra.value_of(counter.selected),
                user: counter.user,
                kernel: counter.kernel,
                counted,
                between: if is_between { counted } else { 0 },
                overflows,
                interrupts: u64::from(raised),
            });
        }
        if freezes {
            let freeze = self.debug_store.freeze();
            if self.pmu.freeze(freeze) {
                self.debug_store.end_last_branches();
            }
        }
    }

    /// Returns how many of its events a counter can add: all, or so many in each cycle of AMD (PMCx076).
    fn seen(&self, counter: &Running, events: &dyn Fn(Selected, u64) -> u64) -> u64 {
        const CYCLES: u16 = 0x076;
        let occurred = events(counter.selected, self.extra.value_of(counter.selected));
        self.pmu
            .most_per_cycle(counter)
            .map_or(occurred, |most| occurred.min(events(Selected::event(CYCLES, 0), 0).saturating_mul(most)))
    }

    /// Loads the counters that the overflow of one loads. Returns whether it is one of them, which reports nothing.
    fn reload_after(&mut self, id: CounterId) -> bool {
        let loaded = self.reloads.by_overflow_of(id);
        for (loaded, config) in &loaded {
            let value = self.debug_store.rdmsr(*config).or_else(|| self.reloads.rdmsr(*config)).unwrap_or_default();
            if let Some(counter) = self.pmu.counter_mut(*loaded) {
                counter.write(value & ones(32) | ones(32) << 32);
            }
        }
        let itself = loaded.iter().any(|(loaded, _)| *loaded == id);
        if itself {
            self.pmu.set_overflow(id, false);
        }
        itself
    }

    /// Adds to a counter. Returns the number of overflows, and whether they request an interrupt.
    fn count(&mut self, counter: &Running, events: u64) -> (u64, bool) {
        let Running { id, interrupt, .. } = *counter;
        let was_stuck = self.pmu.is_stuck(id);
        let Some(precise) = self.precise(counter) else {
            let overflows = self.pmu.count(id, events);
            return (overflows, overflows > 0 && interrupt && !was_stuck);
        };
        let Some(counter) = self.pmu.counter_mut(id) else { return (0, false) };
        let Counted { overflows, reached, overflowed } = self.debug_store.count(counter, precise, events);
        if reached {
            self.pmu.note_buffer();
        }
        let interrupts = overflows > 0 && interrupt && !was_stuck;
        if let Some(overflowed) = overflowed {
            self.pmu.set_overflow(id, overflowed);
        }
        (overflows, reached || interrupts)
    }

    pub(super) fn precise(&self, counter: &Running) -> Option<Precise> {
        let others: Vec<Selected> = self.pmu.running().iter().map(|other| other.selected).collect();
        let accessed = self.extra.accessed(counter.selected, &others);
        self.debug_store.precise(counter.id, counter.selected, self.pmu.adaptive(counter.id), accessed)
    }
}
