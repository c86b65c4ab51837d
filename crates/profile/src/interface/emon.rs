//! The Emon interface: Intel's architectural performance monitoring (seed 002; SDM Vol. 3B, 21.2).
//!
//! Version 1 has nothing but select registers and counters. From version 2 on a counter counts only while
//! its bit in IA32_PERF_GLOBAL_CTRL is set as well: one write stops any number of counters.

mod sources;

use bitfield_struct::bitfield;

use super::plain::{self, Bank};
use super::{Enabled, ProfileInterface, Reloaded, Support};
use crate::cpu::{Cpu, Msr};
use crate::local_vector;
use crate::source::ProfileSource;
use crate::state::{self, Active, CounterSet, CounterState, Row};

pub use sources::SOURCES;

/// IA32_PERFEVTSEL0 and those that follow (SDM Vol. 3B, 21.2.1.1).
pub const IA32_PERFEVTSEL0: Msr = Msr::new(0x186);

/// IA32_PMC0 and those that follow (SDM Vol. 3B, 21.2.1.1).
pub const IA32_PMC0: Msr = Msr::new(0xC1);

/// IA32_PERF_GLOBAL_CTRL (SDM Vol. 3B, 21.2.2).
pub const IA32_PERF_GLOBAL_CTRL: Msr = Msr::new(0x38F);

/// IA32_PERF_GLOBAL_STATUS (SDM Vol. 3B, 21.2.2).
pub const IA32_PERF_GLOBAL_STATUS: Msr = Msr::new(0x38E);

/// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on IA32_PERF_GLOBAL_STATUS_RESET (SDM Vol. 3B, 21.2.2): a one clears
/// the same bit of the status.
pub const IA32_PERF_GLOBAL_OVF_CTRL: Msr = Msr::new(0x390);

/// The most counters that the two banks above have: IA32_PERFEVTSEL9 and IA32_PMC9 are the last (SDM Vol. 4,
/// "Architectural MSRs").
pub const MOST_COUNTERS: u8 = 10;

/// CPUID leaf 0xA, EAX (SDM Vol. 2A, CPUID; Vol. 3B, 21.2.1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEax {
    /// Version of architectural performance monitoring.
    pub version: u8,
    /// Counters of a logical processor.
    pub counters: u8,
    /// Bits of a counter.
    pub width: u8,
    /// How many bits of EBX mean something.
    pub ebx_length: u8,
}

/// CPUID leaf 0xA, EBX: a set bit says that an event is not available (SDM Vol. 3B, 21.2.3, Table 21-1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEbx {
    /// Core cycles.
    pub no_core_cycles: bool,
    /// The other events; [`Emon::support`] takes them by number, as seed 002 does.
    #[bits(31)]
    pub others: u32,
}

impl LeafAEax {
    /// Of the current processor, whose highest leaf has to be at least 0xA.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(0xA, 0).eax)
    }
}

impl LeafAEbx {
    /// Of the current processor, whose highest leaf has to be at least 0xA.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(0xA, 0).ebx)
    }
}

/// IA32_PERFEVTSELx (SDM Vol. 3B, 21.2.1.1, Figure 21-1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// Event select.
    pub event_select: u8,
    /// Unit mask.
    pub umask: u8,
    /// USR: count at privilege levels 1 to 3.
    pub usr: bool,
    /// OS: count at privilege level 0.
    pub os: bool,
    /// E: edge detect.
    pub edge: bool,
    /// PC: pin control.
    pub pin_control: bool,
    /// INT: APIC interrupt enable.
    pub int: bool,
    /// ANY: any thread of the core; version 3, reserved in others.
    pub any_thread: bool,
    /// EN: enable.
    pub en: bool,
    /// INV: invert the counter mask.
    pub inv: bool,
    /// CMASK: counter mask.
    pub cmask: u8,
    /// Reserved in architectural versions 1 to 5 without further features.
    #[bits(32)]
    __: u32,
}

impl PerfEvtSel {
    /// What starts a counter as its state says.
    fn of(state: CounterState) -> Self {
        let select = SOURCES.get(usize::from(state.event())).map_or(0, |source| source.select);
        Self::from_bits(select).with_usr(state.user()).with_os(state.kernel()).with_int(state.interrupt()).with_en(true)
    }
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Emon {
    eax: LeafAEax,
    ebx: LeafAEbx,
    bank: Bank,
    /// All counters.
    all: CounterSet,
}

impl Emon {
    /// With what leaf 0xA says on the current processor. Any IRQL.
    #[must_use]
    pub fn new(cpu: &impl Cpu) -> Self {
        let eax = LeafAEax::of(cpu);
        let count = eax.counters().min(MOST_COUNTERS);
        let bank =
            Bank { selects: IA32_PERFEVTSEL0, counters: IA32_PMC0, stride: 1, count, mask: state::mask(eax.width()) };
        Self { eax, ebx: LeafAEbx::of(cpu), bank, all: CounterSet::first(count) }
    }

    /// Version of architectural performance monitoring.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.eax.version()
    }

    const fn has_global_control(self) -> bool {
        self.eax.version() >= 2
    }

    /// Of IA32_PERF_GLOBAL_CTRL what does not belong to the counters of the interface: fixed counters, metrics.
    fn others(self, global: u64) -> u64 {
        global & !u64::from(self.all.bits())
    }

    /// IA32_PERF_GLOBAL_CTRL with these counters on, and others' as they were found.
    fn global(self, row: Row<'_>, counters: CounterSet) -> u64 {
        self.others(row.found) | u64::from(counters.bits())
    }

    /// The counters whose status says that they overflowed since it was cleared. From version 2 on.
    fn status(self, cpu: &impl Cpu) -> CounterSet {
        CounterSet::from_bits(cpu.rdmsr(IA32_PERF_GLOBAL_STATUS)).and(self.all)
    }
}

impl ProfileInterface for Emon {
    fn counters(&self) -> u8 {
        self.bank.count
    }

    fn width(&self) -> u8 {
        self.eax.width()
    }

    fn support(&self, source: &ProfileSource) -> Support {
        match source.ebx_bit {
            Some(bit) if bit >= self.eax.ebx_length() => Support::EventNotEnumerated,
            Some(bit) if self.ebx.into_bits() >> bit & 1 == 1 => Support::EventNotAvailable,
            _ => Support::Supported, // ProfileTime among them
        }
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        self.bank.enabled(cpu)
    }

    /// N writes for N counters; from version 2 on one read and one write more. Answers
    /// IA32_PERF_GLOBAL_CTRL as it was. Fixed counters, which are not ours, go on.
    fn initialize(&self, cpu: &impl Cpu) -> u64 {
        self.bank.clear(cpu);
        if !self.has_global_control() {
            return 0;
        }
        let found = cpu.rdmsr(IA32_PERF_GLOBAL_CTRL);
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, self.others(found));
        found
    }

    fn works(&self, cpu: &impl Cpu) -> bool {
        self.bank.works(cpu)
    }

    /// 2N writes; from version 2 on one more, and with an interval another: a counter that once counted without one
    /// may have left its status set, and the next interrupt would take that for an overflow. Nothing is read: `row`
    /// says what else counts.
    fn enable(&self, cpu: &impl Cpu, row: Row<'_>, counters: CounterSet) {
        let stale = counters.and(row.counters(|state| state.interrupt()));
        if self.has_global_control() && !stale.is_empty() {
            cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, u64::from(stale.bits()));
        }
        self.bank.load(cpu, row, counters, |state| PerfEvtSel::of(state).into_bits());
        if self.has_global_control() {
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, self.global(row, row.active.all.or(counters)));
        }
    }

    /// One write; in version 1 one for each counter.
    fn disable(&self, cpu: &impl Cpu, row: Row<'_>, counters: CounterSet) {
        if self.has_global_control() {
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, self.global(row, row.active.all.without(counters)));
        } else {
            self.bank.clear_selects(cpu, counters);
        }
    }

    /// One read; in version 1 one RDPMC for each counter with an interval.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        if self.has_global_control() {
            self.status(cpu).and(active.interrupting)
        } else {
            plain::overflowed(cpu, active.interrupting, self.bank.mask)
        }
    }

    /// From version 2 on: one read and 3 + k writes for k counters that overflowed, all of ours standing still
    /// meanwhile. Version 1: one RDPMC for each counter with an interval, one write for each that overflowed.
    ///
    /// And the local vector is looked at, also after an interrupt that was not ours: the processor masked it when it
    /// delivered this one.
    #[inline]
    fn serve(&self, cpu: &impl Cpu, row: Row<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet {
        let served = if self.has_global_control() {
            self.serve_by_status(cpu, row, overflowed)
        } else {
            self.bank.serve(cpu, row, overflowed)
        };
        local_vector::unmask(cpu);
        served
    }

    fn release(&self, cpu: &impl Cpu, found: u64) {
        self.bank.clear(cpu);
        if self.has_global_control() {
            cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, u64::from(self.all.bits()));
            cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, found);
        }
    }
}

impl Emon {
    #[inline]
    fn serve_by_status(self, cpu: &impl Cpu, row: Row<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet {
        let active = row.active;
        if active.all.is_empty() {
            return CounterSet::NONE;
        }
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, self.others(row.found));
        let status = self.status(cpu);
        let ours = status.and(active.interrupting);
        plain::reload_overflowed(self.bank, cpu, row, ours, overflowed);
        // Also of counters that were stopped before their interrupt came, and also if there is nothing to clear: a
        // spurious interrupt is too rare for a branch of its own.
        cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, u64::from(status.bits()));
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, self.global(row, active.all));
        ours
    }
}
