//! A bank of counters without global registers: one select register and one counter each, no status, no common control.
//!
//! AMD's legacy counters are such a bank, and so is version 1 of Intel's architectural performance monitoring. The
//! value of a counter shows its overflow: it is loaded with its top bit set, and an overflow clears that bit. The HAL
//! PMU design (section 3.2.5) compares with the initial value instead, which fails if at least as many events as the
//! interval follow the overflow before the check.

use x86_defs::amd;
use x86_defs::intel::perfmon::PerfEvtSel;

use super::Enabled;
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::state::{
    self, CounterRegisters, CounterSet, CounterState, CpuCounters, PerCpuPmu, StartedCounter, upper_of,
};

/// Registers of the bank.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    /// The first select register.
    pub selects: Msr,
    /// The first counter.
    pub counters: Msr,
    /// Distance between neighbouring registers of either kind.
    pub stride: u8,
    /// The counters that exist.
    pub all: CounterSet,
    /// Top bit of a counter, which an overflow clears.
    pub top_bit: u64,
}

const _: () = assert!(
    SELECT | ENABLED
        == amd::perfmon::PerfEvtSel::new()
            .with_event_select(0xC0)
            .with_usr(true)
            .with_os(true)
            .with_en(true)
            .into_bits(),
    "both vendors have these in the same bits"
);

impl Bank {
    /// Returns the select register of a counter.
    pub fn select(self, counter: u8) -> Msr {
        self.selects.at(counter.wrapping_mul(self.stride))
    }

    #[inline]
    fn counter(self, counter: u8) -> Msr {
        self.counters.at(counter.wrapping_mul(self.stride))
    }

    /// Accesses every register for the first time. A counter stands still while it is tried: EN is written without a
    /// mode, by itself, to the select registers of `enables`.
    pub fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>, enables: CounterSet) -> Result<(), Faulted> {
        for counter in self.all.iter() {
            let select = self.select(counter);
            first.trying(select, |_| {
                if enables.has(counter) {
                    first.demand(select, ENABLED)?;
                }
                first.demand(select, SELECT)?;
                first.demand(select, 0)?;
                Counters::access_first(self, first, counter)
            })?;
        }
        Ok(())
    }

    /// Tries what [`load`](Self::load) will write for a counter in this state, of which the select register will be
    /// `select`.
    pub fn try_event(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        counter: u8,
        state: CounterState,
        select: u64,
    ) -> Result<(), Faulted> {
        if state.merged() {
            first.try_value(self.select(upper_of(counter)), disabled(MERGE))?;
            first.try_value(self.counter(upper_of(counter)), UPPER)?;
        }
        first.try_value(self.select(counter), disabled(select))?;
        Counters::try_interval(self, first, counter, state)
    }

    /// Returns the first counter that is enabled, with its select register. One read for each counter up to it.
    pub fn enabled(self, cpu: &impl Cpu) -> Option<Enabled> {
        let read = |counter| {
            let register = self.select(counter);
            Enabled { counter, register, value: cpu.rdmsr(register) }
        };
        self.all.iter().map(read).find(|enabled| PerfEvtSel::from_bits(enabled.value).en())
    }

    /// Returns 64 minus the width of a counter.
    const fn missing_bits(self) -> u8 {
        (self.top_bit.leading_zeros() & 0x7F) as u8
    }

    /// Clears all select registers.
    pub fn clear(self, cpu: &impl Cpu) {
        self.clear_selects(cpu, self.all);
    }

    /// Clears the select registers of `counters`: one write each.
    pub fn clear_selects(self, cpu: &impl Cpu, counters: CounterSet) {
        for counter in counters.iter() {
            cpu.wrmsr(self.select(counter), 0);
        }
    }

    /// Returns whether the select register and the value of the first counter keep values written to them. All counters
    /// must be off.
    pub fn readback_ok(self, cpu: &impl Cpu) -> bool {
        self.all.iter().next().is_none_or(|first| {
            readback_ok(cpu, self.select(first), SELECT) && readback_ok(cpu, self.counter(first), COUNT)
        })
    }

    /// Loads and selects `counters` by their states: two writes each, and two more for a merged one. The odd counter is
    /// selected before the even one counts (Linux, arch/x86/events/perf_event.h, `__x86_pmu_enable_event`).
    pub fn load(
        self,
        cpu: &impl Cpu,
        cpu_counters: CpuCounters<'_>,
        counters: CounterSet,
        select: impl Fn(CounterState) -> u64,
    ) {
        for counter in counters.iter() {
            let state = cpu_counters.get(counter);
            self.start(cpu, cpu_counters, counter);
            if state.merged() {
                cpu.wrmsr(self.select(upper_of(counter)), MERGE);
            }
            let select = select(state);
            if let Some(started) = cpu_counters.pmu.started(counter) {
                started.set_select(select);
            }
            cpu.wrmsr(self.select(counter), select);
        }
    }

    /// Compares the select registers of the active counters, and of those that are merged into them, with those that
    /// [`load`](Self::load) wrote: one read each.
    pub fn compare(
        self,
        cpu: &impl Cpu,
        cpu_counters: CpuCounters<'_>,
        mut differs: impl FnMut(CounterSet, Disturbance),
    ) {
        let mut check = |counter, of: u8, expected| {
            let register = self.select(of);
            if let Some(disturbance) = Disturbance::of(register, cpu.rdmsr(register), expected) {
                differs(CounterSet::NONE.with(counter), disturbance);
            }
        };
        for counter in cpu_counters.active.all.and(self.all).iter() {
            check(counter, counter, cpu_counters.pmu.select(counter));
            if cpu_counters.get(counter).merged() {
                check(counter, upper_of(counter), MERGE);
            }
        }
    }

    /// Serves an interrupt: one RDPMC for each counter with an interval, one write for each that overflowed, two if it
    /// is merged. One whose count must miss nothing takes a read, two writes and an RDPMC more.
    #[inline]
    pub fn serve<const SPECIAL: bool>(self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        let mut served = CounterSet::NONE;
        for (counter, started) in pmu.started_of(interrupting) {
            let value = cpu.rdpmc(u32::from(counter));
            if value & self.top_bit == 0 {
                if started.beyond().into_bits() == 0 {
                    started.reload(cpu, value);
                } else {
                    reload_beyond(cpu, started, value);
                }
                served = served.with(counter);
            }
        }
        served
    }
}

/// Loads a counter again that another one is merged into, or whose count must miss nothing.
///
/// No register stops all counters, and nothing makes a reading and a load of one that counts a single moment: the
/// events between the two would be in no total. A difference cannot replace them, because what a counter holds when it
/// is written can be read only if it stands still. So it loses its modes until it is loaded, and its count is of the
/// time in which it ran, as with global registers. On P6, EN of the first counter would stop the other one too.
///
/// Its control register is read, not derived, because the writes would remove the traces of a program that changed it:
/// the next comparison finds them.
#[inline(never)]
fn reload_beyond(cpu: &impl Cpu, started: &StartedCounter, value: u64) {
    const MODES: u64 = PerfEvtSel::new().with_usr(true).with_os(true).into_bits();
    let (beyond, control) = (started.beyond(), started.control());
    let (mut value, mut found) = (value, 0);
    if beyond.counted() {
        found = cpu.rdmsr(control);
        cpu.wrmsr(control, found & !MODES);
        value = cpu.rdpmc(started.index());
    }
    started.reload(cpu, value);
    if beyond.merged() {
        // Only the counters of PerfCtrExtCore are merged.
        cpu.wrmsr(started.register().at(amd::perfmon::STRIDE), UPPER);
    }
    if beyond.counted() {
        cpu.wrmsr(control, found);
    }
}

/// Returns the counters that overflowed, by their values: one RDPMC for each counter with an interval.
pub fn overflowed(cpu: &impl Cpu, interrupting: CounterSet, top_bit: u64) -> CounterSet {
    interrupting.iter().filter(|counter| cpu.rdpmc(u32::from(*counter)) & top_bit == 0).collect()
}

/// An event in both modes that is not enabled: valid for every vendor.
const SELECT: u64 = PerfEvtSel::new().with_event_select(0xC0).with_usr(true).with_os(true).into_bits();

/// The flag that lets a counter count, of a counter without a mode and an event.
const ENABLED: u64 = PerfEvtSel::new().with_en(true).into_bits();

/// Returns a select register that does not let its counter count.
const fn disabled(select: u64) -> u64 {
    PerfEvtSel::from_bits(select).with_en(false).into_bits()
}

/// A value that every working counter keeps. Bit 31 is clear, so sign extension of a 32-bit write does not change it.
pub const COUNT: u64 = 0x2468_ACE1;

/// Returns whether a register keeps a value written to it. The register is zero afterwards.
pub fn readback_ok(cpu: &impl Cpu, register: Msr, value: u64) -> bool {
    cpu.wrmsr(register, value);
    let kept = cpu.rdmsr(register) == value;
    cpu.wrmsr(register, 0);
    kept
}

/// Maps counters to their registers.
pub trait Counters: Copy {
    /// Returns the registers of a counter.
    fn place(self, counter: u8) -> CounterRegisters;

    /// Accesses the registers of a counter, which stands still, for the first time.
    fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>, counter: u8) -> Result<(), Faulted> {
        let place = self.place(counter);
        first.trying(place.register, |_| {
            first.counter(place.index)?;
            first.demand(place.register, COUNT)?;
            first.demand(place.register, 0)
        })
    }

    /// Tries the values with which a counter in this state, which stands still, is loaded: with an interval, any that
    /// has its top bits set.
    fn try_interval(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        let place = self.place(counter);
        if state.interval() != 0 { first.try_value(place.register, state::all_but(place.missing_bits)) } else { Ok(()) }
    }

    /// Loads a counter by its state, as interrupts will do again: one write.
    fn start(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counter: u8) {
        let state = cpu_counters.get(counter);
        if let Some(started) = cpu_counters.pmu.started(counter) {
            started.start(self.place(counter), state);
        }
        self.load(cpu, counter, state);
    }

    /// Loads a counter by a state: one write.
    fn load(self, cpu: &impl Cpu, counter: u8, state: CounterState) {
        let place = self.place(counter);
        cpu.wrmsr(place.register, state.initial_within(state::all_but(place.missing_bits)));
        self.load_upper(cpu, counter, state.merged());
    }

    /// Loads a counter again, as it was started, which stands still and holds `value` after its overflow: one write.
    #[inline]
    fn reload(self, cpu: &impl Cpu, counter: u8, started: &StartedCounter, value: u64) {
        let _ = counter;
        started.reload(cpu, value);
    }

    /// Loads the counter that is merged into this one, if one is `merged`: one write.
    #[inline]
    fn load_upper(self, cpu: &impl Cpu, counter: u8, merged: bool) {
        let _ = (cpu, counter, merged);
    }
}

/// Event FFFH, enabled: merges an odd counter into the even one before it (Linux, arch/x86/events/amd/core.c,
/// `AMD_MERGE_EVENT_ENABLE`).
const MERGE: u64 =
    amd::perfmon::PerfEvtSel::new().with_event_select(0xFF).with_event_select_high(0xF).with_en(true).into_bits();

/// Value of the odd counter of a pair: bits 63:48 of a negative number in both, so that the overflow of the even one's
/// interval is that of the pair (Linux, arch/x86/events/core.c, `x86_perf_event_set_period`).
const UPPER: u64 = 0xFFFF;

impl Counters for Bank {
    #[inline]
    fn reload(self, cpu: &impl Cpu, counter: u8, started: &StartedCounter, value: u64) {
        started.reload(cpu, value);
        self.load_upper(cpu, counter, started.beyond().merged());
    }

    #[inline]
    fn place(self, counter: u8) -> CounterRegisters {
        CounterRegisters {
            register: self.counter(counter),
            control: self.select(counter),
            index: u32::from(counter),
            missing_bits: self.missing_bits(),
        }
    }

    #[inline]
    fn load_upper(self, cpu: &impl Cpu, counter: u8, merged: bool) {
        if merged {
            cpu.wrmsr(self.counter(upper_of(counter)), UPPER);
        }
    }
}

/// Reloads the counters that a status register reports as overflowed: one RDPMC and one write each. RDPMC reads the
/// events since the overflow. The counters must stand still: events between the two accesses would be in no total.
#[inline]
pub fn reload_overflowed<const SPECIAL: bool>(
    bank: impl Counters,
    cpu: &impl Cpu,
    pmu: &PerCpuPmu,
    counters: CounterSet,
) {
    for (counter, started) in pmu.started_of(counters) {
        let value = cpu.rdpmc(started.index());
        bank.reload(cpu, counter, started, value);
    }
}
