//! Debug Store of one processor: the buffers that the processor writes, and the way of the records to the subscribers.
//! Architectural PEBS, which needs no Debug Store, has its buffer in the control area.
//!
//! Only that processor accesses it, at PROFILE_LEVEL. Both the processor and this code write the buffers. A record is
//! data from the hardware: it is never used as an index or an address without a check.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use debug_store::Buffer;
use debug_store::pebs::{Format, Part, PebsRecord};
use pmu::Cpu;
use pmu::debug_store::architectural::{self, BUFFER_PAGE, RecordBuffer};
use pmu::debug_store::{self as registers, Modes, Numbering, Place, SavedDebugStore};
use pmu::interface::emon::AccessCounters;
use pmu::state::{self, CounterSet};
use protocol::MAX_BATCH;
use x86_defs::intel::debug_store::area::word;
use x86_defs::intel::debug_store::bts::{BtsFlags, BtsRecord};

use super::subscriptions::Subscriber;
use crate::areas::buffer_at;
use crate::platform::ControlArea;

/// Words that the processor writes.
type Words = Vec<AtomicU64>;

/// Words of a branch record.
const BRANCH_WORDS: u8 = 3;

const _: () = assert!(size_of::<BtsRecord>() == BRANCH_WORDS as usize * 8);

/// Room for branches behind the threshold, which are recorded before the interrupt occurs.
const SPARE_BRANCHES: u32 = 512;

/// The same for precise records: each counter can write some.
const SPARE_RECORDS: u32 = 32;

/// Words of a part of a page. Core 2 stops with a larger buffer of precise records (Linux, intel_ds_init), and an
/// allocation of one page does not cross a page boundary.
const PAGE_WORDS: u8 = 128;
const PAGE_PARTS: u32 = 4;

/// Returns how many precise records a processor with this format can write before it interrupts.
pub const fn most_before(format: Format) -> u32 {
    match format {
        Format::Core2 => 16,
        _ => MAX_BATCH,
    }
}

/// Returns the power of two of the pages that a buffer of architectural PEBS has for so many records before an
/// interrupt.
pub const fn buffer_pages_log2(before: u32, numbering: Numbering) -> u8 {
    let bytes = (before + SPARE_RECORDS) * numbering.largest_record() as u32;
    (bytes.div_ceil(BUFFER_PAGE).next_power_of_two().trailing_zeros() & 0xF) as u8
}

/// Debug Store buffers of one processor, and the state of its registers.
#[derive(Debug)]
pub struct DsBuffers {
    branches: Option<Branches>,
    precise: Option<Precise>,
    /// Where the processor writes.
    place: Place,
    /// Registers as they were found, since the first installation.
    saved: Option<SavedDebugStore>,
    /// The registers are in use by the driver.
    installed: bool,
    /// Precise records fetched so far.
    fetched: u64,
    /// Precise records that the last look found, and the bytes that they have.
    waiting: usize,
    looked_at: usize,
    /// A fetch found the buffer of precise records full.
    was_full: bool,
}

#[derive(Debug)]
struct Branches {
    words: Words,
    /// Branches before an interrupt.
    before: u32,
    modes: Modes,
    /// Subscriber of the branches, until it has stopped them.
    subscriber: Option<Subscriber>,
    /// The recording is paused.
    paused: bool,
}

#[derive(Debug)]
struct Precise {
    /// The buffer, unless it is in the control area.
    words: Words,
    /// Records before an interrupt.
    before: u32,
    numbering: Numbering,
    /// Counters that record.
    counters: CounterSet,
    /// Those of them whose records have an access of memory.
    accesses: AccessCounters,
}

/// A precise record.
#[derive(Debug, Clone, Copy)]
pub struct FetchedRecord {
    /// What the processor wrote: a record, or something unreadable.
    pub part: Part,
    /// Counters that overflowed. If the record is ambiguous, each of them is charged with one lost sample.
    pub counters: CounterSet,
    /// The counters are certain.
    pub is_certain: bool,
    /// Sequence number of the record on the processor.
    pub number: u64,
    /// Where the values are with which the counters were loaded.
    pub numbering: Numbering,
    /// Counters whose records have an access of memory.
    pub accesses: AccessCounters,
}

impl DsBuffers {
    /// Makes a Debug Store without branches, precise records or a save area.
    pub fn new() -> Self {
        Self {
            branches: None,
            precise: None,
            place: Place::default(),
            saved: None,
            installed: false,
            fetched: 0,
            waiting: 0,
            looked_at: 0,
            was_full: false,
        }
    }

    /// Adds branches of these modes for a subscriber, with an interrupt after `before` branches. Returns `None` if
    /// memory is short.
    pub fn with_branches(self, modes: Modes, before: u32, subscriber: Subscriber) -> Option<Self> {
        let words = state::allocate(before + SPARE_BRANCHES, BRANCH_WORDS)?;
        let branches = Branches { words, before, modes, subscriber: Some(subscriber), paused: false };
        Some(Self { branches: Some(branches), ..self })
    }

    /// Adds precise records of this format, with an interrupt after `before` records. Returns `None` if memory is
    /// short.
    pub fn with_precise(self, before: u32, numbering: Numbering) -> Option<Self> {
        let format = numbering.format;
        let words = match format {
            Format::Core2 => state::allocate(PAGE_PARTS, PAGE_WORDS)?,
            Format::Architectural => Words::new(),
            _ => state::allocate(before + SPARE_RECORDS, (numbering.largest_record() >> 3 & 0xFF) as u8)?,
        };
        let before = before.min(most_before(format));
        let accesses = AccessCounters::default();
        let precise = Precise { words, before, numbering, counters: CounterSet::NONE, accesses };
        Some(Self { precise: Some(precise), ..self })
    }

    /// Sets the control area.
    pub fn set_area(&mut self, area: ControlArea) {
        let architectural = self.precise.as_ref().filter(|precise| precise.numbering.format.is_architectural());
        let buffer = architectural.and_then(|precise| {
            let pages_log2 = buffer_pages_log2(precise.before, precise.numbering);
            Some(RecordBuffer { address: buffer_at(area.physical?), pages_log2, threshold: precise.threshold() })
        });
        let uses_store = self.branches.is_some() || buffer.is_none();
        let has_groups = |Numbering { format, accesses, .. }| Format::is_adaptive(format) && accesses.is_some();
        let has_accesses = self.precise.as_ref().is_some_and(|precise| has_groups(precise.numbering));
        self.place = Place { area: uses_store.then_some(area.address), buffer, has_accesses };
    }

    /// Returns where the processor writes.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Takes the registers, and starts the recording of branches; after a wake the caller [starts it](Self::trace). No
    /// counter records precisely yet.
    pub fn install(&mut self, cpu: &impl Cpu) {
        if let Some(precise) = self.precise.as_ref().filter(|_| self.place.buffer.is_none()) {
            let size = precise.numbering.largest_record().into();
            put(cpu, word::PEBS_BUFFER_BASE, &precise.words, size, precise.threshold().into());
        }
        if let Some(branches) = &self.branches {
            let size = size_of::<BtsRecord>() as u64;
            put(cpu, word::BTS_BUFFER_BASE, &branches.words, size, u64::from(branches.before) * size);
        }
        self.installed = true;
        if let Some(saved) = self.saved {
            return registers::take_again(cpu, self.place, saved, self.branches.is_some());
        }
        self.saved = Some(registers::take(cpu, self.place));
        self.trace(cpu);
    }

    /// Restores the registers as they were found. The caller has fetched the buffers.
    pub fn uninstall(&mut self, cpu: &impl Cpu) {
        if !self.installed {
            return;
        }
        self.freeze_branches(cpu);
        let counters = self.precise.as_ref().map_or(CounterSet::NONE, |precise| precise.counters);
        if self.place.buffer.is_some() {
            self.stop_precise(cpu, counters);
        } else if let Some(precise) = &mut self.precise {
            precise.counters = CounterSet::NONE;
        }
        registers::release(cpu, self.place, self.saved.unwrap_or_default(), self.precise.is_some());
        for word in word::BTS_BUFFER_BASE..=word::PEBS_INTERRUPT_THRESHOLD {
            cpu.set_save_area(word, 0);
        }
        self.installed = false;
    }

    /// Returns the subscriber of the branches, if there is one.
    pub fn traced_for(&self) -> Option<Subscriber> {
        self.branches.as_ref()?.subscriber
    }

    /// Returns whether there is a buffer for precise records.
    pub const fn has_precise(&self) -> bool {
        self.precise.is_some()
    }

    /// Removes the subscriber of the branches. The recording has been stopped.
    pub fn end_branches(&mut self) {
        if let Some(branches) = &mut self.branches {
            branches.subscriber = None;
        }
    }

    /// Pauses or resumes the recording of branches.
    pub fn pause_branches(&mut self, cpu: &impl Cpu, paused: bool) {
        if let Some(branches) = &mut self.branches {
            branches.paused = paused;
            self.trace(cpu);
        }
    }

    /// Stops the recording of branches until [`trace`](Self::trace). The buffers must be installed.
    fn freeze_branches(&self, cpu: &impl Cpu) {
        if self.branches.is_some() {
            registers::trace(cpu, Modes::default(), self.saved.unwrap_or_default());
        }
    }

    /// Starts the recording of branches, unless they are paused or have no subscriber.
    pub fn trace(&self, cpu: &impl Cpu) {
        if let (Some(branches), true) = (&self.branches, self.installed) {
            let on = branches.subscriber.is_some() && !branches.paused;
            let modes = if on { branches.modes } else { Modes::default() };
            registers::trace(cpu, modes, self.saved.unwrap_or_default());
        }
    }

    /// Starts precise recording for more counters, for those in `accesses` with their accesses of memory. The processor
    /// loads each with its initial count after a record.
    pub fn start_precise(
        &mut self,
        cpu: &impl Cpu,
        counters: CounterSet,
        accesses: AccessCounters,
        initial: impl Fn(u8) -> u64,
    ) {
        if let (Some(precise), true) = (&mut self.precise, self.installed) {
            precise.counters = precise.counters.or(counters);
            precise.accesses = precise.accesses.replaced(counters, accesses);
            let (numbering, all, accesses) = (precise.numbering, precise.counters, precise.accesses);
            if self.place.buffer.is_some() {
                // No counter is loaded with zero, so that these are configured.
                counters.iter().for_each(|counter| cpu.set_save_area(numbering.reset_word(counter), 0));
                return self.set_initial(cpu, initial);
            }
            self.set_initial(cpu, initial);
            registers::enable_pebs(cpu, numbering, all, accesses);
        }
    }

    /// Stores the value with which each counter that records is loaded after its next record. With architectural PEBS
    /// that is in a register of the counter, which is written if the value is another.
    pub fn set_initial(&self, cpu: &impl Cpu, initial: impl Fn(u8) -> u64) {
        let Some(precise) = self.precise.as_ref().filter(|_| self.installed) else { return };
        for counter in precise.counters.iter() {
            let (word, initial) = (precise.numbering.reset_word(counter), initial(counter));
            if self.place.buffer.is_some() && cpu.save_area(word) != initial {
                let has_access = precise.accesses.operation(counter).is_some();
                architectural::configure(cpu, precise.numbering, counter, Some(initial), has_access);
            }
            cpu.set_save_area(word, initial);
        }
    }

    /// Ends precise recording for these counters, which do not run.
    pub fn stop_precise(&mut self, cpu: &impl Cpu, counters: CounterSet) {
        if let (Some(precise), true) = (&mut self.precise, self.installed) {
            precise.counters = precise.counters.without(counters);
            if !registers::records_to(cpu, self.place) {
                return;
            }
            if self.place.buffer.is_some() {
                let numbering = precise.numbering;
                counters.iter().for_each(|counter| architectural::configure(cpu, numbering, counter, None, false));
            } else {
                registers::enable_pebs(cpu, precise.numbering, precise.counters, precise.accesses);
            }
        }
    }

    /// Looks at the buffers: returns whether one has reached its threshold.
    pub fn is_due(&mut self, cpu: &impl Cpu) -> bool {
        if !self.installed {
            return false;
        }
        let watermark_hit = |index, threshold| cpu.save_area(index) >= cpu.save_area(threshold);
        let precise_due = self.precise.as_ref().is_some_and(|precise| {
            let (bytes, is_full) = precise.waiting(cpu, self.place.buffer.as_ref());
            if precise.numbering.accesses.is_none() {
                self.waiting = bytes / usize::from(precise.numbering.format.least_size()).max(1);
            }
            while precise.numbering.accesses.is_some() && self.looked_at < bytes {
                self.waiting += usize::from(precise.next_part(cpu, &mut self.looked_at, bytes) != Part::Fragment);
            }
            match self.place.buffer {
                Some(_) => is_full || bytes >= precise.threshold() as usize,
                None => watermark_hit(word::PEBS_INDEX, word::PEBS_INTERRUPT_THRESHOLD),
            }
        });
        precise_due || self.branches.is_some() && watermark_hit(word::BTS_INDEX, word::BTS_INTERRUPT_THRESHOLD)
    }

    /// Returns the counters that record precisely, if a fetch since the last call found their buffer full.
    pub fn take_full(&mut self) -> CounterSet {
        let counters = self.precise.as_ref().filter(|_| self.was_full).map(|precise| precise.counters);
        self.was_full = false;
        counters.unwrap_or_default()
    }

    /// Returns the number of precise records that the processor had written at the last look or fetch: its PebsIndex,
    /// summed over all buffers.
    pub const fn written(&self) -> u64 {
        self.fetched.wrapping_add(self.waiting as u64)
    }

    /// Returns whether the last look found one precise record that caused the interrupt: then the interrupted thread
    /// made it.
    pub fn is_attributed(&self) -> bool {
        self.precise.as_ref().is_some_and(|precise| precise.before == 1 && self.waiting == 1)
    }

    /// Passes each precise record to `each`, oldest first, and empties the buffer. Returns whether there were any. No
    /// counter that records may count in the meantime.
    pub fn fetch_precise(&mut self, cpu: &impl Cpu, mut each: impl FnMut(&FetchedRecord)) -> bool {
        let (Some(precise), true) = (&self.precise, self.installed) else { return false };
        let (bytes, is_full) = precise.waiting(cpu, self.place.buffer.as_ref());
        let mut offset = 0;
        while offset < bytes {
            let mut record = FetchedRecord {
                part: precise.next_part(cpu, &mut offset, bytes),
                counters: CounterSet::NONE,
                is_certain: false,
                number: self.fetched,
                numbering: precise.numbering,
                accesses: precise.accesses,
            };
            let counters = match record.part {
                Part::Fragment => continue,
                Part::Record(PebsRecord { counters, .. }) => counters,
                Part::Unreadable => None,
            };
            (record.counters, record.is_certain) = precise.counters_of(counters);
            each(&record);
            self.fetched = self.fetched.wrapping_add(1);
        }
        (self.waiting, self.looked_at, self.was_full) = (0, 0, self.was_full || is_full);
        self.empty_precise(cpu, bytes > 0, is_full);
        bytes > 0
    }

    /// Empties the buffer of precise records, which had some or was full.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    fn empty_precise(&self, cpu: &impl Cpu, had_records: bool, was_full: bool) {
        let Some(precise) = &self.precise else { return };
        match self.place.buffer {
            None => cpu.set_save_area(word::PEBS_INDEX, address(&precise.words)),
            Some(buffer) if had_records || was_full => architectural::empty(cpu, buffer),
            Some(_) => {}
        }
        if had_records {
            registers::acknowledge(cpu, precise.numbering.format);
        }
    }

    /// Passes each branch to `each`, oldest first, and empties the buffer. Returns whether there were any. No
    /// branches are recorded meanwhile, and recording resumes afterwards only if `go_on` is true.
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
    /// Returns how many bytes of records wait, and whether the next record has no room.
    #[expect(clippy::inline_always, reason = "a call adds 80 bytes of stack to the deepest path of the handler")]
    #[inline(always)]
    fn waiting(&self, cpu: &impl Cpu, buffer: Option<&RecordBuffer>) -> (usize, bool) {
        let largest = usize::from(self.numbering.largest_record());
        if let Some(buffer) = buffer {
            let written = architectural::written(cpu);
            let (bytes, room) = (written.bytes as usize, buffer.bytes() as usize);
            return (if bytes <= room { bytes } else { 0 }, written.is_full || bytes + largest > room);
        }
        let bytes = written(cpu, word::PEBS_BUFFER_BASE, &self.words);
        let whole = bytes - bytes % usize::from(self.numbering.format.least_size()).max(1);
        (whole, whole + largest > size_of_val::<[AtomicU64]>(&self.words))
    }

    /// Returns the bytes that are written before an interrupt: those of the smallest records.
    const fn threshold(&self) -> u32 {
        self.before * self.numbering.format.least_size() as u32
    }

    /// Reads what is at this offset of a buffer that is written up to `end`. Moves the offset behind it.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    fn next_part(&self, cpu: &impl Cpu, offset: &mut usize, end: usize) -> Part {
        let begin = *offset;
        let (part, size) = self.numbering.format.part(end - begin, |offset| self.word(cpu, begin + offset));
        *offset = begin.saturating_add(size);
        part
    }

    /// Returns the word at this offset of the buffer.
    // Never inlined: each record has several.
    #[inline(never)]
    fn word(&self, cpu: &impl Cpu, offset: usize) -> u64 {
        if self.numbering.format.is_architectural() {
            return cpu.save_area((((BUFFER_PAGE as usize + offset) / 8) as u64 & 0xFFFF) as u16);
        }
        self.words.get(offset / 8).map_or(0, load)
    }

    /// Returns the counters to which a record with these bits belongs, and whether that is certain. If one counter
    /// records, it is that one. The word of formats 1 to 3 is the status at the time (SDM Vol. 3B, "PEBS Record
    /// Format"), in which other bits may be set or the bit may be cleared by then. Later formats have the counters
    /// themselves.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    fn counters_of(&self, counters: Option<u64>) -> (CounterSet, bool) {
        if self.counters.len() == 1 {
            return (self.counters, true);
        }
        let saved = self.counters.and(self.numbering.counters(counters.unwrap_or_default()));
        match saved.len() {
            0 => (self.counters.iter().take(1).collect(), false),
            1 => (saved, true),
            _ => (saved, self.numbering.format >= Format::Adaptive),
        }
    }
}

impl Branches {
    fn waiting(&self, cpu: &impl Cpu) -> usize {
        written(cpu, word::BTS_BUFFER_BASE, &self.words) / size_of::<BtsRecord>()
    }
}

/// Returns a word that the processor wrote.
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Returns the address of the words. The compiler must assume that other code writes there.
fn address(words: &Words) -> u64 {
    words.as_ptr().expose_provenance() as u64
}

/// Stores a buffer for whole records of `size` bytes in the save area, from the word of its base on: base, index,
/// maximum, threshold after `before` bytes.
fn put(cpu: &impl Cpu, base: u16, words: &Words, size: u64, before: u64) {
    let buffer = Buffer::whole(address(words), size_of_val::<[AtomicU64]>(words) as u64, size);
    let threshold = buffer.threshold(before, 1);
    for (word, value) in (base..).zip([buffer.base, buffer.index, buffer.maximum, threshold]) {
        cpu.set_save_area(word, value);
    }
}

/// Returns the bytes that have been written to a buffer.
fn written(cpu: &impl Cpu, base: u16, words: &Words) -> usize {
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
        for (format, recording, bits, expected, is_certain) in [
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
            let numbering = Numbering { format, first_fixed: 8, accesses: None };
            let accesses = AccessCounters::default();
            let precise = Precise { words, before: 1, numbering, counters: set(recording), accesses };
            assert_eq!(precise.counters_of(bits), (set(expected), is_certain), "{format:?} {recording:?} {bits:?}");
        }
    }
}
