//! The registers of a machine as they were found, and what other programs write to them.

use model::CounterId;
use simulation::SimMachine;

/// Registers that select, start, stop and extend counters, of all makers; those of the Debug Store; and those that
/// choose and enable last branches.
const RANGES: [std::ops::Range<u32>; 16] = [
    0x11..0x12,
    0x186..0x190,
    0x1A6..0x1A8,
    0x1C8..0x1C9,
    0x1D9..0x1DA,
    0x360..0x372,
    0x38D..0x38E,
    0x38F..0x390,
    0x3A0..0x3F3,
    0x3F6..0x3F8,
    0x600..0x601,
    0x14CE..0x14D0,
    0xC000_010E..0xC000_0110,
    0xC000_0301..0xC000_0302,
    0xC001_0000..0xC001_0004,
    0xC001_0200..0xC001_020C,
];

/// Status registers for setting bits, of Intel and of AMD, and the bit that freezes counters.
const STATUS_SET: [u32; 2] = [0x391, 0xC000_0303];
const CTR_FRZ: u64 = 1 << 59;

/// The CCCRs of NetBurst, and their overflow flag: a program that sets or clears it leaves no trace.
const CCCRS: std::ops::Range<u32> = 0x360..0x372;
const CCCR_OVF: u64 = 1 << 31;

/// IA32_DEBUGCTL, of which software of all kinds writes only the bits that freeze counters, and registers that hold
/// addresses or belong to the Debug Store, which no other program of an episode writes.
pub const DEBUGCTL: u32 = 0x1D9;
const NOT_WRITTEN: [std::ops::Range<u32>; 7] =
    [0x1A6..0x1A8, 0x1C8..0x1C9, 0x3A0..0x3A0, 0x3F0..0x3F8, 0x600..0x601, 0x14CE..0x14D0, 0xC000_010E..0xC000_0110];

/// Events that the counters of a thread lose to the other thread (errata BJ122, BV98, HSD29).
const LEAKING: std::ops::RangeInclusive<u16> = 0xD0..=0xD3;

/// Select registers of Intel and of AMD, of which each enables a counter of its own, and retired instructions or a like
/// event, in both modes, with the bit that enables.
pub const SELECTS: [std::ops::Range<u32>; 3] = [0x186..0x18E, 0xC001_0000..0xC001_0004, 0xC001_0200..0xC001_020C];
const ENABLED: u64 = 0x43_00C0;

/// The select register of Intel's counter 3.
pub const SELECT_3: u32 = 0x189;

/// Registers that select, start and stop counters: what a hypervisor without a PMU ignores.
pub fn of_counters() -> impl Iterator<Item = u32> {
    let is_other = |msr: &u32| *msr == DEBUGCTL || NOT_WRITTEN.iter().any(|range| range.contains(msr));
    RANGES.into_iter().flatten().filter(move |msr| !is_other(msr))
}

/// Registers of a processor, and their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    /// Address and value.
    msrs: Vec<(u32, u64)>,
    enabled: Vec<CounterId>,
}

/// Returns whether a register is a counter, of which the value does not matter. AMD's counters lie between the selects.
fn is_counter(msr: u32) -> bool {
    (0xC001_0200..0xC001_020C).contains(&msr) && msr % 2 == 1
}

impl Registers {
    /// Reads the registers that a processor has.
    pub fn read(machine: &SimMachine, processor: u32) -> Self {
        machine.processor(processor).model().uncounted(|model| {
            let all = RANGES.into_iter().flatten().filter(|msr| !is_counter(*msr));
            let msrs = all.filter_map(|msr| Some((msr, model.rdmsr(msr).ok()?))).collect();
            let enabled = model.enabled_counters().iter().map(|(id, _)| *id).collect();
            Self { msrs, enabled }
        })
    }

    /// Returns the registers that another program may write.
    pub fn writable(&self) -> Vec<u32> {
        let is_used = |msr: &u32| !NOT_WRITTEN.iter().any(|range| range.contains(msr));
        let mut all: Vec<u32> = self.msrs.iter().map(|(msr, _)| *msr).filter(is_used).collect();
        all.extend(STATUS_SET);
        all
    }

    /// Returns the value that a register had.
    pub fn value(&self, msr: u32) -> Option<u64> {
        self.msrs.iter().find(|(other, _)| *other == msr).map(|(_, value)| *value)
    }

    /// Checks that a processor is as it was.
    pub fn check(&self, machine: &SimMachine, processor: u32) {
        self.check_those(machine, processor, &|_| true);
    }

    /// Checks that these registers of a processor are as they were, and, if they are all, which counters are enabled.
    pub fn check_those(&self, machine: &SimMachine, processor: u32, is_meant: &dyn Fn(u32) -> bool) {
        let now = Self::read(machine, processor);
        let differs = self.msrs.iter().zip(&now.msrs).filter(|(found, now)| found != now && is_meant(found.0));
        let differs: Vec<String> =
            differs.map(|((msr, found), (_, now))| format!("{msr:#x}: {now:#x} instead of {found:#x}")).collect();
        assert!(differs.is_empty(), "registers of processor {processor} that are not as they were found: {differs:?}");
        let are_all = self.msrs.iter().all(|(msr, _)| is_meant(*msr));
        assert!(
            !are_all || now.enabled == self.enabled,
            "enabled counters of processor {processor}: {:?}",
            now.enabled
        );
    }
}

/// What other programs wrote to the registers of a processor.
#[derive(Debug, Default)]
pub struct Foreign {
    /// Registers written since the driver last compared. A program that writes a bit back before that leaves no trace,
    /// so that none is written twice.
    written: Vec<u32>,
    /// Registers written at any time.
    all: Vec<u32>,
}

/// Returns the later name of a register that AMD's processors from family 15h on have under two: PerfEvtSel0 to 3 and
/// PerfCtr0 to 3 are the first of PerfEvtSel and PerfCtr of the core.
const fn later_name(msr: u32) -> u32 {
    match msr {
        0xC001_0000..=0xC001_0003 => 0xC001_0200 + 2 * (msr - 0xC001_0000),
        0xC001_0004..=0xC001_0007 => 0xC001_0201 + 2 * (msr - 0xC001_0004),
        _ => msr,
    }
}

impl Foreign {
    /// Writes a register: zero, or what is there with one bit changed. Returns whether it changed. If the counters of
    /// the processor [leak](crate::traits::Traits::leaks), starts none of an event that does.
    pub fn write(&mut self, machine: &SimMachine, processor: u32, msr: u32, bit: Option<u64>, leaks: bool) -> bool {
        let cpu = machine.processor(processor);
        let Ok(found) = cpu.model().uncounted(|model| model.rdmsr(msr)) else { return false };
        let value = match bit {
            _ if STATUS_SET.contains(&msr) => CTR_FRZ,
            _ if msr == DEBUGCTL => found ^ 0b11 << 11,
            None => 0,
            Some(bit) => found ^ 1 << (bit % 36),
        };
        let value = if CCCRS.contains(&msr) { value & !CCCR_OVF | found & CCCR_OVF } else { value };
        let leaking =
            || cpu.model().enabled_counters().iter().filter(|(_, event)| LEAKING.contains(&event.event)).count();
        let before = if leaks { leaking() } else { 0 };
        let is_written = self.written.iter().any(|written| later_name(*written) == later_name(msr));
        let writes = !is_written && value != found && cpu.write_foreign(msr, value);
        if writes && leaks && leaking() > before {
            cpu.write_foreign(msr, found);
            return false;
        }
        if writes {
            self.written.push(msr);
            self.all.push(msr);
        }
        writes
    }

    /// Lets another program count with the counter of a select register. Returns whether it does.
    pub fn enable(&mut self, machine: &SimMachine, processor: u32, msr: u32) -> bool {
        let cpu = machine.processor(processor);
        let enabled = || cpu.model().enabled_counters().len();
        let before = enabled();
        let Ok(found) = cpu.model().uncounted(|model| model.rdmsr(msr)) else { return false };
        if !cpu.write_foreign(msr, ENABLED) {
            return false;
        }
        if enabled() == before {
            cpu.write_foreign(msr, found);
            return false;
        }
        self.written.push(msr);
        self.all.push(msr);
        true
    }

    /// Returns whether something that another program wrote may still be there.
    pub fn is_there(&self) -> bool {
        !self.all.is_empty()
    }

    /// Notes that the driver compared the registers with what it had written.
    pub fn compared(&mut self) {
        self.written.clear();
    }

    /// Writes what was found at first to every register that another program has written.
    pub fn undo(&mut self, machine: &SimMachine, processor: u32, found: &Registers) {
        for msr in self.all.drain(..) {
            if let Some(value) = found.value(msr) {
                machine.processor(processor).write_foreign(msr, value);
            }
        }
        self.written.clear();
    }
}
