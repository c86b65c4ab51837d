//! A processor of the model as [`pmu::Cpu`] and [`pmu::GuardedCpu`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{GeneralProtection, Mode, Processor, Selected};
use pmu::first_access::{self, Access};
use pmu::ibs::x2apic_entry;
use pmu::lvt_pmi::X2APIC_LVT_PERFORMANCE;
use pmu::{Cpu, Cpuid, GuardedCpu, Msr};
use raw_cpuid::CpuIdResult;

use crate::fault_point;
use crate::lies::{Liar, Lie, Question};

/// A model processor that the code under test runs on.
pub struct ModelCpu {
    model: Mutex<Processor>,
    local_reads: AtomicU64,
    local_writes: AtomicU64,
    /// Number of accesses until events occur, and the number of each event. Disabled if the first is 0.
    meanwhile: (AtomicU64, AtomicU64),
    /// Accesses so far, which vary the events between two of them.
    accesses: AtomicU64,
    /// Whether no events occur between them.
    holds_time: AtomicBool,
    /// Whether each takes a unit of time, in which each event occurs once.
    is_steady: AtomicBool,
    /// The control area, with its maximum size.
    area: Box<[Page]>,
    /// Number of words of the control area that are allocated.
    area_words: AtomicUsize,
    /// Physical address of the control area if it is contiguous, or 0.
    area_physical: AtomicU64,
    /// The time-stamp counter, and by what each read advances it.
    time_stamp: AtomicU64,
    time_stamp_pace: AtomicU64,
    /// By what each read of the control area advances it.
    area_pace: AtomicU64,
    /// CR4.PCE.
    user_rdpmc: AtomicBool,
    /// Whether the processor sleeps. While it does, a register access panics.
    asleep: AtomicBool,
    /// Guarded accesses that did not fault.
    first: Mutex<BTreeSet<(Access, u32)>>,
    /// By register, what an unguarded write may write.
    proven: Mutex<BTreeMap<u32, Proven>>,
    /// The same of registers that the threads of a core may share: one writes back what the other has found.
    shared_proven: Arc<Mutex<BTreeMap<u32, Proven>>>,
    /// Registers that software has written since the processor was reset.
    written: Mutex<BTreeSet<u32>>,
    /// Whether an unguarded access panics unless it is in `first`.
    must_guard: AtomicBool,
    /// Accesses since a guarded one faulted, or [`NO_FAULT`].
    since_fault: AtomicU64,
    /// Decides how the processor answers, and whether there is one.
    liar: (Mutex<Option<Liar>>, AtomicBool),
    /// Registers of which it lied without a guard.
    lied: Mutex<BTreeSet<u32>>,
}

/// What guarded writes have written to a register, or unguarded reads have found there after another program wrote it.
/// What a guarded read has found proves nothing, nor does the value of a reset, of firmware or of a hypervisor.
#[derive(Default)]
struct Proven {
    /// The bits that were set.
    set: u64,
    /// The bits that were clear.
    clear: u64,
    /// Whether all were.
    zero: bool,
}

/// Returns the bits of a register that may be cleared although no guarded write has cleared them.
const fn clear_by_others(number: u32) -> u64 {
    match number {
        // Fixed counter 3 and its metrics, in IA32_FIXED_CTR_CTRL and IA32_PERF_GLOBAL_CTRL. A trial would stop them
        // for a program that counts them already, although only a forced session takes them from it.
        0x38D => 0xF << 12,
        0x38F => 1 << 35 | 1 << 48,
        _ => 0,
    }
}

/// IA32_PMC0.
const FIRST_COUNTER: u32 = 0xC1;

/// MSR_OFFCORE_RSP_0 and 1, which the threads of a core of Nehalem and Westmere share.
const SHARED: [u32; 2] = [0x1A6, 0x1A7];

/// No guarded access has faulted.
const NO_FAULT: u64 = u64::MAX;

/// Pages of the largest area: one, and 32 for a buffer of architectural PEBS.
const AREA_PAGES: usize = 33;

/// Words of a page.
const PAGE_WORDS: usize = host_memory::contiguous::PAGE / 8;

/// A page of the control area.
#[repr(align(4096))]
struct Page([AtomicU64; PAGE_WORDS]);

impl ModelCpu {
    /// Wraps a processor.
    #[must_use]
    pub fn new(processor: Processor) -> Self {
        Self {
            model: Mutex::new(processor),
            local_reads: AtomicU64::new(0),
            local_writes: AtomicU64::new(0),
            meanwhile: (AtomicU64::new(0), AtomicU64::new(0)),
            accesses: AtomicU64::new(0),
            holds_time: AtomicBool::new(false),
            is_steady: AtomicBool::new(false),
            area: (0..AREA_PAGES).map(|_| Page([const { AtomicU64::new(0) }; PAGE_WORDS])).collect(),
            area_words: AtomicUsize::new(0),
            area_physical: AtomicU64::new(0),
            time_stamp: AtomicU64::new(0),
            time_stamp_pace: AtomicU64::new(0),
            area_pace: AtomicU64::new(0),
            user_rdpmc: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            first: Mutex::default(),
            proven: Mutex::default(),
            shared_proven: Arc::default(),
            written: Mutex::default(),
            must_guard: AtomicBool::new(false),
            since_fault: AtomicU64::new(NO_FAULT),
            liar: Default::default(),
            lied: Mutex::default(),
        }
    }

    /// Lets `liar` decide how the processor answers the code under test. What an unguarded read answers may be written
    /// back then. With `None`, which is the default, the answers are true.
    pub fn lie(&self, liar: Option<Liar>) {
        self.liar.1.store(liar.is_some(), Ordering::Relaxed);
        *self.liar.0.lock().unwrap_or_else(PoisonError::into_inner) = liar;
    }

    fn lies(&self) -> bool {
        self.liar.1.load(Ordering::Relaxed)
    }

    fn lie_about(&self, question: Question) -> Lie {
        if !self.lies() {
            return Lie::Truth;
        }
        let mut liar = self.liar.0.lock().unwrap_or_else(PoisonError::into_inner);
        liar.as_mut().map_or(Lie::Truth, |liar| liar(question))
    }

    /// Lets what is proven of shared registers by one thread of a core hold for the other.
    pub(crate) fn share_proven(&mut self, other: &Self) {
        self.shared_proven = Arc::clone(&other.shared_proven);
    }

    /// Sets whether every unguarded access panics unless a guarded one of the same kind came before it, and every
    /// unguarded write of zero, or of a bit as no guarded one has written it. If not, accesses are not noted.
    pub fn require_guards(&self, require: bool) {
        self.must_guard.store(require, Ordering::Relaxed);
    }

    /// Sets CR4.PCE.
    pub fn set_user_rdpmc(&self, works: bool) {
        self.user_rdpmc.store(works, Ordering::Relaxed);
    }

    fn must_guard(&self) -> bool {
        self.must_guard.load(Ordering::Relaxed)
    }

    /// Returns the guarded accesses that did not fault.
    pub fn guarded_accesses(&self) -> BTreeSet<(Access, u32)> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of accesses after the first guarded one that faulted, or `None` if none did.
    pub fn accesses_since_fault(&self) -> Option<u64> {
        Some(self.since_fault.load(Ordering::Relaxed)).filter(|count| *count != NO_FAULT)
    }

    fn count_since_fault(&self) {
        if self.since_fault.load(Ordering::Relaxed) != NO_FAULT {
            self.since_fault.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes an access of the code under test.
    #[track_caller]
    fn note(&self, access: Access, number: u32, text: &dyn std::fmt::Display) {
        self.check_awake(text);
        self.count_since_fault();
        if self.must_guard() {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(first.contains(&(access, number)), "{text} before a guarded access");
        }
    }

    /// Takes the processor through a loss of power and the resume from it.
    pub(crate) fn lose_power(&self) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.model().lose_power();
    }

    /// Returns whether software has written a register since the reset.
    fn is_written(&self, number: u32) -> bool {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }

    /// Notes that software has written a register.
    fn note_written(&self, number: u32) {
        if self.must_guard() {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        }
    }

    fn proven(&self, number: u32) -> &Mutex<BTreeMap<u32, Proven>> {
        if SHARED.contains(&number) { &self.shared_proven } else { &self.proven }
    }

    /// Notes what a register has taken, or had.
    fn note_proven(&self, number: u32, value: u64) {
        if self.must_guard() {
            let mut all = self.proven(number).lock().unwrap_or_else(PoisonError::into_inner);
            let proven = all.entry(number).or_default();
            proven.set |= value;
            proven.clear |= !value;
            proven.zero |= value == 0;
        }
    }

    /// Panics if an unguarded write sets or clears bits as no guarded one has, or all of them.
    #[track_caller]
    fn check_proven(&self, number: u32, value: u64) {
        if self.must_guard() {
            let all = self.proven(number).lock().unwrap_or_else(PoisonError::into_inner);
            let proven = all.get(&number).unwrap_or(const { &Proven { set: 0, clear: 0, zero: false } });
            let (by_others, set) = (clear_by_others(number), value & !proven.set);
            let clear = !value & !proven.clear & !by_others;
            let is_zero_proven = value != 0 || proven.zero || by_others != 0;
            assert!(set == 0, "wrmsr {number:#x} {value:#x}: no guarded access has written the bits {set:#x}");
            assert!(clear == 0, "wrmsr {number:#x} {value:#x}: no guarded access has cleared the bits {clear:#x}");
            assert!(is_zero_proven, "wrmsr {number:#x} 0: no guarded access has written zero");
        }
    }

    /// Executes a guarded access, which may be made to fault.
    fn attempted<T>(
        &self,
        access: &'static str,
        lie: Lie,
        execute: impl FnOnce(&mut Processor) -> Result<T, GeneralProtection>,
    ) -> Result<T, GeneralProtection> {
        if fault_point::fails(access) || lie == Lie::Fault {
            Err(GeneralProtection)
        } else {
            execute(&mut self.accessed())
        }
    }

    /// Returns the result of a guarded access.
    fn guarded<T>(
        &self,
        access: Access,
        number: u32,
        outcome: Result<T, GeneralProtection>,
    ) -> Result<T, first_access::GeneralProtection> {
        self.count_since_fault();
        if outcome.is_err() {
            // The first one alone.
            let _ = self.since_fault.compare_exchange(NO_FAULT, 0, Ordering::Relaxed, Ordering::Relaxed);
        } else if self.must_guard() {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).insert((access, number));
        }
        outcome.map_err(|_| first_access::GeneralProtection)
    }

    /// Advances the time-stamp counter, which stands still otherwise.
    pub fn pass_time_stamps(&self, stamps: u64) {
        self.time_stamp.fetch_add(stamps, Ordering::Relaxed);
    }

    /// Sets by how much each read advances the time-stamp counter.
    pub fn set_time_stamp_pace(&self, stamps: u64) {
        self.time_stamp_pace.store(stamps, Ordering::Relaxed);
    }

    /// Sets by how much each read of the control area advances the time-stamp counter.
    pub fn set_area_pace(&self, stamps: u64) {
        self.area_pace.store(stamps, Ordering::Relaxed);
    }

    /// Sets whether the processor sleeps. While it does, a register access by the code under test panics.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::Relaxed);
    }

    /// Returns whether the processor sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Panics if the processor sleeps.
    #[track_caller]
    fn check_awake(&self, access: &dyn std::fmt::Display) {
        assert!(!self.is_asleep(), "{access} while the processor sleeps");
    }

    /// Allocates the control area with this number of words, filled with zeros, and returns its address.
    ///
    /// # Panics
    /// Panics if the area is already allocated, or cannot have so many words.
    pub fn allocate_area(&self, words: usize) -> u64 {
        assert!(words <= AREA_PAGES * PAGE_WORDS);
        assert_eq!(self.area_words.swap(words, Ordering::Relaxed), 0, "allocated twice");
        self.area.iter().flat_map(|page| &page.0).take(words).for_each(|word| word.store(0, Ordering::Relaxed));
        self.area.as_ptr().expose_provenance() as u64
    }

    /// As [`allocate_area`](Self::allocate_area), of contiguous physical memory. Returns its physical address as well.
    ///
    /// # Panics
    /// Panics as that does.
    pub fn allocate_contiguous(&self, words: usize) -> (u64, u64) {
        let linear = self.allocate_area(words);
        let physical = host_memory::contiguous::add(linear, words as u64 * 8);
        self.area_physical.store(physical, Ordering::Relaxed);
        (linear, physical)
    }

    /// Frees the control area.
    ///
    /// # Panics
    /// Panics if the area is not allocated.
    pub fn free_area(&self) {
        assert_ne!(self.area_words.swap(0, Ordering::Relaxed), 0, "freed, but not allocated");
        host_memory::contiguous::remove(self.area_physical.swap(0, Ordering::Relaxed));
    }

    /// Returns whether the control area is allocated.
    pub fn has_area(&self) -> bool {
        self.area_words.load(Ordering::Relaxed) > 0
    }

    /// Returns a word of the control area, or `None` if there is no area.
    ///
    /// # Panics
    /// Panics if the area is shorter: the word is other memory.
    fn area_word(&self, word: u16) -> Option<&AtomicU64> {
        let (index, words) = (usize::from(word), self.area_words.load(Ordering::Relaxed));
        assert!(words == 0 || index < words, "word {word} of an area of {words} words");
        self.area.get(index / PAGE_WORDS)?.0.get(index % PAGE_WORDS).filter(|_| words > 0)
    }

    /// Returns the number of reads and of writes of the LVT entry.
    pub fn local_accesses(&self) -> (u64, u64) {
        (self.local_reads.load(Ordering::Relaxed), self.local_writes.load(Ordering::Relaxed))
    }

    /// Makes `events` of every event occur immediately before the access with this number from now (1 is the next).
    /// Counts accesses to registers and to the LVT entry.
    pub fn happen_before_access(&self, number: u64, events: u64) {
        let (left, count) = &self.meanwhile;
        count.store(events, Ordering::Relaxed);
        left.store(number, Ordering::Relaxed);
    }

    /// Lets no events occur between accesses, except those that are [asked for](Self::happen_before_access).
    pub fn hold_time(&self) {
        self.holds_time.store(true, Ordering::Relaxed);
    }

    /// Lets each access take a unit of time of the machine's clock, in which every event occurs once.
    pub fn steady_time(&self) {
        self.is_steady.store(true, Ordering::Relaxed);
    }

    /// Returns the time that its accesses have taken.
    pub fn time_of_accesses(&self) -> u64 {
        if self.is_steady.load(Ordering::Relaxed) { self.accesses.load(Ordering::Relaxed) } else { 0 }
    }

    /// Writes a register as another program does. The access is not counted. Returns whether the processor accepted it.
    pub fn write_foreign(&self, msr: u32, value: u64) -> bool {
        self.note_written(msr);
        self.model().uncounted(|model| model.wrmsr(msr, value)).is_ok()
    }

    /// Locks the model for an access by the code under test, and makes the events occur that precede it: a few of each
    /// kind in kernel mode, because time passes between any two accesses, and those that are due.
    fn accessed(&self) -> MutexGuard<'_, Processor> {
        let (left, count) = &self.meanwhile;
        let mut model = self.model();
        let access = self.accesses.fetch_add(1, Ordering::Relaxed);
        if !self.holds_time.load(Ordering::Relaxed) {
            let is_steady = self.is_steady.load(Ordering::Relaxed);
            model.run_between_accesses(&|selected| if is_steady { 1 } else { events_before(access, selected) });
        }
        let number = left.load(Ordering::Relaxed);
        if number > 0 {
            left.store(number - 1, Ordering::Relaxed);
        }
        if number == 1 {
            model.run(Mode::Kernel, &|_| count.load(Ordering::Relaxed));
        }
        model
    }

    /// Locks the model, to run it or to query it.
    pub fn model(&self) -> MutexGuard<'_, Processor> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many events of a kind precede an access: 0 to 15, differently for each access and kind. The metrics of
/// level 1 of the top-down method divide the slots.
fn events_before(access: u64, selected: Selected) -> u64 {
    /// The odd number nearest to 2^64 divided by the golden ratio, as in Fibonacci hashing.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    /// The event of slots, and the one of the metrics (event files, `TOPDOWN.SLOTS` and `PERF_METRICS`).
    const SLOTS: u64 = 0xA401;
    const METRICS: u16 = 0x00;
    let of = |kind: u64| (access << 24 | kind).wrapping_mul(SPREAD) >> 60;
    match (selected.event, selected.umask) {
        (METRICS, 0x80) => of(SLOTS) - 3 * (of(SLOTS) / 4),
        (METRICS, 0x81..=0x83) => of(SLOTS) / 4,
        (METRICS, 0x84..=0x87) => 0,
        (event, umask) => of(u64::from(event) << 8 | u64::from(umask)),
    }
}

/// Returns the value of an access.
///
/// # Panics
/// Panics if the access faulted, which would stop a real machine.
#[track_caller]
pub fn served<T>(outcome: Result<T, GeneralProtection>, access: &dyn std::fmt::Display) -> T {
    match outcome {
        Ok(value) => value,
        #[expect(clippy::panic, reason = "a test must not go on after what stops a machine")]
        Err(fault) => panic!("{fault} on {access}"),
    }
}

impl Cpuid for ModelCpu {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let truth = self.model().cpuid(leaf, subleaf);
        let [eax, ebx, ecx, edx] = self.lie_about(Question::Cpuid(leaf, subleaf)).instead_of_leaf(truth);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

impl GuardedCpu for ModelCpu {
    type Identity = Self;

    fn identity(&self) -> &Self {
        self
    }

    fn try_rdmsr(&self, msr: Msr) -> Result<u64, first_access::GeneralProtection> {
        self.check_awake(&format_args!("a guarded rdmsr {:#x}", msr.address()));
        let lie = self.lie_about(Question::GuardedRead(msr.address()));
        let outcome = self.attempted("try_rdmsr", lie, |model| model.rdmsr(msr.address()));
        self.guarded(Access::Read, msr.address(), outcome).map(|value| lie.instead_of_register(value))
    }

    fn try_wrmsr(&self, msr: Msr, value: u64) -> Result<(), first_access::GeneralProtection> {
        self.check_awake(&format_args!("a guarded wrmsr {:#x}", msr.address()));
        let lie = self.lie_about(Question::GuardedWrite(msr.address()));
        let outcome = self.attempted("try_wrmsr", lie, |model| model.wrmsr(msr.address(), value));
        if outcome.is_ok() {
            self.note_written(msr.address());
            self.note_proven(msr.address(), value);
        }
        self.guarded(Access::Write, msr.address(), outcome)
    }

    fn try_rdpmc(&self, index: u32) -> Result<u64, first_access::GeneralProtection> {
        self.check_awake(&format_args!("a guarded rdpmc {index:#x}"));
        let lie = self.lie_about(Question::GuardedCounter(index));
        let outcome = self.attempted("try_rdpmc", lie, |model| model.rdpmc(index));
        self.guarded(Access::Counter, index, outcome)
    }

    fn run_loop(&self, iterations: u32) {
        Cpu::run_loop(self, iterations);
    }
}

impl Cpu for ModelCpu {
    fn rdmsr(&self, msr: Msr) -> u64 {
        let access = format_args!("rdmsr {:#x}", msr.address());
        self.note(Access::Read, msr.address(), &access);
        let value = served(self.accessed().rdmsr(msr.address()), &access);
        let lie = self.lie_about(Question::Read(msr.address()));
        let value = lie.instead_of_register(value);
        if lie != Lie::Truth {
            self.lied.lock().unwrap_or_else(PoisonError::into_inner).insert(msr.address());
        }
        if self.is_written(msr.address()) || self.lies() {
            self.note_proven(msr.address(), value);
        }
        value
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        let access = format_args!("wrmsr {:#x} {value:#x}", msr.address());
        self.note(Access::Write, msr.address(), &access);
        self.check_proven(msr.address(), value);
        self.note_written(msr.address());
        let outcome = self.accessed().wrmsr(msr.address(), value);
        // The processor would take what it has answered.
        if outcome.is_ok() || !self.lied.lock().unwrap_or_else(PoisonError::into_inner).contains(&msr.address()) {
            served(outcome, &access);
        }
    }

    fn rdpmc(&self, index: u32) -> u64 {
        let access = format_args!("rdpmc {index:#x}");
        self.note(Access::Counter, index, &access);
        let value = served(self.accessed().rdpmc(index), &access);
        // What a counter contains may be written back, too.
        if self.lies() {
            self.note_proven(FIRST_COUNTER.wrapping_add(index), value);
        }
        value
    }

    /// In x2APIC mode, the entry is a register like others.
    fn extended_lvt(&self, index: u8) -> u32 {
        self.check_awake(&"a read of the local vector table");
        self.local_reads.fetch_add(1, Ordering::Relaxed);
        if self.model().is_x2apic() {
            (self.rdmsr(x2apic_entry(index)) & 0xFFFF_FFFF) as u32
        } else {
            self.accessed().extended_lvt(index.into())
        }
    }

    fn lvt_pmi(&self) -> u32 {
        self.check_awake(&"a read of the local vector table");
        self.local_reads.fetch_add(1, Ordering::Relaxed);
        if self.model().is_x2apic() {
            (self.rdmsr(X2APIC_LVT_PERFORMANCE) & 0xFFFF_FFFF) as u32
        } else {
            self.accessed().lvt()
        }
    }

    fn run_loop(&self, iterations: u32) {
        self.check_awake(&"a loop");
        self.model().run_loop(iterations);
    }

    fn time_stamp(&self) -> u64 {
        self.time_stamp.fetch_add(self.time_stamp_pace.load(Ordering::Relaxed), Ordering::Relaxed)
    }

    fn user_rdpmc(&self) -> bool {
        self.user_rdpmc.load(Ordering::Relaxed)
    }

    fn save_area(&self, word: u16) -> u64 {
        self.pass_time_stamps(self.area_pace.load(Ordering::Relaxed));
        let word = self.area_word(word);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set_save_area(&self, word: u16, value: u64) {
        if let Some(word) = self.area_word(word) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// In x2APIC mode, the entry is a register like others.
    fn set_lvt_pmi(&self, entry: u32) {
        self.check_awake(&"a write of the local vector table");
        self.local_writes.fetch_add(1, Ordering::Relaxed);
        if self.model().is_x2apic() {
            self.wrmsr(X2APIC_LVT_PERFORMANCE, entry.into());
        } else {
            self.accessed().set_lvt(entry);
        }
    }
}
