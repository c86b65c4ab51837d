//! Intel's NetBurst: 18 counters with one CCCR each, and the ESCRs. The two threads of a core share all of these
//! registers.
//!
//! Not in the model: cascading, tagging, PEBS, forced overflow, and interrupts to the thread that does not execute.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Pmu, Running, position};
use crate::{
    bits::{bit, field, ones},
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    select::Selected,
    writable,
};

/// `MSR_BPU_COUNTER0` (SDM Vol. 4, "MSRs in Processors Based on Intel NetBurst Microarchitecture", like all registers
/// here).
const COUNTER0: u32 = 0x300;
/// `MSR_BPU_CCCR0`.
const CCCR0: u32 = 0x360;
const COUNT: usize = 18;
/// Counters have 40 bits; the bits above are reserved (SDM, "Performance Counters" of NetBurst).
const WIDTH: u32 = 40;

/// Every ESCR. (0x3BA and 0x3BB, `MSR_IQ_ESCR0` and 1, do not exist from family 15 model 3 on.)
const ESCRS: [(u32, u32); 5] = [(0x3A0, 0x3B9), (0x3BC, 0x3BE), (0x3C0, 0x3C5), (0x3C8, 0x3CD), (0x3E0, 0x3E1)];

/// The first ESCR of each pair that a group of counters can use, by the select field of the CCCR (SDM, table
/// "Performance Counter MSRs and Associated CCCR and ESCR MSRs").
const BPU: [(u64, u32); 8] =
    [(0, 0x3B2), (1, 0x3B4), (2, 0x3AA), (3, 0x3B6), (4, 0x3AC), (5, 0x3C8), (6, 0x3A2), (7, 0x3A0)];
const MS: [(u64, u32); 3] = [(0, 0x3C0), (1, 0x3C4), (2, 0x3C2)];
const FLAME: [(u64, u32); 5] = [(0, 0x3A6), (1, 0x3A4), (2, 0x3AE), (3, 0x3B0), (5, 0x3A8)];
const IQ: [(u64, u32); 5] = [(1, 0x3CA), (2, 0x3BC), (4, 0x3B8), (5, 0x3CC), (6, 0x3E0)];

/// The events that the model supports, by the first ESCR of their unit and the event select: `GLOBAL_POWER_EVENTS`,
/// `BSQ_CACHE_REFERENCE`, `INSTR_RETIRED`, `MISPRED_BRANCH_RETIRED`, `BRANCH_RETIRED`, `RETIRED_BRANCH_TYPE` (SDM,
/// tables of NetBurst's events). Any other select detects nothing.
const EVENTS: [(u32, u64); 6] =
    [(0x3A2, 0x13), (0x3A0, 0x0C), (0x3B8, 0x02), (0x3B8, 0x03), (0x3CC, 0x06), (0x3C2, 0x04)];

const ENABLE: u32 = 12;
const COMPARE: u32 = 18;
const COMPLEMENT: u32 = 19;
const EDGE: u32 = 24;
const OVF_PMI_T0: u32 = 26;
const OVF: u32 = 31;

/// RDPMC: ECX bit 31 selects a fast read of the low 32 bits (SDM Vol. 2, RDPMC).
const RDPMC_FAST: u32 = 1 << 31;

/// The registers that the threads of a core share.
struct Core {
    counters: Vec<Counter>,
    cccrs: Vec<u64>,
    escrs: BTreeMap<u32, u64>,
}

impl Core {
    fn new() -> Self {
        Self {
            counters: vec![Counter::new(WIDTH); COUNT],
            cccrs: vec![0; COUNT],
            escrs: ESCRS.into_iter().flat_map(|(first, last)| (first..=last).map(|escr| (escr, 0))).collect(),
        }
    }

    /// Writes a counter under erratum N15: a write may fail until software repeats it (`again`). Intel document 249199
    /// does not say which bits fail; in the model, bits 39:32 do.
    fn write_counter(&mut self, number: usize, value: u64, again: bool) {
        if let Some(counter) = self.counters.get_mut(number) {
            let taken = if again { value } else { counter.read() & !ones(32) | value & ones(32) };
            counter.write(taken);
        }
    }

    /// Returns the first ESCR of the pair that the CCCR selects, and the value of the ESCR that the counter uses.
    fn escr_of(&self, number: usize, cccr: u64) -> Option<(u32, u64)> {
        let (group, second): (&[(u64, u32)], bool) = match number {
            0..4 => (&BPU, number >= 2),
            4..8 => (&MS, number >= 6),
            8..12 => (&FLAME, number >= 10),
            _ => (&IQ, matches!(number, 14 | 15 | 17)),
        };
        let (_, first) = group.iter().find(|(select, _)| *select == field(cccr, 15, 13))?;
        Some((*first, *self.escrs.get(&(first + u32::from(second)))?))
    }

    /// Returns the configuration in which a counter counts `thread`, if it does.
    fn running(&self, number: usize, thread: u32, threaded: bool) -> Option<Running> {
        let cccr = *self.cccrs.get(number)?;
        // 3: any threads active; 2: both threads active, which is always true of a core with two threads in the model.
        let active = field(cccr, 17, 16);
        if !bit(cccr, ENABLE) || !(active == 3 || threaded && active == 2) {
            return None;
        }
        let (first, escr) = self.escr_of(number, cccr)?;
        let (event, mask) = (field(escr, 30, 25), field(escr, 24, 9));
        let (user, kernel) = (bit(escr, 2 - 2 * thread), bit(escr, 3 - 2 * thread));
        if !EVENTS.contains(&(first, event)) || mask == 0 || !(user || kernel) {
            return None;
        }
        let compare = bit(cccr, COMPARE);
        let selected = Selected {
            event: u16::try_from(event | mask >> 8 << 8).ok()?,
            umask: u16::from(mask.to_le_bytes()[0]),
            cmask: if compare { field(cccr, 23, 20).to_le_bytes()[0] } else { 0 },
            invert: compare && bit(cccr, COMPLEMENT),
            edge: compare && bit(cccr, EDGE),
        };
        let interrupt = bit(cccr, OVF_PMI_T0 + thread);
        Some(Running { id: CounterId::General(u8::try_from(number).ok()?), selected, user, kernel, interrupt })
    }
}

enum Register {
    Counter(usize),
    Cccr(usize),
    Escr(u32),
}

/// The view that one thread has of its core.
///
/// In [`Selected`], `event` holds the event select with bits 15:8 of the event mask above it, and `umask` holds bits
/// 7:0 of the mask.
pub(crate) struct NetBurst {
    core: Arc<Mutex<Core>>,
    /// 0 or 1.
    thread: u32,
    threaded: bool,
    raised: bool,
    /// The last write of the thread, if it was to a counter.
    written: Option<(usize, u64)>,
}

impl NetBurst {
    pub(crate) fn new(thread: u32, threaded: bool) -> Self {
        Self { core: Arc::new(Mutex::new(Core::new())), thread, threaded, raised: false, written: None }
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, msr: u32) -> Option<Register> {
        position(msr, COUNTER0, 1, COUNT)
            .map(Register::Counter)
            .or_else(|| position(msr, CCCR0, 1, COUNT).map(Register::Cccr))
            .or_else(|| self.core().escrs.contains_key(&msr).then_some(Register::Escr(msr)))
    }
}

impl Pmu for NetBurst {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        match self.register(msr)? {
            Register::Counter(number) => self.core().counters.get(number).map(Counter::read),
            Register::Cccr(number) => self.core().cccrs.get(number).copied(),
            Register::Escr(escr) => self.core().escrs.get(&escr).copied(),
        }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let register = self.register(msr)?;
        let reserved = match register {
            Register::Counter(_) => !ones(WIDTH),
            Register::Cccr(_) => !writable::cccr(self.threaded),
            Register::Escr(_) => !writable::escr(self.threaded),
        };
        if let Err(fault) = refuse_reserved(value, reserved) {
            return Some(Err(fault));
        }
        let before = match register {
            Register::Counter(number) => self.written.replace((number, value)),
            Register::Cccr(_) | Register::Escr(_) => self.written.take(),
        };
        let mut core = self.core();
        match register {
            Register::Counter(number) => core.write_counter(number, value, before == Some((number, value))),
            Register::Cccr(number) => *core.cccrs.get_mut(number)? = value,
            Register::Escr(escr) => *core.escrs.get_mut(&escr)? = value,
        }
        drop(core);
        // Writing a CCCR with OVF set raises another interrupt (SDM, "Generating an Interrupt on Overflow").
        self.raised |= matches!(register, Register::Cccr(_)) && bit(value, OVF) && bit(value, OVF_PMI_T0 + self.thread);
        Some(Ok(()))
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        let value = self.core().counters.get(usize::try_from(index & !RDPMC_FAST).ok()?).map(Counter::read)?;
        Some(if index & RDPMC_FAST == 0 { value } else { value & ones(32) })
    }

    fn running(&self) -> Vec<Running> {
        let core = self.core();
        (0..COUNT).filter_map(|number| core.running(number, self.thread, self.threaded)).collect()
    }

    /// The counters are behind the lock of the core, so no reference can be returned.
    fn counter(&self, _: CounterId) -> Option<&Counter> {
        None
    }

    fn until_overflow(&self, id: CounterId) -> Option<u64> {
        match id {
            CounterId::General(number) => self.core().counters.get(usize::from(number)).map(Counter::until_overflow),
            CounterId::Fixed(_) | CounterId::Metric(_) => None,
        }
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        let CounterId::General(number) = id else { return 0 };
        let mut core = self.core();
        let overflows = core.counters.get_mut(usize::from(number)).map_or(0, |counter| counter.add(events));
        if let (Some(cccr), true) = (core.cccrs.get_mut(usize::from(number)), overflows > 0) {
            *cccr |= 1 << OVF;
        }
        overflows
    }

    /// The interrupt line stays asserted while OVF is set (Linux, `p4_pmu_handle_irq`).
    fn has_interrupting_status(&self, _: bool) -> bool {
        self.core().cccrs.iter().any(|&cccr| bit(cccr, OVF) && bit(cccr, OVF_PMI_T0 + self.thread))
    }

    fn take_raised(&mut self) -> bool {
        std::mem::take(&mut self.raised)
    }

    fn other_thread(&self) -> Option<Box<dyn Pmu>> {
        let Self { thread, threaded, .. } = *self;
        threaded.then(|| {
            Box::new(Self { core: self.core.clone(), thread: 1 - thread, threaded, raised: false, written: None }) as _
        })
    }

    /// SDM Vol. 3A, "Local Vector Table": the mask is set when a performance monitoring interrupt is handled.
    fn masks_lvt_on_delivery(&self) -> bool {
        true
    }
}
