//! Extra registers: what some events of Intel count depends on a second register.
//!
//! The events and the bits are those of Linux, arch/x86/events/intel/core.c (the tables of type `extra_reg`), with the
//! bits that Intel's event files (perfmon, August 2026, columns `MSRIndex` and `MSRValue`) set as well. Off-core
//! response: SDM, "Off-core Response Performance Monitoring" in the sections of the processors.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    bits::{bit, byte, ones},
    cpuid::{Cpuid, family, is_atom, vendor},
    fault::{GeneralProtection, refuse_reserved},
    select::Selected,
};

/// `MSR_OFFCORE_RSP_0` and `MSR_OFFCORE_RSP_1` (SDM Vol. 4).
const OFFCORE_RSP_0: u32 = 0x1A6;
const OFFCORE_RSP_1: u32 = 0x1A7;
/// First and last of the four off-module response registers (Linux, arch/x86/include/asm/msr-index.h, `MSR_OMR_0`).
const OMR_0: u32 = 0x3E0;
const OMR_3: u32 = 0x3E3;
/// `MSR_PEBS_LD_LAT_THRESHOLD`.
const LD_LAT_THRESHOLD: u32 = 0x3F6;
/// `MSR_PEBS_FRONTEND`.
const FRONTEND: u32 = 0x3F7;

/// An event that a register belongs to: event and unit mask.
type Encoding = (u16, u16);

/// What an event says of accesses of memory in records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Accessed {
    /// Loads of at least this latency.
    Load {
        threshold: u64,
        /// The source is that of the first-level cache, whatever it was.
        is_blind: bool,
        /// Both latencies are in one word.
        packs_latencies: bool,
    },
    /// Stores.
    Store {
        /// They are recorded only if `IA32_PEBS_ENABLE` says so.
        needs_bit: bool,
        /// Their latencies are recorded, in one word.
        has_latency: bool,
    },
}

/// The extra registers of a generation.
#[derive(Debug)]
struct Generation {
    /// Event and writable bits of both off-core response registers. Without bits the register does not exist.
    offcore: [(Encoding, u64); 2],
    /// Off-module responses: the events whose unit mask 1 << n is for register n, and the writable bits of all four.
    /// Without bits they do not exist.
    off_module: (&'static [u16], u64),
    /// The bits of a response that select requests. The others select responses.
    requests: u64,
    /// Whether the threads of a core have the off-core response registers in common.
    is_shared: bool,
    /// The load latency event.
    load_latency: Option<Encoding>,
    /// Whether its records have a source only beside the auxiliary event 03/82 (Linux commit 61b985e3e775,
    /// `mem-loads-aux`). Without it, every load seems to hit the first-level cache.
    needs_auxiliary: bool,
    /// The event whose records have stores, if there is one (event files, `MEM_TRANS_RETIRED.PRECISE_STORE` and
    /// `.STORE_SAMPLE`, `MEM_UOPS_RETIRED.ALL_STORES` and `.STORE_LATENCY`), and whether it needs a bit of
    /// `IA32_PEBS_ENABLE` (SDM, "Precise Store Facility").
    store: Option<(Encoding, bool)>,
    /// Whether records have the latency of stores, and both latencies of loads in one word (Linux,
    /// `PMU_FL_INSTR_LATENCY`).
    has_latencies: bool,
    /// The front-end events, and the writable bits of their register.
    front_end: (&'static [Encoding], u64),
}

const NO_FRONT_END: (&[Encoding], u64) = (&[], 0);
const AUXILIARY: Encoding = (0x03, 0x82);

/// Two events, as big cores have it; later one event with two unit masks, as small cores have it.
const fn big(bits: u64) -> [(Encoding, u64); 2] {
    [((0xB7, 0x01), bits), ((0xBB, 0x01), bits)]
}

const fn small(first: u64, second: u64) -> [(Encoding, u64); 2] {
    [((0xB7, 0x01), first), ((0xB7, 0x02), second)]
}

const NEHALEM: Generation = Generation {
    offcore: [((0xB7, 0x01), 0xFFFF), ((0xBB, 0x01), 0)],
    off_module: (&[], 0),
    requests: 0xFF,
    is_shared: true,
    load_latency: Some((0x0B, 0x10)),
    needs_auxiliary: false,
    store: None,
    has_latencies: false,
    front_end: NO_FRONT_END,
};
const WESTMERE: Generation = Generation { offcore: big(0xFFFF), ..NEHALEM };
const SANDY_BRIDGE: Generation = Generation {
    offcore: big(0x3F_807F_8FFF),
    requests: 0xFFFF,
    is_shared: false,
    load_latency: Some((0xCD, 0x01)),
    store: Some(((0xCD, 0x02), true)),
    ..NEHALEM
};
const SANDY_BRIDGE_EP: Generation = Generation { offcore: big(0x3F_FFFF_8FFF), ..SANDY_BRIDGE };
/// Also Broadwell.
const HASWELL: Generation = Generation { store: Some(((0xD0, 0x82), false)), ..SANDY_BRIDGE_EP };
const SKYLAKE: Generation = Generation { front_end: (&[(0xC6, 0x01)], 0x7F_FF17), ..HASWELL };
const ICE_LAKE: Generation = Generation { offcore: big(0x3F_FFFF_BFFF), ..SKYLAKE };
const GOLDEN_COVE: Generation = Generation {
    offcore: [((0x2A, 0x01), 0x3F_FFFF_FFFF), ((0x2B, 0x01), 0x3F_FFFF_FFFF)],
    needs_auxiliary: true,
    store: Some(((0xCD, 0x02), false)),
    has_latencies: true,
    front_end: (&[(0xC6, 0x01), (0xC6, 0x02), (0xC6, 0x03), (0xAD, 0x40), (0xC2, 0x04)], 0x7F_FF1F),
    ..ICE_LAKE
};
const REDWOOD_COVE: Generation = Generation { needs_auxiliary: false, ..GOLDEN_COVE };
const LION_COVE: Generation = Generation {
    offcore: [((0x2A, 0x01), 0xFFF_FFFF_FFFF), ((0x2B, 0x01), 0xFFF_FFFF_FFFF)],
    front_end: (&[(0xC6, 0x02), (0xC6, 0x03), (0xAD, 0x40), (0xC2, 0x04)], 0x7F_FF1F),
    ..REDWOOD_COVE
};
/// Also Panther Cove (Linux commits d345b6bb8860 and c847a208f43b).
const COYOTE_COVE: Generation =
    Generation { offcore: big(0), off_module: (&[0x2A, 0xD6], 0x40FF_FFFF_0000_FFFF), ..LION_COVE };
const ARCTIC_WOLF: Generation = Generation {
    offcore: small(0, 0),
    off_module: (&[0xB7, 0xD4], 0xC0FF_FFFF_FFFF_FFFF),
    requests: 0xFFFF,
    ..GRACEMONT
};
const SILVERMONT: Generation = Generation {
    offcore: small(0x76_8005_FFFF, 0x36_8005_FFFF),
    load_latency: None,
    store: None,
    front_end: NO_FRONT_END,
    ..SANDY_BRIDGE
};
const KNIGHTS_LANDING: Generation = Generation { offcore: small(0x79_9FFB_BFFF, 0x39_9FFB_FFFF), ..SILVERMONT };
const GOLDMONT: Generation = Generation { offcore: small(0x76_0005_FFBF, 0x36_0005_FFBF), ..SILVERMONT };
/// From Tremont on there are requests above the responses (event files: OCR.COREWB_M, OCR.FULL_STREAMING_WR).
const TREMONT: Generation = Generation {
    offcore: small(0x800F_F0FF_FFFF_9FFF, 0x000F_F0FF_FFFF_9FFF),
    requests: 0x000F_F000_0000_FFFF,
    ..SILVERMONT
};
const GRACEMONT: Generation = Generation {
    offcore: small(0xC03F_FFFF_FFFF, 0xC03F_FFFF_FFFF),
    requests: 0xC000_0000_FFFF,
    load_latency: Some((0xD0, 0x05)),
    store: Some(((0xD0, 0x06), false)),
    has_latencies: true,
    ..SILVERMONT
};
const CRESTMONT: Generation = Generation {
    offcore: small(0x800F_F3FF_FFFF_FFFF, 0x000F_F3FF_FFFF_FFFF),
    requests: TREMONT.requests,
    ..GRACEMONT
};

/// SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel"; `mapfile.csv` of the event files. Hypervisors do
/// not virtualize these registers (Linux, arch/x86/events/intel/core.c, `check_msr`).
fn generation(cpuid: Cpuid<'_>) -> Option<&'static Generation> {
    let [signature, _, features, _] = cpuid(1, 0);
    if vendor(cpuid) != b"GenuineIntel" || bit(u64::from(features), 31) {
        return None;
    }
    let atom = is_atom(cpuid);
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    match (family(signature), model) {
        (6, _) => {}
        (18, 0x01 | 0x03) if atom => return Some(&ARCTIC_WOLF),
        (18, 0x01 | 0x03) | (19, 0x01) => return Some(&COYOTE_COVE),
        _ => return None,
    }
    Some(match model {
        0x1A | 0x1E | 0x1F | 0x2E => &NEHALEM,
        0x25 | 0x2C | 0x2F => &WESTMERE,
        0x2A | 0x3A => &SANDY_BRIDGE,
        0x2D | 0x3E => &SANDY_BRIDGE_EP,
        0x3C | 0x3F | 0x45 | 0x46 | 0x3D | 0x47 | 0x4F | 0x56 => &HASWELL,
        0x4E | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x55 => &SKYLAKE,
        0x7D | 0x7E | 0x6A | 0x6C | 0xA7 | 0x8C | 0x8D => &ICE_LAKE,
        0x97 | 0x9A | 0xB7 | 0xBA | 0xBF if atom => &GRACEMONT,
        0xBE => &GRACEMONT,
        0xAA | 0xAC | 0xB5 | 0xBD | 0xC5 | 0xC6 | 0xCC | 0xD5 | 0xE5 if atom => &CRESTMONT,
        0xAF | 0xB6 | 0xDD => &CRESTMONT,
        0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0x8F | 0xCF | 0xD7 => &GOLDEN_COVE,
        0xAA | 0xAC | 0xB5 | 0xAD | 0xAE => &REDWOOD_COVE,
        0xBD | 0xC5 | 0xC6 | 0xCC | 0xD5 | 0xE5 => &LION_COVE,
        0x37 | 0x4A | 0x4C | 0x4D | 0x5A | 0x5D => &SILVERMONT,
        0x57 | 0x85 => &KNIGHTS_LANDING,
        0x5C | 0x5F | 0x7A => &GOLDMONT,
        0x86 | 0x96 | 0x9C => &TREMONT,
        _ => return None,
    })
}

/// The extra registers of a processor. A processor without counters has none.
pub(crate) struct ExtraRegisters {
    generation: Option<&'static Generation>,
    /// Both off-core response registers; those of the other thread too, where they are shared.
    offcore: Arc<[AtomicU64; 2]>,
    off_module: [u64; 4],
    load_latency: u64,
    front_end: u64,
}

impl ExtraRegisters {
    pub(crate) fn new(cpuid: Cpuid<'_>, has_counters: bool) -> Self {
        let generation = generation(cpuid).filter(|_| has_counters);
        Self { generation, offcore: Arc::default(), off_module: [0; 4], load_latency: 0, front_end: 0 }
    }

    /// Returns the registers of the other thread if the threads have some in common.
    pub(crate) fn other_thread(&self) -> Option<Self> {
        let generation = self.generation.filter(|generation| generation.is_shared)?;
        let offcore = Arc::clone(&self.offcore);
        Some(Self { generation: Some(generation), offcore, off_module: [0; 4], load_latency: 0, front_end: 0 })
    }

    pub(crate) fn lose_power(&mut self) {
        self.offcore.iter().for_each(|register| register.store(0, Ordering::SeqCst));
        (self.off_module, self.load_latency, self.front_end) = ([0; 4], 0, 0);
    }

    /// Returns the writable bits of a register, or `None` if it does not exist.
    fn writable(&self, msr: u32) -> Option<u64> {
        let generation = self.generation?;
        let [(_, first), (_, second)] = generation.offcore;
        let bits = match msr {
            OFFCORE_RSP_0 => first,
            OFFCORE_RSP_1 => second,
            OMR_0..=OMR_3 => generation.off_module.1,
            LD_LAT_THRESHOLD if generation.load_latency.is_some() => ones(16),
            FRONTEND => generation.front_end.1,
            _ => 0,
        };
        (bits != 0).then_some(bits)
    }

    /// Reads a register. Returns `None` if the register does not exist.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        self.writable(msr)?;
        let [first, second] = &*self.offcore;
        Some(match msr {
            OFFCORE_RSP_0 => first.load(Ordering::SeqCst),
            OFFCORE_RSP_1 => second.load(Ordering::SeqCst),
            OMR_0..=OMR_3 => *self.off_module.get((msr - OMR_0) as usize)?,
            LD_LAT_THRESHOLD => self.load_latency,
            _ => self.front_end,
        })
    }

    /// Writes a register. Returns `None` if the register does not exist.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let reserved = !self.writable(msr)?;
        Some(refuse_reserved(value, reserved).map(|()| {
            let [first, second] = &*self.offcore;
            match msr {
                OFFCORE_RSP_0 => first.store(value, Ordering::SeqCst),
                OFFCORE_RSP_1 => second.store(value, Ordering::SeqCst),
                OMR_0..=OMR_3 => {
                    if let Some(register) = self.off_module.get_mut((msr - OMR_0) as usize) {
                        *register = value;
                    }
                }
                LD_LAT_THRESHOLD => self.load_latency = value,
                _ => self.front_end = value,
            }
        }))
    }

    /// Returns the register of an event, or `None` if it needs none.
    fn register_of(&self, Selected { event, umask, .. }: Selected) -> Option<u32> {
        let generation = self.generation?;
        let encoding = (event, umask);
        let [(first, has_first), (second, has_second)] = generation.offcore;
        match encoding {
            _ if encoding == first && has_first != 0 => Some(OFFCORE_RSP_0),
            _ if encoding == second && has_second != 0 => Some(OFFCORE_RSP_1),
            _ if generation.off_module.0.contains(&event) && matches!(umask, 0x01 | 0x02 | 0x04 | 0x08) => {
                Some(OMR_0 + umask.trailing_zeros())
            }
            _ if generation.load_latency == Some(encoding) => Some(LD_LAT_THRESHOLD),
            _ if generation.front_end.0.contains(&encoding) => Some(FRONTEND),
            _ => None,
        }
    }

    /// Returns the value of the register of an event; 0 if it needs none.
    pub(crate) fn value_of(&self, selected: Selected) -> u64 {
        self.register_of(selected).and_then(|msr| self.rdmsr(msr)).unwrap_or_default()
    }

    /// Returns what an event says of accesses of memory in records. `others` are counted beside it.
    pub(crate) fn accessed(&self, selected: Selected, others: &[Selected]) -> Option<Accessed> {
        let generation = self.generation?;
        let encoding = |selected: &Selected| (selected.event, selected.umask);
        if generation.load_latency == Some(encoding(&selected)) {
            let is_blind = generation.needs_auxiliary && !others.iter().any(|other| encoding(other) == AUXILIARY);
            let threshold = self.load_latency;
            return Some(Accessed::Load { threshold, is_blind, packs_latencies: generation.has_latencies });
        }
        let (store, needs_bit) = generation.store?;
        let has_latency = generation.has_latencies;
        (store == encoding(&selected)).then_some(Accessed::Store { needs_bit, has_latency })
    }

    /// Returns whether an event is counted with its register as it is. A response needs a request and a response, any
    /// other register a value. The load latency event is counted on a counter that `measures` it.
    pub(crate) fn counts(&self, selected: Selected, measures: bool) -> bool {
        let (Some(generation), Some(msr)) = (self.generation, self.register_of(selected)) else { return true };
        let value = self.value_of(selected);
        match msr {
            OFFCORE_RSP_0 | OFFCORE_RSP_1 | OMR_0..=OMR_3 => {
                value & generation.requests != 0 && value & !generation.requests != 0
            }
            LD_LAT_THRESHOLD => value != 0 && measures,
            _ => value != 0,
        }
    }
}
