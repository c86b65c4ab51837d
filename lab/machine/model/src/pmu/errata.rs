//! Errata of Intel's counters: a unit whose counters count something else than what happens.
//!
//! Every processor with such an erratum has it here, so that code under test without the workaround counts wrongly.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{Freeze, Intel, Pmu, Running};
use crate::{
    bits::{bit, byte, ones},
    counter::{Counter, CounterId},
    cpuid::Cpuid,
    fault::GeneralProtection,
    select::{Select, Selected},
};

/// `IA32_PERFEVTSEL0`, `IA32_PMC0` and `IA32_PERF_GLOBAL_CTRL` (SDM Vol. 4, "Architectural MSRs").
const PERFEVTSEL0: u32 = 0x186;
const PMC0: u32 = 0xC1;
const GLOBAL_CTRL: u32 = 0x38F;

/// Number of general counters that each thread has while the core has two; all errata but one concern these.
const COUNTERS: u8 = 4;

/// The select registers while the counters of Nehalem are reset (AAK100, AAP53, BD53; Linux,
/// arch/x86/events/intel/core.c, `intel_pmu_nhm_workaround`).
const RESET_EVENTS: [u64; COUNTERS as usize] = [0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1];

/// What the microcode leaves in counter 3.
const CLOBBERED: u64 = 0x0000_5A5A_5A5A;

/// A unit with an erratum.
pub(crate) struct Flawed {
    unit: Intel,
    erratum: Erratum,
}

enum Erratum {
    /// AAK100, AAP53, BD53: a counter that is set up counts wrongly, unless all four counters were reset since any of
    /// them counted (Linux repeats the reset whenever counters were added, `intel_pmu_nhm_enable_all`).
    NeedsReset(Reset),
    /// BJ122, BV98, HSD29: a counter with an event of memory access loses half of its events to the same counter of the
    /// other thread, if that one is on.
    LeaksToOtherThread(Thread),
    /// The workaround of the TSX erratum: the microcode uses counter 3 whenever a transaction is executed (Linux commit
    /// 400816f60c54).
    UsesCounter3,
    /// The general counters that one thread has only while hyperthreading is off, 4 to 7, do not count if USR is set
    /// without OS (likwid issues 59 and 517).
    IgnoresUserAlone,
}

#[derive(Default)]
struct Reset {
    /// Whether the counters were reset, and none has counted since.
    was_done: bool,
    /// The counters that were set up without a reset.
    unsound: u64,
    /// The counters that have seen an odd number of events.
    odd: u64,
}

impl Reset {
    /// Records that time passes while the counters `on`, of any event but those of the reset, are on.
    fn elapse(&mut self, on: u64) {
        self.was_done &= on == 0;
    }

    /// Returns how many of its events a counter counts: every second one if it is unsound.
    fn counted(&mut self, counter: u8, events: u64) -> u64 {
        if self.unsound >> counter & 1 == 0 {
            return events;
        }
        let seen = events + (self.odd >> counter & 1);
        self.odd = self.odd & !(1 << counter) | (seen & 1) << counter;
        seen / 2
    }
}

/// What the two threads of a core know of each other.
#[derive(Default)]
struct SharedCore {
    /// The general counters of each thread that are on.
    on: [AtomicU64; 2],
    /// Events that reached a counter of a thread by mistake.
    leaked: [[AtomicU64; COUNTERS as usize]; 2],
}

#[derive(Clone)]
struct Thread {
    number: usize,
    core: Arc<SharedCore>,
}

impl Thread {
    fn leaked(&self, thread: usize, counter: u8) -> Option<&AtomicU64> {
        self.core.leaked.get(thread)?.get(usize::from(counter))
    }

    fn other(&self) -> usize {
        1 - self.number
    }

    fn is_on_there(&self, counter: u8) -> bool {
        self.core.on.get(self.other()).is_some_and(|on| on.load(Ordering::SeqCst) >> counter & 1 == 1)
    }
}

/// Returns the unit, with the erratum of its processor if there is one.
pub(crate) fn of_processor(cpuid: Cpuid<'_>, unit: Intel) -> Box<dyn Pmu> {
    match erratum(cpuid) {
        Some(erratum) => Box::new(Flawed { unit, erratum }),
        None => Box::new(unit),
    }
}

/// Families and models: SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel".
fn erratum(cpuid: Cpuid<'_>) -> Option<Erratum> {
    let [last, ..] = cpuid(0, 0);
    let [signature, ..] = cpuid(1, 0);
    if byte(signature, 11, 8) != 6 {
        return None;
    }
    let features = if last >= 7 { u64::from(cpuid(7, 0)[3]) } else { 0 };
    match byte(signature, 19, 16) << 4 | byte(signature, 7, 4) {
        0x1A | 0x1E | 0x1F | 0x2E | 0x25 | 0x2C | 0x2F => Some(Erratum::NeedsReset(Reset::default())),
        0x2A | 0x2D | 0x3A | 0x3E | 0x3C | 0x3F | 0x45 | 0x46 => {
            Some(Erratum::LeaksToOtherThread(Thread { number: 0, core: Arc::default() }))
        }
        // TSX_FORCE_ABORT, unless RTM_ALWAYS_ABORT says that no transaction is executed.
        0x4E | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x55 if bit(features, 13) && !bit(features, 11) => {
            Some(Erratum::UsesCounter3)
        }
        0x3D | 0x47 | 0x4F | 0x56 => Some(Erratum::IgnoresUserAlone),
        _ => None,
    }
}

/// Returns whether the erratum of a thread concerns an event: MEM_UOPS_RETIRED, MEM_LOAD_UOPS_RETIRED and those of the
/// last level cache.
fn is_leaking(selected: Selected) -> bool {
    (0xD0..=0xD3).contains(&selected.event)
}

impl Flawed {
    fn select(&self, counter: u8) -> u64 {
        self.unit.rdmsr(PERFEVTSEL0 + u32::from(counter)).unwrap_or_default()
    }

    fn global(&self) -> u64 {
        self.unit.rdmsr(GLOBAL_CTRL).unwrap_or_default() & ones(u32::from(COUNTERS))
    }

    /// Returns the general counters that are on.
    fn on(&self) -> u64 {
        let is_on = |counter: &u8| Select(self.select(*counter)).enabled();
        (0..COUNTERS).filter(is_on).map(|counter| 1 << counter).sum::<u64>() & self.global()
    }

    /// Returns the general counters that are on with another event than those of the reset.
    fn counting(&self) -> u64 {
        let is_counting = |counter: &u8| !RESET_EVENTS.contains(&self.select(*counter));
        (0..COUNTERS).filter(is_counting).map(|counter| 1 << counter).sum::<u64>() & self.on()
    }

    /// Returns whether all counters are set up for the reset.
    fn is_reset(&self) -> bool {
        let is_reset = |(counter, event): (u8, u64)| {
            self.select(counter) == event && self.unit.rdmsr(PMC0 + u32::from(counter)) == Some(0)
        };
        (0..).zip(RESET_EVENTS).all(is_reset)
    }

    fn note_write(&mut self, msr: u32, value: u64) {
        let (on, is_reset) = (self.on(), self.is_reset());
        match &mut self.erratum {
            Erratum::NeedsReset(reset) => {
                // The events are on for a moment, then all off.
                if msr == GLOBAL_CTRL && is_reset && on == ones(u32::from(COUNTERS)) {
                    reset.was_done = true;
                }
                let counter = msr.checked_sub(PERFEVTSEL0).filter(|counter| *counter < u32::from(COUNTERS));
                if let Some(counter) = counter.filter(|_| Select(value).enabled() && !RESET_EVENTS.contains(&value)) {
                    let others = reset.unsound & !(1 << counter);
                    reset.unsound = if reset.was_done { others } else { others | 1 << counter };
                }
            }
            Erratum::LeaksToOtherThread(thread) => {
                if let Some(mine) = thread.core.on.get(thread.number) {
                    mine.store(on, Ordering::SeqCst);
                }
            }
            Erratum::UsesCounter3 | Erratum::IgnoresUserAlone => {}
        }
    }

    /// Returns the events that reached a counter by mistake since the last call.
    fn take_leaked(&self, counter: u8) -> u64 {
        let Erratum::LeaksToOtherThread(thread) = &self.erratum else { return 0 };
        thread.leaked(thread.number, counter).map_or(0, |events| events.swap(0, Ordering::SeqCst))
    }

    fn leaked(&self, counter: u32) -> u64 {
        let Erratum::LeaksToOtherThread(thread) = &self.erratum else { return 0 };
        let events = u8::try_from(counter).ok().and_then(|counter| thread.leaked(thread.number, counter));
        events.map_or(0, |events| events.load(Ordering::SeqCst))
    }
}

impl Pmu for Flawed {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        self.unit.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let written = self.unit.wrmsr(msr, value);
        // A write that faults changes nothing.
        if written == Some(Ok(())) {
            self.note_write(msr, value);
        }
        written
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        self.unit.rdpmc(index).map(|value| value + self.leaked(index))
    }

    fn running(&self) -> Vec<Running> {
        self.unit.running()
    }

    fn elapse(&mut self) {
        let counting = self.counting();
        for counter in 0..COUNTERS {
            let leaked = self.take_leaked(counter);
            let _ = self.unit.count(CounterId::General(counter), leaked);
        }
        match &mut self.erratum {
            Erratum::NeedsReset(reset) => reset.elapse(counting),
            Erratum::UsesCounter3 => {
                if let Some(counter) = self.unit.counter_mut(CounterId::General(3)) {
                    counter.write(CLOBBERED);
                }
            }
            Erratum::LeaksToOtherThread(_) | Erratum::IgnoresUserAlone => {}
        }
    }

    fn counted(&mut self, counter: &Running, events: u64) -> u64 {
        match (&mut self.erratum, counter.id) {
            (Erratum::NeedsReset(reset), CounterId::General(number)) => reset.counted(number, events),
            (Erratum::LeaksToOtherThread(thread), CounterId::General(number))
                if is_leaking(counter.selected) && thread.is_on_there(number) =>
            {
                let lost = events.div_ceil(2);
                if let Some(leaked) = thread.leaked(thread.other(), number) {
                    leaked.fetch_add(lost, Ordering::SeqCst);
                }
                events - lost
            }
            (Erratum::IgnoresUserAlone, CounterId::General(COUNTERS..)) if counter.user && !counter.kernel => 0,
            _ => events,
        }
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        self.unit.counter(id)
    }

    fn counter_mut(&mut self, id: CounterId) -> Option<&mut Counter> {
        self.unit.counter_mut(id)
    }

    fn adaptive(&self, id: CounterId) -> bool {
        self.unit.adaptive(id)
    }

    fn set_overflow(&mut self, id: CounterId, overflowed: bool) {
        self.unit.set_overflow(id, overflowed);
    }

    fn note_buffer(&mut self) {
        self.unit.note_buffer();
    }

    fn is_stuck(&self, id: CounterId) -> bool {
        self.unit.is_stuck(id)
    }

    fn has_interrupting_status(&self, records: bool) -> bool {
        self.unit.has_interrupting_status(records)
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        self.unit.count(id, events)
    }

    fn freeze(&mut self, freeze: Freeze) -> bool {
        self.unit.freeze(freeze)
    }

    /// Each thread has counters of its own, but the erratum connects them.
    fn other_thread(&self) -> Option<Box<dyn Pmu>> {
        let Erratum::LeaksToOtherThread(thread) = &self.erratum else { return None };
        let erratum = Erratum::LeaksToOtherThread(Thread { number: thread.other(), core: Arc::clone(&thread.core) });
        Some(Box::new(Self { unit: self.unit.after_reset(), erratum }))
    }

    fn masks_lvt_on_delivery(&self) -> bool {
        self.unit.masks_lvt_on_delivery()
    }
}
