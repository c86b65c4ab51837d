//! A processor's Debug Store: what the processor itself writes, and how it comes from there to who subscribed.
//!
//! Touched by that processor alone at PROFILE_LEVEL, as all at its desk. The buffers are words that two write, the processor
//! and this; what the processor wrote is believed in nothing but its value.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use debug_store::Buffer;
use debug_store::pebs::{Format, PebsRecord};
use pmu::Cpu;
use pmu::debug_store::{self as registers, Modes, SavedDebugStore};
use pmu::state::{self, CounterSet};
use protocol::MAX_BATCH;
use x86_defs::intel::debug_store::area::word;
use x86_defs::intel::debug_store::bts::{BtsFlags, BtsRecord};

use super::per_cpu::Subscriber;

/// Words that the processor writes.
type Words = Box<[AtomicU64]>;

/// Words of a branch.
const BRANCH_WORDS: u8 = 3;

const _: () = assert!(size_of::<BtsRecord>() == BRANCH_WORDS as usize * 8);

/// Branches for which there is room behind the threshold, for those that come before the interrupt does.
const SPARE_BRANCHES: u32 = 512;

/// The same for precise records: each counter can write some.
const SPARE_RECORDS: u32 = 32;

/// Words of a page: Core 2 stands still with a larger buffer of precise records (Linux, intel_ds_init), and memory of a whole
/// page lies in one.
const PAGE_WORDS: u8 = 128;
const PAGE_PARTS: u32 = 4;

/// Precise records that a processor with this format can write before it interrupts.
pub const fn most_before(format: Format) -> u32 {
    match format {
        Format::Core2 => 16,
        _ => MAX_BATCH,
    }
}

/// See the module.
#[derive(Debug)]
pub struct DsBuffers {
    branches: Option<Branches>,
    precise: Option<Precise>,
    /// Where the save area is.
    area: u64,
    /// What was in the registers before.
    saved: SavedDebugStore,
    /// The registers are ours.
    installed: bool,
    /// Precise records fetched so far.
    fetched: u64,
}

#[derive(Debug)]
struct Branches {
    words: Words,
    /// Branches before an interrupt.
    before: u32,
    modes: Modes,
    /// Who gets them, until it has stopped them.
    subscriber: Option<Subscriber>,
    /// None are written for a while.
    paused: bool,
}

#[derive(Debug)]
struct Precise {
    words: Words,
    /// Records before an interrupt.
    before: u32,
    format: Format,
    /// Those that record.
    counters: CounterSet,
}

/// A precise record.
#[derive(Debug, Clone, Copy)]
pub struct Fetched {
    /// Where it was.
    pub ip: u64,
    /// That is the instruction itself.
    pub is_exact: bool,
    /// Whose overflow it is; not only one's, it is lost to each.
    pub counters: CounterSet,
    /// It can be told whose it is.
    pub is_told: bool,
    /// Its number on the processor.
    pub number: u64,
}

impl DsBuffers {
    /// Without branches or precise records, and without a save area.
    pub fn new() -> Self {
        let saved = SavedDebugStore::default();
        Self { branches: None, precise: None, area: 0, saved, installed: false, fetched: 0 }
    }

    /// With branches of these modes for a subscriber, an interrupt after so many; `None` when memory is short.
    pub fn with_branches(self, modes: Modes, before: u32, subscriber: Subscriber) -> Option<Self> {
        let words = state::allocate(before + SPARE_BRANCHES, BRANCH_WORDS)?;
        let branches = Branches { words, before, modes, subscriber: Some(subscriber), paused: false };
        Some(Self { branches: Some(branches), ..self })
    }

    /// With precise records of this format, an interrupt after so many; `None` when memory is short.
    pub fn with_precise(self, before: u32, format: Format) -> Option<Self> {
        let words = match format {
            Format::Core2 => state::allocate(PAGE_PARTS, PAGE_WORDS)?,
            _ => state::allocate(before + SPARE_RECORDS, format.least_words())?,
        };
        let before = before.min(most_before(format));
        let precise = Precise { words, before, format, counters: CounterSet::NONE };
        Some(Self { precise: Some(precise), ..self })
    }

    /// The save area is at this address.
    pub const fn set_area(&mut self, address: u64) {
        self.area = address;
    }

    /// Takes the registers, and lets branches be written. Nothing is recorded precisely yet.
    pub fn install(&mut self, cpu: &impl Cpu) {
        if let Some(precise) = &self.precise {
            put(cpu, word::PEBS_BUFFER_BASE, &precise.words, precise.format.least_size() as u64, precise.before);
        }
        if let Some(branches) = &self.branches {
            put(cpu, word::BTS_BUFFER_BASE, &branches.words, size_of::<BtsRecord>() as u64, branches.before);
        }
        self.saved = registers::take(cpu, self.area);
        self.installed = true;
        self.trace(cpu);
    }

    /// Puts the registers back as they were found. What was in the buffers has been fetched before.
    pub fn uninstall(&mut self, cpu: &impl Cpu) {
        if !self.installed {
            return;
        }
        self.freeze_branches(cpu);
        if let Some(precise) = &mut self.precise {
            precise.counters = CounterSet::NONE;
        }
        registers::release(cpu, self.area, self.saved, self.precise.is_some());
        for word in word::BTS_BUFFER_BASE..=word::PEBS_INTERRUPT_THRESHOLD {
            cpu.set_save_area(word, 0);
        }
        self.installed = false;
    }

    /// Who gets the branches, if somebody does.
    pub fn traced_for(&self) -> Option<Subscriber> {
        self.branches.as_ref()?.subscriber
    }

    /// Whether precise records are wanted.
    pub const fn has_precise(&self) -> bool {
        self.precise.is_some()
    }

    /// Nobody gets branches any more. None are written.
    pub fn end_branches(&mut self) {
        if let Some(branches) = &mut self.branches {
            branches.subscriber = None;
        }
    }

    /// Branches are written, or not for a while.
    pub fn pause_branches(&mut self, cpu: &impl Cpu, paused: bool) {
        if let Some(branches) = &mut self.branches {
            branches.paused = paused;
            self.trace(cpu);
        }
    }

    /// No branch is written until [`trace`](Self::trace).
    fn freeze_branches(&self, cpu: &impl Cpu) {
        if self.branches.is_some() && self.installed {
            registers::trace(cpu, Modes::default(), self.saved);
        }
    }

    /// Branches are written, if they are to be.
    fn trace(&self, cpu: &impl Cpu) {
        if let (Some(branches), true) = (&self.branches, self.installed) {
            let on = branches.subscriber.is_some() && !branches.paused;
            registers::trace(cpu, if on { branches.modes } else { Modes::default() }, self.saved);
        }
    }

    /// These counters record as well from now on, each loaded with its initial count after a record.
    pub fn record(&mut self, cpu: &impl Cpu, counters: CounterSet, initial: impl Fn(u8) -> u64) {
        if let (Some(precise), true) = (&mut self.precise, self.installed) {
            precise.counters = precise.counters.or(counters);
            let all = precise.counters;
            self.set_initial(cpu, initial);
            registers::record(cpu, all);
        }
    }

    /// What each counter that records is loaded with after its next record.
    pub fn set_initial(&self, cpu: &impl Cpu, initial: impl Fn(u8) -> u64) {
        let recording = self.precise.as_ref().filter(|_| self.installed).map(|precise| precise.counters);
        for counter in recording.unwrap_or_default().iter() {
            cpu.set_save_area(word::PEBS_COUNTER_RESET.wrapping_add(counter), initial(counter));
        }
    }

    /// These counters, which stand, record no more.
    pub fn forget(&mut self, cpu: &impl Cpu, counters: CounterSet) {
        if let (Some(precise), true) = (&mut self.precise, self.installed) {
            precise.counters = precise.counters.without(counters);
            if registers::is_at(cpu, self.area) {
                registers::record(cpu, precise.counters);
            }
        }
    }

    /// Whether a buffer has come to its threshold.
    pub fn is_due(&self, cpu: &impl Cpu) -> bool {
        let watermark_hit = |index, threshold| cpu.save_area(index) >= cpu.save_area(threshold);
        self.installed
            && ((self.branches.is_some() && watermark_hit(word::BTS_INDEX, word::BTS_INTERRUPT_THRESHOLD))
                || (self.precise.is_some() && watermark_hit(word::PEBS_INDEX, word::PEBS_INTERRUPT_THRESHOLD)))
    }

    /// Precise records that the processor has written by now: its PebsIndex, counted on over all buffers.
    pub fn written(&self, cpu: &impl Cpu) -> u64 {
        let waiting = self.precise.as_ref().map_or(0, |precise| precise.waiting(cpu));
        self.fetched.wrapping_add(waiting as u64)
    }

    /// Whether one precise record waits, and the interrupt came for it: then who is interrupted made it.
    pub fn is_attributed(&self, cpu: &impl Cpu) -> bool {
        self.precise.as_ref().is_some_and(|precise| precise.before == 1 && precise.waiting(cpu) == 1)
    }

    /// Gives each precise record to `each`, oldest first, and empties the buffer; answers whether there were any. No counter
    /// that records may count meanwhile.
    pub fn fetch_precise(&mut self, cpu: &impl Cpu, mut each: impl FnMut(Fetched)) -> bool {
        let (Some(precise), true) = (&self.precise, self.installed) else { return false };
        let length = precise.format.least_size();
        let count = precise.waiting(cpu);
        for begin in (0..count).map(|number| number * length) {
            let word = |offset: usize| precise.words.get((begin + offset) / 8).map_or(0, load);
            let unreadable = PebsRecord { ip: 0, is_exact: false, counters: Some(0) };
            let PebsRecord { ip, is_exact, counters } = precise.format.record(word).unwrap_or(unreadable);
            let (counters, is_told) = precise.those(counters);
            each(Fetched { ip, is_exact, counters, is_told, number: self.fetched });
            self.fetched = self.fetched.wrapping_add(1);
        }
        cpu.set_save_area(word::PEBS_INDEX, address(&precise.words));
        if count > 0 {
            registers::acknowledge(cpu);
        }
        count > 0
    }

    /// Gives each branch to `each`, oldest first, and empties the buffer; answers whether there were any. None is written
    /// meanwhile, nor behind it unless it is to `go_on`.
    pub fn fetch_branches(&mut self, cpu: &impl Cpu, go_on: bool, mut each: impl FnMut(BtsRecord)) -> bool {
        let (Some(branches), true) = (&self.branches, self.installed) else { return false };
        self.freeze_branches(cpu);
        let count = branches.waiting(cpu);
        for record in branches.words.chunks_exact(BRANCH_WORDS.into()).take(count) {
            let mut words = record.iter().map(load);
            let mut next = || words.next().unwrap_or_default();
            each(BtsRecord { from: next(), to: next(), flags: BtsFlags::from_bits(next()) });
        }
        cpu.set_save_area(word::BTS_INDEX, address(&branches.words));
        if go_on {
            self.trace(cpu);
        }
        count > 0
    }
}

impl Precise {
    fn waiting(&self, cpu: &impl Cpu) -> usize {
        written(cpu, word::PEBS_BUFFER_BASE, &self.words) / self.format.least_size().max(1)
    }

    /// Whose a record with these bits is, and whether that is certain. Where one counter records it is that one's. The word of
    /// formats 1 to 3 is the status at the time (SDM Vol. 3B, "PEBS Record Format"), in which others may be set or it may be
    /// cleared by then; later ones have the counters themselves.
    fn those(&self, counters: Option<u64>) -> (CounterSet, bool) {
        if self.counters.len() == 1 {
            return (self.counters, true);
        }
        let saved = self.counters.and(CounterSet::from_bits(counters.unwrap_or_default()));
        match saved.len() {
            0 => (self.counters.iter().take(1).collect(), false),
            1 => (saved, true),
            _ => (saved, self.format >= Format::Adaptive),
        }
    }
}

impl Branches {
    fn waiting(&self, cpu: &impl Cpu) -> usize {
        written(cpu, word::BTS_BUFFER_BASE, &self.words) / size_of::<BtsRecord>()
    }
}

/// What the processor wrote.
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Where words are: who writes there is not the compiler's to see.
fn address(words: &Words) -> u64 {
    words.as_ptr().expose_provenance() as u64
}

/// A buffer into the save area, from the word of its base on: base, index, maximum, threshold.
fn put(cpu: &impl Cpu, base: u8, words: &Words, size: u64, before: u32) {
    let buffer = Buffer::whole(address(words), size_of_val::<[AtomicU64]>(words) as u64, size);
    let threshold = buffer.threshold(size, before.into());
    for (word, value) in (base..).zip([buffer.base, buffer.index, buffer.maximum, threshold]) {
        cpu.set_save_area(word, value);
    }
}

/// What a counter is loaded with after its records, as the save area has it.
pub fn initial(cpu: &impl Cpu, counter: u8) -> u64 {
    cpu.save_area(word::PEBS_COUNTER_RESET.wrapping_add(counter))
}

/// Bytes that have been written to a buffer.
fn written(cpu: &impl Cpu, base: u8, words: &Words) -> usize {
    let buffer = Buffer {
        base: address(words),
        index: cpu.save_area(base.wrapping_add(1)),
        maximum: cpu.save_area(base.wrapping_add(2)),
    };
    buffer.written(size_of_val::<[AtomicU64]>(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_of_the_counter_that_it_names_or_lost_to_one_that_records() {
        let set = |counters: &[u8]| counters.iter().copied().collect::<CounterSet>();
        for (format, recording, bits, whose, is_told) in [
            (Format::Core2, &[0][..], None, &[0][..], true),
            (Format::Nehalem, &[2], Some(0), &[2], true),
            (Format::Skylake, &[2], Some(1 << 62 | 0b1011), &[2], true),
            (Format::Skylake, &[1, 3], Some(0b1000), &[3], true),
            (Format::Skylake, &[1, 3], Some(0b1010), &[1, 3], false),
            (Format::Skylake, &[1, 3], Some(0b0101), &[1], false),
            (Format::Adaptive, &[1, 3], Some(0b1010), &[1, 3], true),
            (Format::Adaptive, &[1, 3], Some(0), &[1], false),
        ] {
            let words = state::allocate(1, 1).unwrap();
            let precise = Precise { words, before: 1, format, counters: set(recording) };
            assert_eq!(precise.those(bits), (set(whose), is_told), "{format:?} {recording:?} {bits:?}");
        }
    }
}
