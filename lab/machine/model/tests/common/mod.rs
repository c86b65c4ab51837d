//! Processors for the tests, and a description of each PMU for laws that hold on every kind.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use model::{CpuidFunction, LedgerEntry, Mode, Processor, Selected};

pub const EN: u64 = 1 << 22;
pub const INT: u64 = 1 << 20;
pub const USR: u64 = 1 << 16;
pub const OS: u64 = 1 << 17;

/// Returns leaf 0 of a vendor: the highest leaf, and the name in EBX, EDX, ECX.
fn vendor(name: &[u8; 12], last: u32) -> [u32; 4] {
    let word = |i: usize| u32::from_le_bytes(name[i..i + 4].try_into().unwrap());
    [last, word(0), word(8), word(4)]
}

/// Returns a CPUID function with these leaves; other leaves are zero.
pub fn cpuid(leaves: Vec<(u32, [u32; 4])>) -> CpuidFunction {
    Box::new(move |leaf, _| leaves.iter().find(|(number, _)| *number == leaf).map_or([0; 4], |(_, values)| *values))
}

/// The PMU enumeration of an Intel processor, in leaf 0AH and `IA32_PERF_CAPABILITIES`.
#[derive(Clone, Copy)]
pub struct Leaf {
    pub version: u32,
    pub general: u32,
    pub width: u32,
    pub events_length: u32,
    pub events_absent: u32,
    pub fixed: u32,
    pub fixed_width: u32,
    pub fixed_bitmap: u32,
    pub any_thread_deprecated: bool,
    /// `None`: the processor has no `IA32_PERF_CAPABILITIES`.
    pub perf_capabilities: Option<u64>,
}

/// Returns the enumeration of a server processor of about 2020, with the given version.
pub const fn version(version: u32) -> Leaf {
    Leaf {
        version,
        general: 8,
        width: 48,
        events_length: 8,
        events_absent: 0,
        fixed: 4,
        fixed_width: 48,
        fixed_bitmap: 0,
        any_thread_deprecated: true,
        perf_capabilities: None,
    }
}

pub const FULL_WIDTH: u64 = 1 << 13;

impl Leaf {
    pub fn leaves(self) -> Vec<(u32, [u32; 4])> {
        let pdcm = u32::from(self.perf_capabilities.is_some()) << 15;
        vec![
            (0, vendor(b"GenuineIntel", 0x16)),
            (1, [0, 0, pdcm, 0]),
            (
                0xA,
                [
                    self.version | self.general << 8 | self.width << 16 | self.events_length << 24,
                    self.events_absent,
                    self.fixed_bitmap,
                    self.fixed | self.fixed_width << 5 | u32::from(self.any_thread_deprecated) << 15,
                ],
            ),
        ]
    }

    pub fn processor(self) -> Processor {
        Processor::new(cpuid(self.leaves())).with_perf_capabilities(self.perf_capabilities.unwrap_or(0))
    }
}

/// Resets the general counters of an Intel processor as Nehalem needs it, and turns all of them on.
pub fn reset(mut processor: Processor) -> Processor {
    for (counter, event) in (0..).zip([0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1]) {
        processor.wrmsr(0x186 + counter, event).unwrap();
        processor.wrmsr(0xC1 + counter, 0).unwrap();
    }
    let control = processor.rdmsr(0x38F).unwrap();
    processor.wrmsr(0x38F, 0xF).unwrap();
    processor.wrmsr(0x38F, control).unwrap();
    (0..4).for_each(|counter| processor.wrmsr(0x186 + counter, 0).unwrap());
    processor
}

pub fn amd_leaves(extended_features: u32, leaf_22: [u32; 4]) -> Vec<(u32, [u32; 4])> {
    vec![
        (0, vendor(b"AuthenticAMD", 0x10)),
        (0x8000_0000, [0x8000_0028, 0, 0, 0]),
        (0x8000_0001, [0x0010_0F00, 0, extended_features, 0]), // family 10h
        (0x8000_0022, leaf_22),
    ]
}

pub fn hygon_leaves() -> Vec<(u32, [u32; 4])> {
    vec![(0, vendor(b"HygonGenuine", 0x10)), (0x8000_0000, [0x8000_0001, 0, 0, 0]), (0x8000_0001, [0, 0, 1 << 23, 0])]
}

pub fn other_vendor_leaves(leaf_a: [u32; 4]) -> Vec<(u32, [u32; 4])> {
    vec![(0, vendor(b"CentaurHauls", 0xA)), (0xA, leaf_a)]
}

pub fn amd_legacy() -> Processor {
    Processor::new(cpuid(amd_leaves(0, [0; 4])))
}

pub fn amd_core() -> Processor {
    Processor::new(cpuid(amd_leaves(1 << 23, [0; 4])))
}

/// Creates a processor with `PerfMonV2`, `counters` counters and the freeze bits.
pub fn amd_v2_with(counters: u32) -> Processor {
    Processor::new(cpuid(amd_leaves(1 << 23, [0b101, counters, 0, 0])))
}

pub fn amd_v2() -> Processor {
    amd_v2_with(6)
}

/// The addresses of the global registers.
#[derive(Clone, Copy)]
pub struct Global {
    pub control: u32,
    pub status: u32,
    pub clear: u32,
}

const INTEL_GLOBAL: Option<Global> = Some(Global { control: 0x38F, status: 0x38E, clear: 0x390 });
const AMD_GLOBAL: Option<Global> = Some(Global { control: 0xC000_0301, status: 0xC000_0300, clear: 0xC000_0302 });

/// The general counters of one PMU, at one of their sets of addresses.
pub struct Unit {
    pub name: &'static str,
    pub make: fn() -> Processor,
    pub counters: u32,
    pub width: u32,
    /// (first, stride)
    pub select: (u32, u32),
    pub counter: (u32, u32),
    pub global: Option<Global>,
    pub amd: bool,
    /// A write sets only the low 32 bits and sign-extends bit 31.
    pub narrow_writes: bool,
}

pub const UNITS: [Unit; 12] = [
    amd("AMD legacy", amd_legacy, 4, K7, None),
    amd("AMD extended", amd_core, 6, CORE, None),
    amd("AMD extended, legacy names", amd_core, 4, K7, None),
    amd("AMD PerfMonV2", amd_v2, 6, CORE, AMD_GLOBAL),
    amd("AMD PerfMonV2, legacy names", amd_v2, 4, K7, AMD_GLOBAL),
    amd("AMD PerfMonV2, 15 counters", || amd_v2_with(15), 15, CORE, AMD_GLOBAL),
    intel("Intel 1", || Leaf { general: 2, width: 40, fixed: 0, ..version(1) }.processor(), 2, 40, None),
    intel("Intel 2", || Leaf { general: 2, width: 40, fixed: 3, ..version(2) }.processor(), 2, 40, INTEL_GLOBAL),
    intel("Intel 3", || Leaf { general: 4, fixed: 3, ..version(3) }.processor(), 4, 48, INTEL_GLOBAL),
    intel("Intel 4", || Leaf { fixed: 3, ..version(4) }.processor(), 8, 48, INTEL_GLOBAL),
    intel("Intel 5", || version(5).processor(), 8, 48, INTEL_GLOBAL),
    Unit {
        name: "Intel 5, full-width names",
        make: || Leaf { perf_capabilities: Some(FULL_WIDTH), ..version(5) }.processor(),
        counters: 8,
        width: 48,
        select: (0x186, 1),
        counter: (0x4C1, 1),
        global: INTEL_GLOBAL,
        amd: false,
        narrow_writes: false,
    },
];

/// (select, counter): the first address and the stride of each.
type Names = ((u32, u32), (u32, u32));
const K7: Names = ((0xC001_0000, 1), (0xC001_0004, 1));
const CORE: Names = ((0xC001_0200, 2), (0xC001_0201, 2));

const fn amd(
    name: &'static str,
    make: fn() -> Processor,
    counters: u32,
    (select, counter): Names,
    global: Option<Global>,
) -> Unit {
    Unit { name, make, counters, width: 48, select, counter, global, amd: true, narrow_writes: false }
}

const fn intel(name: &'static str, make: fn() -> Processor, counters: u32, width: u32, global: Option<Global>) -> Unit {
    Unit {
        name,
        make,
        counters,
        width,
        select: (0x186, 1),
        counter: (0xC1, 1),
        global,
        amd: false,
        narrow_writes: true,
    }
}

impl Unit {
    pub fn select(&self, i: u32) -> u32 {
        self.select.0 + self.select.1 * i
    }

    pub fn counter(&self, i: u32) -> u32 {
        self.counter.0 + self.counter.1 * i
    }

    pub fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }

    pub fn all(&self) -> u64 {
        (1 << self.counters) - 1
    }

    /// Loads a counter with minus `distance`. `distance` must fit in 31 bits, so that narrow writes load the same
    /// value.
    pub fn load_negative(&self, processor: &mut Processor, i: u32, distance: u32) {
        let value = u64::from(distance).wrapping_neg() & self.mask();
        processor.wrmsr(self.counter(i), value).unwrap();
    }

    pub fn set_select(&self, processor: &mut Processor, i: u32, value: u64) {
        processor.wrmsr(self.select(i), value).unwrap();
    }

    pub fn read(&self, processor: &mut Processor, i: u32) -> u64 {
        processor.rdmsr(self.counter(i)).unwrap()
    }
}

/// Checks a law on a new processor of each unit.
pub fn on_each_unit(law: impl Fn(&Unit, &mut Processor)) {
    for unit in &UNITS {
        println!("{}", unit.name);
        law(unit, &mut (unit.make)());
    }
}

/// Executes code in user mode with `count` occurrences of every event.
pub fn run(processor: &mut Processor, count: u64) {
    processor.run(Mode::User, &|_| count);
}

pub fn entries(processor: &Processor) -> Vec<LedgerEntry> {
    processor.ledger().entries().collect()
}

/// Returns the event and the unit mask of a selection.
pub fn encoding(selected: Selected) -> (u16, u16) {
    (selected.event, selected.umask)
}
