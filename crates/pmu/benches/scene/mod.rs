//! What both benches drive: the HAL functions over a processor that does nothing but take notes.

use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU64;

use cpuid_dumps::CpuIdentity;
use pmu::state::CounterSet;
use pmu::{Cpu, Cpuid, CurrentCpu, Hal, Msr, ProcessorIndex, Source};
use raw_cpuid::CpuIdResult;

/// The interfaces with counters, each with a processor that has four of them at least. Both stand here twice: the older
/// finds overflows by the counters' values, the later by a status register.
pub const INTERFACES: [(&str, &str); 4] =
    [("Amd64", "amd-legacy"), ("Amd64 V2", "zen4-7700x"), ("Emon v1", "intel-v1"), ("Emon v2+", "haswell-4710mq")];

/// Processors for which a scene has state. Batches of a bench take one after the other.
pub const PROCESSORS: u32 = 64;

/// Accesses to model-specific registers.
#[derive(Clone, Copy, Default)]
pub struct Accesses {
    /// RDMSR.
    pub rdmsr: u64,
    /// WRMSR.
    pub wrmsr: u64,
    /// RDPMC.
    pub rdpmc: u64,
}

/// A processor without a model: what is written goes into a small ring, what is read was fixed before.
///
/// Its functions are never inlined: callgrind can tell them from the logic that calls them.
pub struct Recorder {
    identity: &'static CpuIdentity,
    /// What every RDMSR answers: among the operations here only a status register is read.
    status: u64,
    /// What RDPMC answers.
    counts: [u64; 4],
    notes: [Cell<(u32, u64)>; 16],
    accesses: Cell<Accesses>,
}

impl Recorder {
    /// The accesses so far.
    pub fn accesses(&self) -> Accesses {
        self.accesses.get()
    }

    fn note(&self, address: u32, value: u64, accesses: Accesses) {
        let place = (accesses.rdmsr + accesses.wrmsr + accesses.rdpmc) % 16;
        if let Some(note) = usize::try_from(place).ok().and_then(|place| self.notes.get(place)) {
            note.set((address, value));
        }
        self.accesses.set(accesses);
    }
}

impl Cpuid for Recorder {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.identity.cpuid().cpuid(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

impl Cpu for Recorder {
    #[inline(never)]
    fn rdmsr(&self, msr: Msr) -> u64 {
        let so_far = self.accesses.get();
        self.note(msr.address(), self.status, Accesses { rdmsr: so_far.rdmsr + 1, ..so_far });
        self.status
    }

    #[inline(never)]
    fn wrmsr(&self, msr: Msr, value: u64) {
        let so_far = self.accesses.get();
        self.note(msr.address(), value, Accesses { wrmsr: so_far.wrmsr + 1, ..so_far });
    }

    #[inline(never)]
    fn rdpmc(&self, index: u32) -> u64 {
        let so_far = self.accesses.get();
        let count = self.counts.get(index as usize).copied().unwrap_or_default();
        self.note(index, count, Accesses { rdpmc: so_far.rdpmc + 1, ..so_far });
        count
    }

    /// As Windows' HAL has it since 1803 when a handler is called: not masked. A load, which is counted as logic.
    #[inline]
    fn lvt_pmi(&self) -> u32 {
        black_box(0xFE)
    }

    #[inline]
    fn set_lvt_pmi(&self, entry: u32) {
        black_box(entry);
    }

    fn extended_lvt(&self, _index: u8) -> u32 {
        0
    }

    fn run_loop(&self, iterations: u32) {
        black_box(iterations);
    }

    #[inline]
    fn time_stamp(&self) -> u64 {
        black_box(0)
    }

    fn user_rdpmc(&self) -> bool {
        false
    }

    fn save_area(&self, _word: u16) -> u64 {
        0
    }

    fn set_save_area(&self, _word: u16, _value: u64) {}
}

/// Counters reserved on every processor, not started yet.
pub struct Scene {
    /// The HAL functions.
    pub hal: Hal,
    /// The processor, which stands for each.
    pub cpu: Recorder,
    /// The counters.
    pub counters: CounterSet,
}

/// How a scene's counters are set up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// They count.
    Count,
    /// They interrupt after every 65,536 events.
    Sample,
}

impl Scene {
    /// `count` counters of an identity. The first `overflowed` of them have overflowed at every look.
    pub fn new(identity: &str, count: u8, how: Use, overflowed: u8) -> Self {
        let identity = cpuid_dumps::find(identity).expect("an identity");
        let overflowed = CounterSet::first(overflowed);
        // The top bit of a counter tells: it is set until the counter overflows.
        let before_overflow = 1 << (identity.expected.width - 1) | 0x1234;
        let answer = |counter| if overflowed.iter().any(|one| one == counter) { 17 } else { before_overflow };
        let cpu = Recorder {
            identity,
            status: overflowed.bits().into(),
            counts: [0, 1, 2, 3].map(answer),
            notes: [const { Cell::new((0, 0)) }; 16],
            accesses: Cell::default(),
        };
        let hal = Hal::new(&cpu, PROCESSORS).expect("memory");
        hal.handler.set(Some(NonZeroU64::MIN), 1).expect("a free slot");
        let state = hal.state_for(Source(6), 0, false).expect("a source that general counters count");
        let mut state = state.with_owner(1).with_user(true).with_kernel(true);
        if how != Use::Count {
            state = state.with_interval(65_536);
        }
        let reserve = |processor| (0..count).map(|_| hal.reserve(processor, state).expect("a free counter")).collect();
        let counters = ProcessorIndex::first(PROCESSORS).map(reserve).last().unwrap_or_default();
        Self { hal, cpu, counters }
    }

    /// The counters of every processor are started.
    pub fn started(self) -> Self {
        for processor in ProcessorIndex::first(PROCESSORS) {
            self.hal.start(CurrentCpu::new(&self.cpu, processor), self.counters);
        }
        self
    }
}

/// Starts counters.
#[inline(never)]
pub fn measured_start(hal: &Hal, current: CurrentCpu<'_, Recorder>, counters: CounterSet) {
    hal.start(current, counters);
}

/// Stops counters.
#[inline(never)]
pub fn measured_stop(hal: &Hal, current: CurrentCpu<'_, Recorder>, counters: CounterSet) {
    black_box(hal.stop(current, counters));
}

/// Reads counters.
#[inline(never)]
pub fn measured_read(hal: &Hal, current: CurrentCpu<'_, Recorder>, counters: CounterSet) {
    for counter in counters.iter() {
        black_box(hal.count(current, counter));
    }
}

/// Serves an interrupt.
#[inline(never)]
pub fn measured_interrupt(hal: &Hal, current: CurrentCpu<'_, Recorder>) {
    black_box(hal.interrupt(current));
}
