//! Intel's architectural PMU, versions 1 to 5.

use super::{Freeze, IntelLeaf, Pmu, Running, metrics::Metrics, position};
use crate::{
    architectural,
    bits::{bit, ones},
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    select::Select,
    writable,
};

/// `IA32_PERFEVTSEL0` (SDM, "Architectural Performance Monitoring Version 1 Facilities").
const PERFEVTSEL0: u32 = 0x186;
/// `IA32_PMC0`. A write sets the low 32 bits and sign-extends bit 31 (SDM, "Full-Width Writes to Performance Counter
/// Registers").
const PMC0: u32 = 0xC1;
/// `IA32_A_PMC0`: full-width alias of the same counter (same section).
const A_PMC0: u32 = 0x4C1;
/// `IA32_PERF_CAPABILITIES`, enumerated by `CPUID.1:ECX[15]`. Read-only (SDM Vol. 4, "Architectural MSRs").
const PERF_CAPABILITIES: u32 = 0x345;

/// `IA32_FIXED_CTR0` (SDM, "Architectural Performance Monitoring Version 2 Facilities", like the next four).
const FIXED_CTR0: u32 = 0x309;
/// `IA32_FIXED_CTR_CTRL`: four bits for each fixed counter.
const FIXED_CTR_CTRL: u32 = 0x38D;
/// `IA32_PERF_GLOBAL_STATUS`: which counters overflowed. Read-only.
const GLOBAL_STATUS: u32 = 0x38E;
/// `IA32_PERF_GLOBAL_CTRL`: which counters may count.
const GLOBAL_CTRL: u32 = 0x38F;
/// `IA32_PERF_GLOBAL_OVF_CTRL`, called `_STATUS_RESET` from version 4: writing one clears the status bit.
const GLOBAL_STATUS_RESET: u32 = 0x390;
/// `IA32_PERF_GLOBAL_STATUS_SET`: writing one sets the status bit, and raises no interrupt (SDM, "Architectural
/// Performance Monitoring Version 4", like the next).
const GLOBAL_STATUS_SET: u32 = 0x391;
/// `IA32_PERF_GLOBAL_INUSE`: which counters are programmed. Read-only.
const GLOBAL_INUSE: u32 = 0x392;

/// `MSR_PERF_METRICS`, with `PERF_METRICS_AVAILABLE` (SDM, "Performance Metrics").
const PERF_METRICS: u32 = 0x329;
/// The fixed counter that the metrics divide.
const SLOTS: usize = 3;
/// Bit of the metrics in the global registers: `EN_PERF_METRICS`, `OVF_PERF_METRICS` (same section).
const METRICS_IN_GLOBAL: u32 = 48;

/// In the global registers, fixed counter i has bit 32 + i.
const FIXED_IN_GLOBAL: u32 = 32;
/// Status bit 58: the last branch records stand still (SDM, "Architectural Performance Monitoring Version 4").
const LBR_FRZ: u32 = 58;
/// Status bit 59: no counter counts while it is set (same section).
const CTR_FRZ: u32 = 59;
/// Status bit 62: a PEBS record reached the threshold (same section).
const OVF_BUFFER: u64 = 1 << 62;
/// Status bit 54: the same of architectural PEBS (Linux, arch/x86/include/asm/perf_event.h).
const PEBS_THRESHOLD: u64 = 1 << 54;
/// `GLOBAL_INUSE` bit 63. (The SDM's text says 32 in places; its figure says 63.)
const PMI_INUSE: u64 = 1 << 63;

/// The bits of a fixed counter in `FIXED_CTR_CTRL`.
const FIXED_FIELD: u32 = 4;
const FIXED_OS: u64 = 1;
const FIXED_USR: u64 = 2;
const FIXED_PMI: u64 = 8;
/// `FCx_Adaptive_Record` of fixed counter 0; those of counters 1 to 3 follow four bits apart (SDM, "Adaptive_Record
/// Counter Control").
const FIXED_ADAPTIVE: u32 = 32;
const MAX_FIXED_ADAPTIVE: u32 = 4;

/// `Adaptive_Record`, with `PEBS_BASELINE` (same section).
const SELECT_ADAPTIVE: u32 = 34;

/// RDPMC: ECX bit 30 selects the fixed counters (SDM Vol. 2, RDPMC).
const RDPMC_FIXED: u32 = 1 << 30;
/// RDPMC: ECX bit 29 selects the metrics (same).
const RDPMC_METRICS: u32 = 1 << 29;

enum Register {
    Select(usize),
    Counter(usize),
    WholeCounter(usize),
    Fixed(usize),
    Metrics,
    FixedControl,
    Status,
    Control,
    StatusReset,
    StatusSet,
    InUse,
    Capabilities(u64),
}

pub(crate) struct Intel {
    leaf: IntelLeaf,
    selects: Vec<Select>,
    general: Vec<Counter>,
    /// By number; `None` for a counter that does not exist.
    fixed: Vec<Option<Counter>>,
    metrics: Option<Metrics>,
    fixed_control: u64,
    control: u64,
    status: u64,
}

impl Intel {
    /// `GLOBAL_CTRL` resets to all general counters enabled and all fixed counters disabled (SDM Vol. 3A, "Processor
    /// States Following Power-up, Reset, or INIT").
    pub(crate) fn new(leaf: IntelLeaf) -> Self {
        let exists = |number| bit(leaf.fixed, number);
        let fixed =
            (0..u64::BITS - leaf.fixed.leading_zeros()).map(|i| exists(i).then(|| Counter::new(leaf.fixed_width)));
        Self {
            selects: vec![Select::default(); leaf.general],
            general: vec![Counter::new(leaf.general_width); leaf.general],
            fixed: fixed.collect(),
            metrics: leaf.perf_metrics().then(|| Metrics::new(leaf.features.level_2_metrics)),
            fixed_control: 0,
            control: general_bits(&leaf),
            status: 0,
            leaf,
        }
    }

    /// Returns an equal unit after reset.
    pub(crate) fn after_reset(&self) -> Self {
        Self::new(self.leaf.clone())
    }

    fn register(&self, msr: u32) -> Option<Register> {
        let version = self.leaf.version;
        match msr {
            PERF_CAPABILITIES => self.leaf.perf_capabilities.map(Register::Capabilities),
            FIXED_CTR_CTRL if version >= 2 => Some(Register::FixedControl),
            GLOBAL_STATUS if version >= 2 => Some(Register::Status),
            GLOBAL_CTRL if version >= 2 => Some(Register::Control),
            GLOBAL_STATUS_RESET if version >= 2 => Some(Register::StatusReset),
            GLOBAL_STATUS_SET if version >= 4 => Some(Register::StatusSet),
            GLOBAL_INUSE if version >= 4 => Some(Register::InUse),
            PERF_METRICS if self.metrics.is_some() => Some(Register::Metrics),
            _ => self.counter_register(msr),
        }
    }

    fn counter_register(&self, msr: u32) -> Option<Register> {
        let general = self.general.len();
        let whole = if self.leaf.full_width_writes() { general } else { 0 };
        position(msr, PERFEVTSEL0, 1, general)
            .map(Register::Select)
            .or_else(|| position(msr, PMC0, 1, general).map(Register::Counter))
            .or_else(|| position(msr, A_PMC0, 1, whole).map(Register::WholeCounter))
            .or_else(|| {
                let number = position(msr, FIXED_CTR0, 1, self.fixed.len())?;
                self.fixed.get(number)?.as_ref().map(|_| Register::Fixed(number))
            })
    }

    fn fixed_field(&self, number: u32) -> u64 {
        self.fixed_control >> (FIXED_FIELD * number) & ones(FIXED_FIELD)
    }

    /// Computes `IA32_PERF_GLOBAL_INUSE` (SDM, "Architectural Performance Monitoring Version 4").
    fn in_use(&self) -> u64 {
        let mut in_use = 0;
        for (number, select) in (0..).zip(&self.selects) {
            let event = select.selected().event;
            in_use |= if event != 0 { general_bit(number) } else { 0 };
            in_use |= if select.interrupt() { PMI_INUSE } else { 0 };
        }
        for number in (0..16).filter(|&i| bit(self.leaf.fixed, i)) {
            let field = self.fixed_field(number);
            in_use |= if field & (FIXED_OS | FIXED_USR) != 0 { fixed_bit(number) } else { 0 };
            in_use |= if field & FIXED_PMI != 0 { PMI_INUSE } else { 0 };
        }
        in_use
    }

    /// Returns the status bit of the buffer of records.
    fn buffer_bit(&self) -> u64 {
        if self.leaf.features.architectural_pebs { PEBS_THRESHOLD } else { OVF_BUFFER }
    }

    /// Returns whether the global registers enable a counter; true in version 1, which has no global registers.
    fn globally_enabled(&self, control_bit: u64) -> bool {
        self.leaf.version < 2 || self.control & control_bit != 0 && !bit(self.status, CTR_FRZ)
    }

    /// Returns fixed counter 3.
    fn slots(&self) -> Option<&Counter> {
        self.fixed.get(SLOTS)?.as_ref()
    }

    /// Returns the control bits of fixed counter 3 if it counts in any mode.
    fn running_slots(&self) -> Option<u64> {
        let field = self.fixed_field(3);
        (field & (FIXED_OS | FIXED_USR) != 0 && self.globally_enabled(fixed_bit(3))).then_some(field)
    }

    /// Returns whether the metrics count with fixed counter 3.
    fn metrics_run(&self) -> bool {
        self.running_slots().is_some() && bit(self.control, METRICS_IN_GLOBAL)
    }

    /// Notes that fixed counter 3 was written, or counted without the metrics.
    fn note_slots_alone(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.fall_out_of_step();
        }
    }

    fn write(&mut self, register: &Register, value: u64) -> Option<Result<(), GeneralProtection>> {
        let leaf = &self.leaf;
        let written = match *register {
            Register::Select(number) => {
                let select = self.selects.get_mut(number)?;
                refuse_reserved(value, !writable::perfevtsel(leaf, number)).map(|()| *select = Select(value))
            }
            Register::Counter(number) => {
                self.general.get_mut(number)?.write(extend_sign_of_bit_31(value));
                Ok(())
            }
            Register::WholeCounter(number) => write_whole(self.general.get_mut(number)?, value),
            Register::Fixed(number) => {
                let written = write_whole(self.fixed.get_mut(number)?.as_mut()?, value);
                if number == SLOTS {
                    self.note_slots_alone();
                }
                written
            }
            Register::Metrics => {
                let (slots, are_still) = (self.slots().map_or(0, Counter::read), self.running_slots().is_none());
                self.metrics.as_mut()?.write(value, slots, are_still)
            }
            Register::FixedControl => {
                refuse_reserved(value, !writable::fixed_ctr_ctrl(leaf)).map(|()| self.fixed_control = value)
            }
            Register::Control => refuse_reserved(value, !writable::global_ctrl(leaf)).map(|()| self.control = value),
            Register::StatusReset => {
                refuse_reserved(value, !writable::global_status_reset(leaf)).map(|()| self.status &= !value)
            }
            Register::StatusSet => {
                refuse_reserved(value, !writable::global_status_set(leaf)).map(|()| self.status |= value)
            }
            Register::Status | Register::InUse | Register::Capabilities(_) => Err(GeneralProtection),
        };
        Some(written)
    }
}

impl Pmu for Intel {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        match self.register(msr)? {
            Register::Select(number) => self.selects.get(number).map(|select| select.0),
            Register::Counter(number) | Register::WholeCounter(number) => self.general.get(number).map(Counter::read),
            Register::Fixed(number) => self.fixed.get(number)?.as_ref().map(Counter::read),
            Register::Metrics => {
                self.metrics.as_ref().map(|metrics| metrics.read(self.slots().map_or(0, Counter::read)))
            }
            Register::FixedControl => Some(self.fixed_control),
            Register::Status => Some(self.status),
            Register::Control => Some(self.control),
            Register::StatusReset | Register::StatusSet => Some(0),
            Register::InUse => Some(self.in_use()),
            Register::Capabilities(value) => Some(value),
        }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let register = self.register(msr)?;
        self.write(&register, value)
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        if index == RDPMC_METRICS {
            return self.rdmsr(PERF_METRICS);
        }
        let number = usize::try_from(index & !RDPMC_FIXED).ok()?;
        let counter =
            if index & RDPMC_FIXED == 0 { self.general.get(number) } else { self.fixed.get(number)?.as_ref() };
        counter.map(Counter::read)
    }

    fn running(&self) -> Vec<Running> {
        let general = (0..).zip(&self.selects).filter(|(number, select)| {
            select.enabled() && (select.user() || select.kernel()) && self.globally_enabled(general_bit(*number))
        });
        let general = general.map(|(number, select)| Running {
            id: CounterId::General(number),
            selected: select.selected(),
            user: select.user(),
            kernel: select.kernel(),
            interrupt: select.interrupt(),
        });
        let fixed = (0..16).filter(|&i| bit(self.leaf.fixed, u32::from(i))).filter_map(|number| {
            let field = self.fixed_field(u32::from(number));
            let enabled = field & (FIXED_OS | FIXED_USR) != 0 && self.globally_enabled(fixed_bit(u32::from(number)));
            enabled.then(|| Running {
                id: CounterId::Fixed(number),
                selected: architectural::fixed(number),
                user: field & FIXED_USR != 0,
                kernel: field & FIXED_OS != 0,
                interrupt: field & FIXED_PMI != 0,
            })
        });
        let metrics = self.metrics.as_ref().filter(|_| self.metrics_run()).map(Metrics::each);
        let metrics = metrics.into_iter().flatten().map(|(number, selected)| Running {
            id: CounterId::Metric(number),
            selected,
            user: self.fixed_field(3) & FIXED_USR != 0,
            kernel: self.fixed_field(3) & FIXED_OS != 0,
            interrupt: false,
        });
        general.chain(fixed).chain(metrics).collect()
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        match id {
            CounterId::General(number) => self.general.get(usize::from(number)),
            CounterId::Fixed(number) => self.fixed.get(usize::from(number))?.as_ref(),
            CounterId::Metric(_) => None,
        }
    }

    fn counter_mut(&mut self, id: CounterId) -> Option<&mut Counter> {
        match id {
            CounterId::General(number) => self.general.get_mut(usize::from(number)),
            CounterId::Fixed(number) => self.fixed.get_mut(usize::from(number))?.as_mut(),
            CounterId::Metric(_) => None,
        }
    }

    fn adaptive(&self, id: CounterId) -> bool {
        self.leaf.pebs_baseline()
            && match id {
                CounterId::General(number) => {
                    self.selects.get(usize::from(number)).is_some_and(|select| bit(select.0, SELECT_ADAPTIVE))
                }
                CounterId::Fixed(number) => {
                    let number = u32::from(number);
                    number < MAX_FIXED_ADAPTIVE && bit(self.fixed_control, FIXED_ADAPTIVE + FIXED_FIELD * number)
                }
                CounterId::Metric(_) => false,
            }
    }

    fn is_stuck(&self, id: CounterId) -> bool {
        self.status & status_bit(id) != 0
    }

    fn has_interrupting_status(&self, records: bool) -> bool {
        let general = (0..).zip(&self.selects).filter(|(_, select)| select.interrupt());
        let general = general.map(|(number, _)| general_bit(number));
        let fixed = (0..16).filter(|&i| bit(self.leaf.fixed, i) && self.fixed_field(i) & FIXED_PMI != 0).map(fixed_bit);
        let buffer = records.then_some(self.buffer_bit());
        general.chain(fixed).chain(buffer).any(|bit| self.status & bit != 0)
    }

    fn set_overflow(&mut self, id: CounterId, overflowed: bool) {
        if self.leaf.version >= 2 {
            let others = self.status & !status_bit(id);
            self.status = if overflowed { others | status_bit(id) } else { others };
        }
    }

    fn note_buffer(&mut self) {
        self.status |= self.buffer_bit();
    }

    /// From version 4 on, software unfreezes by the status reset register ("streamlined freeze"). Before, the interrupt
    /// clears all enable bits of `GLOBAL_CTRL` ("legacy freeze"; SDM, "Freezing LBR and Performance Counters on PMI").
    fn freeze(&mut self, Freeze { counters, branches }: Freeze) -> bool {
        if self.leaf.version >= 4 {
            self.status |= u64::from(branches) << LBR_FRZ | u64::from(counters) << CTR_FRZ;
            return false;
        }
        if counters {
            self.control = 0;
        }
        branches
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        if let (CounterId::Metric(number), Some(metrics)) = (id, &mut self.metrics) {
            metrics.add(number, events);
            return 0;
        }
        let is_slots = id == CounterId::Fixed(3);
        if is_slots && !self.metrics_run() {
            self.note_slots_alone();
        }
        let overflows = self.counter_mut(id).map_or(0, |counter| counter.add(events));
        if overflows > 0 {
            self.set_overflow(id, true);
            if is_slots && self.metrics_run() {
                self.status |= 1 << METRICS_IN_GLOBAL;
            }
        }
        overflows
    }

    /// SDM Vol. 3A, "Local Vector Table": the mask is set when a performance monitoring interrupt is handled.
    fn masks_lvt_on_delivery(&self) -> bool {
        true
    }
}

/// Returns the bit of a counter in the global registers.
fn status_bit(id: CounterId) -> u64 {
    match id {
        CounterId::General(number) => general_bit(number),
        CounterId::Fixed(number) => fixed_bit(u32::from(number)),
        CounterId::Metric(_) => 1 << METRICS_IN_GLOBAL,
    }
}

fn general_bit(number: u8) -> u64 {
    1 << number
}

fn fixed_bit(number: u32) -> u64 {
    1 << (FIXED_IN_GLOBAL + number)
}

fn general_bits(leaf: &IntelLeaf) -> u64 {
    u32::try_from(leaf.general).map_or(0, ones)
}

/// Writes a counter in full width. The bits above the width are reserved (fixed counters: SDM, "Architectural
/// Performance Monitoring Version 2 Facilities"; others: "Full-Width Writes to Performance Counter Registers").
fn write_whole(counter: &mut Counter, value: u64) -> Result<(), GeneralProtection> {
    refuse_reserved(value, counter.reserved())?;
    counter.write(value);
    Ok(())
}

/// Returns the value that a write to `IA32_PMCx` loads; EDX is ignored.
fn extend_sign_of_bit_31(value: u64) -> u64 {
    if bit(value, 31) { value | !ones(32) } else { value & ones(32) }
}
