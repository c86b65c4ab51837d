//! Extra registers: which value each has, as a resource that the counters of a processor share, and on some processors
//! both threads of a core. The caller of the functions that plan holds the planning lock.

use core::sync::atomic::Ordering;

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::disturbance::Disturbance;
use crate::extra::{Extra, ExtraRegister, Selector};
use crate::interface::emon::{AccessCounters, Emon, PmuCapabilities};
use crate::interface::{Interface, Support};
use crate::placement::Wanted;
use crate::source::{ProfileSource, RawEvent};
use crate::state::{CounterSet, CounterState, CpuCounters, PerCpuPmu};

const REGISTERS: usize = ExtraRegister::ALL.len();

/// An extra register that has another value, which a counter in use needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraTaken {
    /// Index of the event that cannot have the register.
    pub event: usize,
    /// The register.
    pub register: ExtraRegister,
    /// Its value.
    pub value: u64,
    /// The processor whose counter needs the value: the same, or the other thread of the core.
    pub holder: ProcessorIndex,
}

/// The value of a register, and the processor whose counter needs it.
type Held = Option<(u64, ProcessorIndex)>;

impl<E> Hal<E> {
    /// Returns whether the processors of an interface count the event of a source with this extra register, or without
    /// one.
    pub(super) fn extra_support(interface: &Interface, source: &ProfileSource, extra: Option<Extra>) -> Support {
        match interface {
            Interface::Emon(emon) => emon.extra_support(source.select, extra),
            _ if extra.is_some() => Support::NoExtraRegister,
            _ => Support::Supported,
        }
    }

    /// Returns whether a processor measures the load latency that a counter in this state counts only beside
    /// [`AUXILIARY`](crate::extra::AUXILIARY).
    #[must_use]
    pub fn needs_auxiliary(&self, processor: ProcessorIndex, state: CounterState) -> bool {
        match (self.interface_of(processor), self.events.source_of(state)) {
            (Interface::Emon(emon), Some(source)) => emon.needs_auxiliary(source.select),
            _ => false,
        }
    }

    /// Returns the extra register that a raw event with this value gets on a processor if no other event needs one;
    /// `None` if it needs none.
    ///
    /// # Errors
    /// Why the processor does not count the event with this extra register, or without one.
    pub fn register_for(
        &self,
        processor: ProcessorIndex,
        event: RawEvent,
        value: u64,
    ) -> Result<Option<ExtraRegister>, Support> {
        let extra = Selector::from_number(event.selector()).map(|selector| Extra { selector, value });
        let interface = self.interface_of(processor);
        match Self::extra_support(&interface, &ProfileSource::of_raw(event), extra) {
            Support::Supported => match (interface, extra) {
                (Interface::Emon(emon), Some(extra)) => {
                    Ok(emon.registers_for(event.select(), extra.value).next().map(|(register, _)| register))
                }
                _ => Ok(None),
            },
            support => Err(support),
        }
    }

    /// Chooses an extra register of `processor` for each event that needs one: one that has the value already, or one
    /// that no counter needs. Events that only one register can serve choose first, so that a choice is found if there
    /// is one.
    ///
    /// # Errors
    /// An event whose registers all have other values.
    pub fn choose_extra_registers(
        &self,
        processor: ProcessorIndex,
        events: &mut [impl AsMut<Wanted>],
    ) -> Result<(), ExtraTaken> {
        let Interface::Emon(emon) = self.interface_of(processor) else { return Ok(()) };
        if events.iter_mut().all(|event| self.events.extra_of(event.as_mut().state).is_none()) {
            return Ok(());
        }
        let mut held = self.held_values(processor, emon);
        for has_choice in [false, true] {
            for (event, wanted) in events.iter_mut().map(AsMut::as_mut).enumerate() {
                let Some(Extra { value, .. }) = self.events.extra_of(wanted.state) else { continue };
                let select = self.events.source_of(wanted.state).map_or(0, |source| source.select);
                let registers = || emon.registers_for(select, value);
                if (registers().nth(1).is_some()) != has_choice {
                    continue;
                }
                let of = |register: ExtraRegister| held.get(register as usize).copied().flatten();
                let has_value =
                    |(register, _): &(ExtraRegister, bool)| of(*register).is_some_and(|held| held.0 == value);
                let is_free = |(register, _): &(ExtraRegister, bool)| of(*register).is_none();
                let chosen = registers().find(has_value).or_else(|| registers().find(is_free));
                let Some((register, alternate)) = chosen else {
                    let taken = registers().find_map(|(register, _)| Some((register, of(register)?)));
                    let (register, (value, holder)) =
                        taken.unwrap_or((ExtraRegister::OffcoreResponse0, (0, processor)));
                    return Err(ExtraTaken { event, register, value, holder });
                };
                wanted.state = wanted.state.with_alternate(alternate);
                if let Some(held) = held.get_mut(register as usize) {
                    *held = Some((value, processor));
                }
            }
        }
        Ok(())
    }

    /// Returns the values that counters of a processor need, and those of the other thread where it shares the
    /// registers.
    fn held_values(&self, processor: ProcessorIndex, emon: Emon) -> [Held; REGISTERS] {
        let mut held = [None; REGISTERS];
        let mut add = |processor, only_shared: bool| {
            let cpu_counters = self.cpu_counters(processor);
            for counter in cpu_counters.counters(|state| !state.is_free()).iter() {
                let used = self.register_with(emon, cpu_counters.get(counter));
                if let Some((register, value)) = used.filter(|(register, _)| !only_shared || is_shared(*register))
                    && let Some(held) = held.get_mut(register as usize)
                {
                    *held = Some((value, processor));
                }
            }
        };
        if let Some(other) = self.sharing_thread(processor, emon) {
            add(other, true);
        }
        add(processor, false);
        held
    }

    /// Returns the register that a counter in this state uses, with its value.
    pub(super) fn register_with(&self, emon: Emon, state: CounterState) -> Option<(ExtraRegister, u64)> {
        let extra = self.events.extra_of(state)?;
        let select = self.events.source_of(state)?.select;
        Some((emon.register_of(select, state)?, extra.value))
    }

    /// Returns the other thread of the core, if it shares extra registers.
    fn sharing_thread(&self, processor: ProcessorIndex, emon: Emon) -> Option<ProcessorIndex> {
        self.other_thread(processor).filter(|_| emon.capabilities().shares_extra_registers())
    }

    /// Reads the registers that `counters` of the current processor are about to use, before the driver writes them for
    /// the first time: one read each. Of registers that both threads of a core share, the value is the one before
    /// either thread wrote. All processors of a session do this before one of them
    /// [programs](Self::program_extra_registers) a register.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn save_extra_registers(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let processor = current.index();
        let (Some(pmu), Interface::Emon(emon)) = (self.pmu(processor), self.interface_of(processor)) else { return };
        let cpu_counters = self.cpu_counters(processor);
        let other = self.sharing_thread(processor, emon);
        for counter in counters.iter() {
            let used = self.register_with(emon, cpu_counters.get(counter));
            let Some((register, _)) = used.filter(|(register, _)| !pmu.extra.is_saved(*register)) else { continue };
            let there = other.filter(|_| is_shared(register)).and_then(|other| self.pmu(other));
            let known = there.filter(|there| there.extra.is_saved(register)).map(|there| there.extra.found(register));
            pmu.extra.save(register, known.unwrap_or_else(|| current.cpu().rdmsr(register.msr())));
            if let Some((first, bit)) = other.and_then(|other| self.thread_bit(processor, other, register)) {
                first.extra.users.fetch_or(bit, Ordering::AcqRel);
            }
        }
    }

    /// Returns the state of the first thread of a core, and the bit of `processor` in its users of a shared register.
    fn thread_bit(
        &self,
        processor: ProcessorIndex,
        other: ProcessorIndex,
        register: ExtraRegister,
    ) -> Option<(&PerCpuPmu, u8)> {
        let first = self.pmu(processor.min(other)).filter(|_| is_shared(register))?;
        Some((first, 1 << (2 * register as u8 + u8::from(other < processor))))
    }

    /// Writes the registers that `counters` of the current processor use: one write for each register. Their values
    /// must have been [saved](Self::save_extra_registers).
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    pub fn program_extra_registers(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(cpu_counters) = self.find(current.index()).filter(|found| found.has_extra()) else { return };
        let Interface::Emon(emon) = self.interface_with(cpu_counters.pmu) else { return };
        let mut written = 0_u8;
        for counter in counters.iter().filter(|_| !cpu_counters.pmu.is_asleep()) {
            if let Some((register, value)) = self.register_with(emon, cpu_counters.get(counter))
                && written >> register as u8 & 1 == 0
            {
                written |= 1 << register as u8;
                current.cpu().wrmsr(register.msr(), value);
            }
        }
    }

    /// Writes back what was found in the extra registers of the current processor: one write for each register that was
    /// used, or none at the end of their use by a processor that sleeps. The last thread of a core that is awake writes
    /// shared ones back. A thread that falls asleep must count as asleep already: if both do at the same time, both
    /// write back.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn release_extra_registers(&self, current: CurrentCpu<'_, impl Cpu>, pmu: &PerCpuPmu, ends: bool) {
        let saved =
            if ends { pmu.extra.saved.swap(0, Ordering::AcqRel) } else { pmu.extra.saved.load(Ordering::Acquire) };
        let is_awake = |processor| self.pmu(processor).is_some_and(|pmu| !pmu.is_asleep());
        for register in ExtraRegister::ALL.into_iter().filter(|register| saved >> *register as u8 & 1 == 1) {
            let other = self.other_thread(current.index());
            let shared = other.and_then(|other| self.thread_bit(current.index(), other, register));
            let is_used_there = shared.is_some_and(|(first, bit)| {
                let kept = if ends { !bit } else { u8::MAX };
                let others = 0b11 << (2 * register as u8) & !bit;
                first.extra.users.fetch_and(kept, Ordering::AcqRel) & others != 0 && other.is_some_and(is_awake)
            });
            if !is_used_there && (!ends || !pmu.is_asleep()) {
                current.cpu().wrmsr(register.msr(), pmu.extra.found(register));
            }
        }
    }

    /// Compares the extra registers of the active counters of the current processor with the values that the driver
    /// wrote, one read for each such counter, and notes each counter that is disturbed, at the time `now`. Returns
    /// those counters.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    pub(super) fn compare_extra_registers(&self, current: CurrentCpu<'_, impl Cpu>, now: u64) -> CounterSet {
        let mut disturbed = CounterSet::NONE;
        let Some(cpu_counters) = self.find(current.index()) else { return disturbed };
        // Only this interface has extra registers.
        let emon = Emon::with_capabilities(PmuCapabilities::from_bits(cpu_counters.pmu.snapshot.capabilities()));
        for counter in cpu_counters.active.all.iter() {
            if let Some(register) = emon.register_selected(cpu_counters.pmu.select(counter))
                && let Some(Extra { value, .. }) = self.events.extra_of(cpu_counters.get(counter))
                && let Some(changed) = Disturbance::of(register.msr(), current.cpu().rdmsr(register.msr()), value)
            {
                let counters = CounterSet::NONE.with(counter);
                cpu_counters.pmu.disturbances.note(counters, changed, now);
                disturbed = disturbed.or(counters);
            }
        }
        disturbed
    }

    /// Returns the counters among `precise` of a processor whose records have an access of memory.
    // Never inlined, for the same reason.
    #[must_use]
    #[inline(never)]
    pub fn accesses(&self, processor: ProcessorIndex, precise: CounterSet) -> AccessCounters {
        let Some(cpu_counters) = self.find(processor) else { return AccessCounters::default() };
        // Only this interface has precise counters.
        Emon::with_capabilities(PmuCapabilities::from_bits(cpu_counters.pmu.snapshot.capabilities()))
            .accesses(cpu_counters, precise)
    }
}

/// Returns whether threads that share extra registers share this one.
fn is_shared(register: ExtraRegister) -> bool {
    matches!(register, ExtraRegister::OffcoreResponse0 | ExtraRegister::OffcoreResponse1)
}

impl CpuCounters<'_> {
    /// Returns whether an extra register of the processor was used since its registers were initialized.
    pub(crate) fn has_extra(self) -> bool {
        self.pmu.extra.saved.load(Ordering::Relaxed) != 0
    }
}
