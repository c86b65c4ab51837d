//! The Amd64 interface: AMD's performance counters (HAL Amd64 interface; APM Vol. 2, 13.2).
//!
//! | CPUID | counters | global registers |
//! |---|---|---|
//! | long mode alone | four, with the register names of the K7 | none: the counter's value shows overflow |
//! | PerfCtrExtCore | six, with register names of their own | none |
//! | PerfMonV2 too | as many as CPUID reports, at most six | a control and a status register, if they answer |
//!
//! The HAL knows the first line, and the events of the K8. Later processors count other events: `generation.rs`
//! identifies the processor, `families.rs` has the events of families 10h to 16h, `zen.rs` those of Zen.

mod families;
mod generation;
mod global;
mod packed;
mod pairs;
mod sources;
mod zen;

use bitfield_struct::bitfield;
use x86_defs::amd::perfmon::{self, CORE_COUNTERS, LEGACY_COUNTERS, PerfEvtSel, STRIDE, WIDTH};
use x86_defs::cpuid::{Leaf80000001Ecx, Leaf80000022Eax, Leaf80000022Ebx, leaf};

use super::unmanaged::{self, Bank, Counters};
use super::{Enabled, ProfileInterface, Support, support};
use crate::constraints::{Class, Listing};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::errata::workarounds::{Action, Workarounds};
use crate::first_access::{Access, Faulted, FirstAccess, GuardedCpu};
use crate::lvt_pmi;
use crate::placement::{self, Wanted};
use crate::source::{ProfileSource, RawEvent, Sources};
use crate::state::{self, Active, CounterSet, CounterState, CpuCounters, FoundMsrs, PerCpuPmu, SavedMsrs};
use crate::topology;
pub(crate) use generation::Generation;
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

/// What distinguishes the processors of a machine. The other bits are those of the status that the driver may clear:
/// the counters in bits 15:0, and bit 59 for frozen counters.
#[bitfield(u64)]
struct Capabilities {
    #[bits(62)]
    clearable: u64,
    /// Whether its global registers are used.
    has_global: bool,
    /// Whether it does not count events of the northbridge.
    lacks_northbridge: bool,
}

/// The Amd64 interface of a processor.
#[derive(Debug, Clone, Copy)]
pub struct Amd64 {
    bank: Bank,
    /// Number of counters.
    count: u8,
    /// The global registers, with PerfMonV2.
    global: Option<Global>,
    generation: Generation,
    /// Whether the northbridge has its own counters, so that the core does not count its events.
    has_northbridge_counters: bool,
    /// Whether this core counts events of the northbridge.
    counts_northbridge: bool,
    /// Whether an event with large increments needs two counters.
    has_large_increments: bool,
}

impl Amd64 {
    /// Creates the interface for the current processor, which must have long mode.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn new(cpu: &impl Cpuid) -> Self {
        let features = Leaf80000001Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_FEATURES, 0).ecx);
        let (eax, ebx) = extended_perfmon(cpu);
        // The global registers control only the six core counters.
        let version_2 = features.perf_ctr_ext_core() && eax.perf_mon_v2();
        let top_bit = state::top_bit(state::mask(WIDTH));
        let count = match features.perf_ctr_ext_core() {
            true if version_2 => ebx.num_perf_ctr_core().min(CORE_COUNTERS),
            true => CORE_COUNTERS,
            false => LEGACY_COUNTERS,
        };
        let all = CounterSet::first(count);
        let bank = if features.perf_ctr_ext_core() {
            Bank {
                selects: Msr::new(perfmon::PERF_CTL0),
                counters: Msr::new(perfmon::PERF_CTR0),
                stride: STRIDE,
                all,
                top_bit,
            }
        } else {
            Bank {
                selects: Msr::new(perfmon::PERF_LEGACY_CTL0),
                counters: Msr::new(perfmon::PERF_LEGACY_CTR0),
                stride: 1,
                all,
                top_bit,
            }
        };
        let generation = Generation::of(cpu);
        let workarounds = Workarounds::of_processor(cpu);
        Self {
            bank,
            count,
            global: version_2.then(|| Global::new(all, eax.lbr_and_pmc_freeze())),
            generation,
            has_northbridge_counters: features.perf_ctr_ext_nb(),
            counts_northbridge: !workarounds.has(Action::OneCorePerNode) || topology::is_first_of_node(cpu),
            has_large_increments: workarounds.has(Action::MergeCounters),
        }
    }

    /// Returns the capabilities of the processor as one word.
    #[must_use]
    pub const fn capabilities(&self) -> u64 {
        let clearable = match self.global {
            Some(global) => global.clearable(),
            None => 0,
        };
        Capabilities::from_bits(clearable)
            .with_has_global(self.global.is_some())
            .with_lacks_northbridge(!self.counts_northbridge)
            .into_bits()
    }

    /// Returns the interface for a processor with these [`capabilities`](Self::capabilities).
    #[must_use]
    pub const fn with_capabilities(self, capabilities: u64) -> Self {
        let capabilities = Capabilities::from_bits(capabilities);
        Self { global: self.global_by(capabilities), counts_northbridge: !capabilities.lacks_northbridge(), ..self }
    }

    #[inline]
    const fn global_by(&self, capabilities: Capabilities) -> Option<Global> {
        match self.global {
            Some(global) if capabilities.has_global() => Some(global.with_clearable(capabilities.into_bits())),
            _ => None,
        }
    }

    /// Returns the global registers, if this processor has them.
    #[inline]
    fn global_of(&self, pmu: &PerCpuPmu) -> Option<Global> {
        self.global_by(Capabilities::from_bits(pmu.snapshot.capabilities()))
    }

    /// Accesses every register for the first time. A hypervisor may enumerate the global registers and not have them:
    /// Windows does not access them. The interface that is returned then does without.
    pub(super) fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        self.bank.access_first(first, self.bank.all)?;
        let global = match self.global.map(|global| global.access_first(first)) {
            // The counters count only as the register lets them, which does not keep what is written.
            Some(Err(fault)) if first.fault().access == Access::ReadBack => return Err(fault),
            Some(accessed) => accessed.ok(),
            None => None,
        };
        Ok(Self { global, ..self })
    }

    /// Reads the control register after the first accesses.
    pub(super) fn found(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<FoundMsrs, Faulted> {
        let global = self.global.map_or(Ok(0), |_| global::first_control(first))?;
        Ok(FoundMsrs { global, ..FoundMsrs::default() })
    }

    /// Tries the control register if it contains something else than before.
    pub(super) fn try_found(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        found: FoundMsrs,
        known: FoundMsrs,
    ) -> Result<FoundMsrs, Faulted> {
        if let Some(global) = self.global.filter(|_| found.global != known.global) {
            global.try_stopped(first)?;
        }
        Ok(found)
    }

    /// Returns the sources of the processor's family, with a select of zero for those that it lacks.
    #[must_use]
    pub const fn sources(&self) -> Sources {
        self.generation.sources()
    }

    /// Returns whether an event can occur more than 15 times in a cycle, the most that one counter can add. It then
    /// takes an even counter and the following odd one, which are merged (PPR for family 17h, "Large Increment per
    /// Cycle Events").
    const fn is_large(&self, event: u16) -> bool {
        /// Retired SSE and AVX FLOPs.
        const FLOPS: u16 = 0x003;
        self.has_large_increments && event == FLOPS
    }

    /// Returns the class of the event of a source, if a table lists it.
    fn class(&self, source: &ProfileSource) -> Option<Class> {
        let unit_mask = PerfEvtSel::from_bits(source.select).unit_mask();
        self.generation.constraints()?.find(number(source), unit_mask.into(), false)
    }

    /// Returns the event select register for a counter in this state.
    fn select(self, cpu_counters: CpuCounters<'_>, state: CounterState) -> u64 {
        PerfEvtSel::from_bits(cpu_counters.select_of(self.sources(), state))
            .with_usr(state.user())
            .with_os(state.kernel())
            .with_int(state.interrupt())
            .with_en(true)
            .into_bits()
    }
}

/// Returns the event number of a source.
fn number(source: &ProfileSource) -> u16 {
    let select = PerfEvtSel::from_bits(source.select);
    u16::from(select.event_select_high()) << 8 | u16::from(select.event_select())
}

impl ProfileInterface for Amd64 {
    fn counters(&self) -> u8 {
        self.count
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    fn counters_for(&self, source: &ProfileSource) -> CounterSet {
        if self.merges(source) {
            return pairs::lower(self.bank.all);
        }
        self.class(source).map_or(self.bank.all, |class| class.counters().and(self.bank.all))
    }

    /// Only family 15h has events that some counters do not count.
    fn listing(&self, source: &ProfileSource) -> Listing {
        let is_known = self.generation.constraints().is_none() || self.class(source).is_some();
        if is_known { Listing::Known } else { Listing::Unlisted }
    }

    /// Linux merges counters only with PerfCtrExtCore.
    fn merges(&self, source: &ProfileSource) -> bool {
        self.bank.stride == STRIDE && self.is_large(number(source))
    }

    fn assign(&self, cpu_counters: CpuCounters<'_>, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        let free = cpu_counters.counters(CounterState::is_free);
        if wanted.iter().any(|wanted| wanted.state.merged()) {
            return pairs::assign(free, wanted, assigned);
        }
        placement::assign_wanted(free, CounterSet::NONE, wanted, assigned)
    }

    /// A merged counter needs the next one too.
    fn preferred(&self, wanted: &Wanted) -> Option<CounterSet> {
        (!wanted.state.merged()).then_some(CounterSet::NONE)
    }

    /// The HAL does not check the processor, and offers the events of the K8 on every one. The sources of a model that
    /// is not known are refused, because its events may have other numbers.
    fn support(&self, source: &ProfileSource) -> Support {
        /// EventSelect\[7:5\] all set: an event of the northbridge (Linux, arch/x86/events/amd/core.c,
        /// `amd_is_nb_event`).
        const NORTHBRIDGE: u8 = 0xE0;
        let event = PerfEvtSel::from_bits(source.select).event_select();
        let is_northbridge = event & NORTHBRIDGE == NORTHBRIDGE;
        if source.select == 0 && !self.generation.is_known() {
            Support::ModelNotKnown
        } else if source.select == 0 || self.has_northbridge_counters && is_northbridge {
            Support::NotOnThisFamily
        } else if is_northbridge && !self.counts_northbridge {
            Support::OtherCore
        } else {
            Support::Supported
        }
    }

    fn raw_counters(&self, source: &ProfileSource, event: RawEvent) -> Result<CounterSet, Support> {
        if event.event() > 0xFF && !self.generation.has_wide_events() {
            return Err(Support::NoSuchEvent);
        }
        if self.has_large_increments && event.event() == RawEvent::MAX_EVENT {
            return Err(Support::MergesCounters);
        }
        match super::lacks_version_6(event, false, false).unwrap_or_else(|| self.support(source)) {
            Support::Supported if self.is_large(event.event()) && !self.merges(source) => {
                Err(Support::NeedsTwoCounters)
            }
            Support::Supported => support::some(self.counters_for(source)),
            lack => Err(lack),
        }
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        self.bank.enabled(cpu)
    }

    /// N writes for N counters; with PerfMonV2 two more, because counters that other software left frozen would not
    /// count.
    fn initialize(&self, cpu: &impl Cpu, found: FoundMsrs) -> SavedMsrs {
        self.bank.clear(cpu);
        let Some(global) = self.global else { return SavedMsrs::default() };
        global.stop(cpu, found.global);
        global.thaw(cpu, self.bank.all);
        SavedMsrs { global: found.global, ..SavedMsrs::default() }
    }

    fn try_event(
        &self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        cpu_counters: CpuCounters<'_>,
        counter: u8,
        state: CounterState,
    ) -> Result<(), Faulted> {
        self.bank.try_event(first, counter, state, self.select(cpu_counters, state))
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        self.bank.readback_ok(cpu)
    }

    /// 2N writes, and two more for an event that takes two counters; with PerfMonV2 one more, and with an interval
    /// another one. A counter that last counted without an interval may have left its status bit set, and the next
    /// interrupt would take that for an overflow. Counters that other software has frozen since would never overflow.
    /// So [`forget`](ProfileInterface::forget) has nothing to do.
    fn enable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let stale = counters.and(cpu_counters.counters(CounterState::interrupt));
        if let (Some(global), false) = (self.global_of(cpu_counters.pmu), stale.is_empty()) {
            global.thaw(cpu, stale);
        }
        self.bank.load(cpu, cpu_counters, counters, |state| self.select(cpu_counters, state));
        if let Some(global) = self.global_of(cpu_counters.pmu) {
            global.let_through(cpu, cpu_counters, cpu_counters.active.all.or(counters));
        }
    }

    /// N writes; with PerfMonV2 one. One more for an event that takes two counters: the odd one must not stay merged,
    /// or the next event of the even one would overflow late.
    fn disable(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        match self.global_of(cpu_counters.pmu) {
            Some(global) => global.let_through(cpu, cpu_counters, cpu_counters.active.all.without(counters)),
            None => self.bank.clear_selects(cpu, counters),
        }
        self.bank.clear_selects(cpu, cpu_counters.uppers(counters));
    }

    /// One RDPMC for each counter with an interval; with PerfMonV2 one read.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        match self.global {
            Some(global) => CounterSet::from_bits(global.status(cpu).overflowed().into()).and(active.interrupting),
            None => unmanaged::overflowed(cpu, active.interrupting, self.bank.top_bit),
        }
    }

    fn counter_register(&self, _cpu_counters: CpuCounters<'_>, counter: u8) -> Msr {
        self.bank.place(counter).register
    }

    /// One read for each active counter; with PerfMonV2 two more, of the global control register and of the status,
    /// which reports frozen counters.
    #[inline(never)]
    fn compare(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, mut differs: impl FnMut(CounterSet, Disturbance)) {
        self.bank.compare(cpu, cpu_counters, &mut differs);
        if let Some(global) = self.global_of(cpu_counters.pmu) {
            let (_, changed) = global.changes(cpu_counters.pmu, global::control(cpu));
            let frozen = global::freeze(cpu_counters.active.all, global.status(cpu));
            changed.into_iter().chain(frozen).for_each(|(counters, disturbance)| differs(counters, disturbance));
        }
    }

    /// As a bank. With PerfMonV2, k overflowed counters take two reads, 3 + k writes and k RDPMCs, and the driver's
    /// counters stand still meanwhile.
    ///
    /// AMD's processors do not mask the LVT entry, but hypervisors do (KVM before Linux 49ff3b4aec51), so that it is
    /// unmasked if it is masked. Without global registers that is done first, as in version 1 of Emon.
    #[inline]
    fn serve<const SPECIAL: bool>(&self, cpu: &impl Cpu, pmu: &PerCpuPmu, interrupting: CounterSet) -> CounterSet {
        if let Some(global) = self.global_of(pmu) {
            return self.serve_by_status::<SPECIAL>(global, cpu, pmu, interrupting);
        }
        lvt_pmi::unmask(cpu);
        self.bank.serve::<SPECIAL>(cpu, pmu, interrupting)
    }

    /// With PerfMonV2 one read and one write, otherwise none.
    fn acknowledge(&self, cpu: &impl Cpu) {
        if let Some(global) = self.global {
            let status = global.status(cpu);
            global::clear(cpu, status);
        }
    }

    /// With PerfMonV2 one write for each counter, otherwise none.
    fn disarm(&self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        if self.global_of(cpu_counters.pmu).is_some() {
            self.bank.clear_selects(cpu, counters);
        }
    }

    fn release(&self, cpu: &impl Cpu, saved: SavedMsrs) {
        self.bank.clear(cpu);
        if let Some(global) = self.global {
            global.thaw(cpu, self.bank.all);
            global::set_control(cpu, saved.global);
        }
    }
}

impl Amd64 {
    #[inline]
    fn serve_by_status<const SPECIAL: bool>(
        &self,
        global: Global,
        cpu: &impl Cpu,
        pmu: &PerCpuPmu,
        interrupting: CounterSet,
    ) -> CounterSet {
        let (mut control, found) = (pmu.snapshot.control(), global::control(cpu));
        // The writes below would remove the traces of a program that changed the register.
        if found != control {
            control = global.note_changes(pmu, found);
        }
        global.stop(cpu, control);
        let status = global.status(cpu);
        if status.pmcs_frozen() {
            global::note_freeze(pmu, status);
        }
        let ours = CounterSet::from_bits(status.overflowed().into()).and(interrupting);
        unmanaged::reload_overflowed::<SPECIAL>(self.bank, cpu, pmu, ours);
        // Also clears bits of counters that were stopped before their interrupt arrived. Writes even if no bit is set:
        // spurious interrupts are too rare for a branch.
        global::clear(cpu, status);
        lvt_pmi::unmask(cpu);
        global::set_control(cpu, control);
        ours
    }
}
