//! The Amd64 interface: AMD's performance counters (seed 000; APM Vol. 2, 13.2).
//!
//! | CPUID | counters | over them |
//! |---|---|---|
//! | long mode alone | four, by the names that the K7 had | nothing: overflow shows in the counter's value |
//! | PerfCtrExtCore | six, by names of their own | nothing |
//! | PerfMonV2 as well, and no hypervisor | as many as it says, but six at most | a control and a status register |
//!
//! Seed 000 knows the first line, and the events of the K8. A Zen counts others: `generation.rs` tells whose, `zen.rs`
//! which.

mod generation;
mod global;
mod sources;
mod zen;

use x86_defs::amd::perfmon::{self, CORE_COUNTERS, LEGACY_COUNTERS, PerfEvtSel, STRIDE, WIDTH};
use x86_defs::cpuid::{Leaf80000001Ecx, Leaf80000022Eax, Leaf80000022Ebx, leaf};

use super::unmanaged::{self, Bank};
use super::{Enabled, ProfileInterface, Reloaded, Support};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::hypervisor::Hypervisor;
use crate::source::{ProfileSource, RawEvent};
use crate::state::{self, Active, CounterSet, CounterState, CpuCounters, SavedMsrs};
use generation::Generation;
use global::Global;

pub use sources::SOURCES;

/// Returns EAX and EBX of leaf 80000022H of the current processor; zeros if it does not have that leaf.
fn extended_perfmon(cpu: &impl Cpuid) -> (Leaf80000022Eax, Leaf80000022Ebx) {
    if cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax < leaf::EXTENDED_PERFMON {
        return Default::default();
    }
    let perfmon = cpu.cpuid(leaf::EXTENDED_PERFMON, 0);
    (Leaf80000022Eax::from_bits(perfmon.eax), Leaf80000022Ebx::from_bits(perfmon.ebx))
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Amd64 {
    bank: Bank,
    /// All counters.
    all: CounterSet,
    /// With PerfMonV2.
    global: Option<Global>,
    sources: &'static [ProfileSource],
    /// Event numbers have 12 bits; 8 if not.
    has_wide_events: bool,
    /// Events of the northbridge are counted there, and not in the core.
    has_northbridge_counters: bool,
}

impl Amd64 {
    /// With what CPUID says of the current processor, which has to have long mode. Any IRQL.
    #[must_use]
    pub fn new(cpu: &impl Cpuid) -> Self {
        let features = Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx);
        let (eax, ebx) = extended_perfmon(cpu);
        // The global registers are over the core's counters, and nothing without them. Windows does not touch them itself,
        // so a hypervisor that shows them and has them not would stop the machine with the first access.
        let is_bare = Hypervisor::of(cpu) == Hypervisor::None;
        let version_2 = features.perf_ctr_ext_core() && eax.perf_mon_v2() && is_bare;
        let mask = state::mask(WIDTH);
        let bank = if features.perf_ctr_ext_core() {
            let count = if version_2 { ebx.num_perf_ctr_core().min(CORE_COUNTERS) } else { CORE_COUNTERS };
            Bank {
                selects: Msr::new(perfmon::PERF_CTL0),
                counters: Msr::new(perfmon::PERF_CTR0),
                stride: STRIDE,
                count,
                mask,
            }
        } else {
            Bank {
                selects: Msr::new(perfmon::PERF_LEGACY_CTL0),
                counters: Msr::new(perfmon::PERF_LEGACY_CTR0),
                stride: 1,
                count: LEGACY_COUNTERS,
                mask,
            }
        };
        let all = CounterSet::first(bank.count);
        let generation = Generation::of(cpu, eax.perf_mon_v2());
        Self {
            bank,
            all,
            global: version_2.then(|| Global::new(all, eax.lbr_and_pmc_freeze())),
            sources: generation.sources(),
            has_wide_events: generation.has_wide_events(),
            has_northbridge_counters: features.perf_ctr_ext_nb(),
        }
    }

    /// The sources of the processor's family, and those of others that it has not.
    #[must_use]
    pub const fn sources(&self) -> &'static [ProfileSource] {
        self.sources
    }

    /// What starts a counter as its state says.
    fn select(self, row: CpuCounters<'_>, state: CounterState) -> u64 {
        PerfEvtSel::from_bits(row.select_of(self.sources, state))
            .with_usr(state.user())
            .with_os(state.kernel())
            .with_int(state.interrupt())
            .with_en(true)
            .into_bits()
    }
}

impl ProfileInterface for Amd64 {
    fn counters(&self) -> u8 {
        self.bank.count
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    /// The HAL asks no processor, and offers the events of the K8 on each.
    fn support(&self, source: &ProfileSource) -> Support {
        /// EventSelect\[7:5\] all set: an event of the northbridge (Linux, arch/x86/events/amd/core.c, `amd_is_nb_event`).
        const NORTHBRIDGE: u8 = 0xE0;
        let event = PerfEvtSel::from_bits(source.select).event_select();
        if source.select == 0 || self.has_northbridge_counters && event & NORTHBRIDGE == NORTHBRIDGE {
            Support::NotOnThisFamily
        } else {
            Support::Supported
        }
    }

    fn raw_support(&self, event: RawEvent) -> Support {
        if event.event() > 0xFF && !self.has_wide_events {
            Support::NoSuchEvent
        } else {
            self.support(&ProfileSource::of_raw(event))
        }
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        self.bank.enabled(cpu)
    }

    /// N writes for N counters; with PerfMonV2 one read and two writes more: counters that somebody left frozen would
    /// count nothing. Answers the control register as it was.
    fn initialize(&self, cpu: &impl Cpu) -> SavedMsrs {
        self.bank.clear(cpu);
        let Some(global) = self.global else { return SavedMsrs::default() };
        let saved = global::control(cpu);
        global.stop(cpu, saved);
        global.thaw(cpu, self.all);
        SavedMsrs { global: saved, ..SavedMsrs::default() }
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        self.bank.readback_ok(cpu)
    }

    /// 2N writes; with PerfMonV2 one more, and with an interval another: a counter that once counted without one may
    /// have left its status set, and the next interrupt would take that for an overflow; and counters that somebody froze
    /// since would never overflow. So there is nothing to [`forget`](ProfileInterface::forget).
    fn enable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        let stale = counters.and(row.counters(|state| state.interrupt()));
        if let (Some(global), false) = (self.global, stale.is_empty()) {
            global.thaw(cpu, stale);
        }
        self.bank.load(cpu, row, counters, |state| self.select(row, state));
        if let Some(global) = self.global {
            global.let_through(cpu, row, row.active.all.or(counters));
        }
    }

    /// N writes; with PerfMonV2 one.
    fn disable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        match self.global {
            Some(global) => global.let_through(cpu, row, row.active.all.without(counters)),
            None => self.bank.clear_selects(cpu, counters),
        }
    }

    /// One RDPMC for each counter with an interval; with PerfMonV2 one read.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        match self.global {
            Some(global) => CounterSet::from_bits(global.status(cpu).overflowed().into()).and(active.interrupting),
            None => unmanaged::overflowed(cpu, active.interrupting, self.bank.mask),
        }
    }

    /// One RDPMC for each counter with an interval, one write for each that overflowed. With PerfMonV2 one read and
    /// 3 + k writes for k counters that overflowed, and an RDPMC for each of them, all of ours standing still meanwhile. The
    /// entry of the local vector table is left alone: AMD's processors do not mask it.
    #[inline]
    fn serve(&self, cpu: &impl Cpu, row: CpuCounters<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet {
        match self.global {
            Some(global) => self.serve_by_status(global, cpu, row, overflowed),
            None => self.bank.serve(cpu, row, overflowed),
        }
    }

    /// One read and one write with PerfMonV2; else none.
    fn acknowledge(&self, cpu: &impl Cpu) {
        if let Some(global) = self.global {
            let status = global.status(cpu);
            global::clear(cpu, status);
        }
    }

    /// One write for each with PerfMonV2; else none.
    fn disarm(&self, cpu: &impl Cpu, _row: CpuCounters<'_>, counters: CounterSet) {
        if self.global.is_some() {
            self.bank.clear_selects(cpu, counters);
        }
    }

    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        self.bank.clear(cpu);
        if let Some(global) = self.global {
            global.thaw(cpu, self.all);
            global::set_control(cpu, saved.global);
        }
    }
}

impl Amd64 {
    #[inline]
    fn serve_by_status(
        self,
        global: Global,
        cpu: &impl Cpu,
        row: CpuCounters<'_>,
        overflowed: impl FnMut(Reloaded),
    ) -> CounterSet {
        let control = row.known.control();
        global.stop(cpu, control);
        let status = global.status(cpu);
        let ours = CounterSet::from_bits(status.overflowed().into()).and(row.active.interrupting);
        unmanaged::reload_overflowed(self.bank, cpu, row, ours, overflowed);
        // Also of counters that were stopped before their interrupt came, and also if there is nothing to clear: a
        // spurious interrupt is too rare for a branch of its own.
        global::clear(cpu, status);
        global::set_control(cpu, control);
        ours
    }
}
