//! The events of each microarchitecture that need an extra register, with the bits that may be set there.
//!
//! Sources: Linux, arch/x86/events/intel/core.c, the tables of type `extra_reg`; bits that only Intel's event files set
//! (perfmon, August 2026, column `MSRValue`) are added, on Gracemont and Knights Landing.

use x86_defs::intel::perfmon::PerfEvtSel;

use super::{Emon, Microarchitecture, PmuCapabilities, RecordedOperation};
use crate::extra::{Extra, ExtraRegister};
use crate::interface::Support;
use crate::state::CounterState;

/// An event that needs an extra register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraEvent {
    event: u8,
    umask: u8,
    /// The register.
    pub register: ExtraRegister,
    /// The bits that may be set in the register.
    pub valid: u64,
}

const fn row(event: u8, umask: u8, register: ExtraRegister, valid: u64) -> ExtraEvent {
    ExtraEvent { event, umask, register, valid }
}

const fn rsp_0(event: u8, valid: u64) -> ExtraEvent {
    row(event, 0x01, ExtraRegister::OffcoreResponse0, valid)
}

/// The second register, selected by another event, or by another unit mask of the same event.
const fn rsp_1(event: u8, umask: u8, valid: u64) -> ExtraEvent {
    row(event, umask, ExtraRegister::OffcoreResponse1, valid)
}

/// Off-module response register `number`, which has a unit mask of its own.
const fn omr(event: u8, number: u8, valid: u64) -> ExtraEvent {
    let register = match number {
        0 => ExtraRegister::OffModuleResponse0,
        1 => ExtraRegister::OffModuleResponse1,
        2 => ExtraRegister::OffModuleResponse2,
        _ => ExtraRegister::OffModuleResponse3,
    };
    row(event, 1 << number, register, valid)
}

const fn latency(event: u8, umask: u8) -> ExtraEvent {
    row(event, umask, ExtraRegister::LoadLatency, 0xFFFF)
}

const fn front_end(event: u8, umask: u8, valid: u64) -> ExtraEvent {
    row(event, umask, ExtraRegister::FrontEnd, valid)
}

const NEHALEM: &[ExtraEvent] = &[rsp_0(0xB7, 0xFFFF), latency(0x0B, 0x10)];
const WESTMERE: &[ExtraEvent] = &[rsp_0(0xB7, 0xFFFF), rsp_1(0xBB, 0x01, 0xFFFF), latency(0x0B, 0x10)];

const SANDY_BRIDGE: &[ExtraEvent] =
    &[rsp_0(0xB7, 0x3F_807F_8FFF), rsp_1(0xBB, 0x01, 0x3F_807F_8FFF), latency(0xCD, 0x01)];
/// Servers of Sandy Bridge and Ivy Bridge; Haswell and Broadwell.
const SANDY_BRIDGE_EP: &[ExtraEvent] =
    &[rsp_0(0xB7, 0x3F_FFFF_8FFF), rsp_1(0xBB, 0x01, 0x3F_FFFF_8FFF), latency(0xCD, 0x01)];
const SKYLAKE: &[ExtraEvent] = &[
    rsp_0(0xB7, 0x3F_FFFF_8FFF),
    rsp_1(0xBB, 0x01, 0x3F_FFFF_8FFF),
    latency(0xCD, 0x01),
    front_end(0xC6, 0x01, 0x7F_FF17),
];
const ICE_LAKE: &[ExtraEvent] = &[
    rsp_0(0xB7, 0x3F_FFFF_BFFF),
    rsp_1(0xBB, 0x01, 0x3F_FFFF_BFFF),
    latency(0xCD, 0x01),
    front_end(0xC6, 0x01, 0x7F_FF17),
];
/// Redwood Cove has unit masks 02 and 03 of event C6 instead of 01.
const GOLDEN_COVE: &[ExtraEvent] = &[
    rsp_0(0x2A, 0x3F_FFFF_FFFF),
    rsp_1(0x2B, 0x01, 0x3F_FFFF_FFFF),
    latency(0xCD, 0x01),
    front_end(0xC6, 0x01, 0x7F_FF1F),
    front_end(0xC6, 0x02, 0x9),
    front_end(0xC6, 0x03, 0x7F_FF1F),
    front_end(0xAD, 0x40, 0x7),
    front_end(0xC2, 0x04, 0x8),
];
/// Also Cougar Cove.
const LION_COVE: &[ExtraEvent] = &[
    rsp_0(0x2A, 0xFFF_FFFF_FFFF),
    rsp_1(0x2B, 0x01, 0xFFF_FFFF_FFFF),
    latency(0xCD, 0x01),
    front_end(0xC6, 0x02, 0x9),
    front_end(0xC6, 0x03, 0x7F_FF1F),
    front_end(0xAD, 0x40, 0xF),
    front_end(0xC2, 0x04, 0x8),
];

/// Also Panther Cove.
const COYOTE_COVE: &[ExtraEvent] = &[
    omr(0x2A, 0, 0x40FF_FFFF_0000_FFFF),
    omr(0x2A, 1, 0x40FF_FFFF_0000_FFFF),
    omr(0x2A, 2, 0x40FF_FFFF_0000_FFFF),
    omr(0x2A, 3, 0x40FF_FFFF_0000_FFFF),
    omr(MEM_LOAD_L2_MISS_RETIRED, 0, 0x40FF_FFFF_0000_FFFF),
    omr(MEM_LOAD_L2_MISS_RETIRED, 1, 0x40FF_FFFF_0000_FFFF),
    omr(MEM_LOAD_L2_MISS_RETIRED, 2, 0x40FF_FFFF_0000_FFFF),
    omr(MEM_LOAD_L2_MISS_RETIRED, 3, 0x40FF_FFFF_0000_FFFF),
    latency(0xCD, 0x01),
    front_end(0xC6, 0x02, 0x9),
    front_end(0xC6, 0x03, 0x7F_FF1F),
    front_end(0xAD, 0x40, 0xF),
    front_end(0xC2, 0x04, 0x8),
];

const SILVERMONT: &[ExtraEvent] = &[rsp_0(0xB7, 0x76_8005_FFFF), rsp_1(0xB7, 0x02, 0x36_8005_FFFF)];
const KNIGHTS_LANDING: &[ExtraEvent] = &[rsp_0(0xB7, 0x79_9FFB_BFFF), rsp_1(0xB7, 0x02, 0x39_9FFB_FFFF)];
/// Also Goldmont Plus.
const GOLDMONT: &[ExtraEvent] = &[rsp_0(0xB7, 0x76_0005_FFBF), rsp_1(0xB7, 0x02, 0x36_0005_FFBF)];
const TREMONT: &[ExtraEvent] = &[rsp_0(0xB7, 0x800F_F0FF_FFFF_9FFF), rsp_1(0xB7, 0x02, 0x000F_F0FF_FFFF_9FFF)];
const GRACEMONT: &[ExtraEvent] =
    &[rsp_0(0xB7, 0xC03F_FFFF_FFFF), rsp_1(0xB7, 0x02, 0xC03F_FFFF_FFFF), latency(0xD0, 0x05)];
/// Also Skymont and Darkmont.
const CRESTMONT: &[ExtraEvent] =
    &[rsp_0(0xB7, 0x800F_F3FF_FFFF_FFFF), rsp_1(0xB7, 0x02, 0x000F_F3FF_FFFF_FFFF), latency(0xD0, 0x05)];
/// Each register belongs to the counter with its number as well (Linux, `intel_arw_event_constraints`).
const ARCTIC_WOLF: &[ExtraEvent] = &[
    omr(0xB7, 0, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xB7, 1, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xB7, 2, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xB7, 3, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xD4, 0, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xD4, 1, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xD4, 2, 0xC0FF_FFFF_FFFF_FFFF),
    omr(0xD4, 3, 0xC0FF_FFFF_FFFF_FFFF),
    latency(0xD0, 0x05),
];

/// Numbers of the events FRONTEND_RETIRED, and of those of Coyote Cove.
const FRONTEND_RETIRED: u8 = 0xC6;
const MEM_LOAD_L2_MISS_RETIRED: u8 = 0xD6;

/// Smallest threshold of load latency (SDM Vol. 3B, "Load Latency Performance Monitoring Facility").
const MIN_LATENCY: u64 = 3;

impl Microarchitecture {
    /// Returns the events that need an extra register.
    pub(super) const fn extra_events(self, is_server: bool) -> &'static [ExtraEvent] {
        match self {
            Microarchitecture::Nehalem => NEHALEM,
            Microarchitecture::Westmere => WESTMERE,
            Microarchitecture::SandyBridge | Microarchitecture::IvyBridge if !is_server => SANDY_BRIDGE,
            Microarchitecture::SandyBridge
            | Microarchitecture::IvyBridge
            | Microarchitecture::Haswell
            | Microarchitecture::Broadwell => SANDY_BRIDGE_EP,
            Microarchitecture::Skylake => SKYLAKE,
            Microarchitecture::IceLake => ICE_LAKE,
            Microarchitecture::GoldenCove | Microarchitecture::RedwoodCove => GOLDEN_COVE,
            Microarchitecture::LionCove | Microarchitecture::CougarCove => LION_COVE,
            Microarchitecture::Silvermont => SILVERMONT,
            Microarchitecture::KnightsLanding => KNIGHTS_LANDING,
            Microarchitecture::Goldmont | Microarchitecture::GoldmontPlus => GOLDMONT,
            Microarchitecture::Tremont => TREMONT,
            Microarchitecture::Gracemont => GRACEMONT,
            Microarchitecture::Crestmont | Microarchitecture::Skymont | Microarchitecture::Darkmont => CRESTMONT,
            Microarchitecture::CoyoteCove => COYOTE_COVE,
            Microarchitecture::ArcticWolf => ARCTIC_WOLF,
            Microarchitecture::Unknown
            | Microarchitecture::Core
            | Microarchitecture::Core2
            | Microarchitecture::Bonnell => &[],
        }
    }

    /// Returns whether an event that needs an extra register is precise on every counter that counts it: load latency,
    /// FRONTEND_RETIRED, MEM_LOAD_L2_MISS_RETIRED (event files, columns `PEBS` and `PEBScounters`). The tables of
    /// constraints have no precise counters for events with a second register.
    pub(super) fn is_precise_with_extra(self, event: u8, umask: u16) -> bool {
        let is_it = |row: &&ExtraEvent| (row.event, row.umask.into()) == (event, umask);
        self.extra_events(false).iter().find(is_it).is_some_and(|row| match row.register {
            ExtraRegister::LoadLatency => true,
            ExtraRegister::FrontEnd => row.event == FRONTEND_RETIRED,
            _ => self == Microarchitecture::CoyoteCove && row.event == MEM_LOAD_L2_MISS_RETIRED,
        })
    }
}

impl PmuCapabilities {
    /// Returns the events that need an extra register.
    #[must_use]
    pub const fn extra_events(self) -> &'static [ExtraEvent] {
        self.microarchitecture().extra_events(self.is_server())
    }

    /// Returns whether the threads of a core have the off-core response registers in common: on Nehalem and Westmere
    /// (Linux, `intel_pmu_init`: later processors have PMU_FL_NO_HT_SHARING).
    #[must_use]
    pub const fn shares_extra_registers(self) -> bool {
        matches!(self.microarchitecture(), Microarchitecture::Nehalem | Microarchitecture::Westmere)
    }
}

impl ExtraEvent {
    /// Returns event select and unit mask.
    pub(super) const fn encoding(&self) -> (u8, u8) {
        (self.event, self.umask)
    }

    const fn is(&self, select: PerfEvtSel) -> bool {
        self.event == select.event_select() && self.umask == select.umask() && select.umask2() == 0
    }

    /// Returns whether its register takes this value.
    const fn takes(&self, value: u64) -> bool {
        let least = if matches!(self.register, ExtraRegister::LoadLatency) { MIN_LATENCY } else { 1 };
        value & !self.valid == 0 && value >= least
    }
}

impl Emon {
    /// Returns the entry of the event that a select register selects.
    fn extra_event(self, select: u64) -> Option<&'static ExtraEvent> {
        let select = PerfEvtSel::from_bits(select);
        self.capabilities.extra_events().iter().find(|event| event.is(select))
    }

    /// Returns the entry of the same event with the other response register. The two of off-core responses can differ
    /// in the event number.
    fn other_event(self, event: &ExtraEvent) -> Option<&'static ExtraEvent> {
        let wanted = event.register.other()?;
        let has_register = |other: &&ExtraEvent| other.register == wanted;
        let mut others = self.capabilities.extra_events().iter().filter(has_register);
        let first = others.clone().next();
        others.find(|other| other.event == event.event).or(first)
    }

    /// Returns whether the processor counts the event that `select` selects with this extra register, or without one.
    #[must_use]
    pub fn extra_support(self, select: u64, extra: Option<Extra>) -> Support {
        match (self.extra_event(select), extra) {
            (None, None) => Support::Supported,
            (Some(_), None) => Support::NeedsExtraRegister,
            (None, Some(_)) => Support::NoExtraRegister,
            (Some(row), Some(extra)) if row.register.selector() != extra.selector => Support::NoExtraRegister,
            (Some(row), Some(extra)) => {
                let takes = |row: &ExtraEvent| row.takes(extra.value);
                let is_taken = takes(row) || self.other_event(row).is_some_and(takes);
                if is_taken { Support::Supported } else { Support::ReservedExtraBits }
            }
        }
    }

    /// Returns whether the processor measures load latency, which `select` selects, only while another counter has
    /// [`AUXILIARY`](crate::extra::AUXILIARY).
    #[must_use]
    pub fn needs_auxiliary(self, select: u64) -> bool {
        let microarchitecture = self.capabilities.microarchitecture();
        microarchitecture.needs_auxiliary()
            && microarchitecture.recorded_operation(select) == Some(RecordedOperation::Load)
    }

    /// Returns the registers that can hold the value for the event that `select` selects, the event's own one first,
    /// and whether each is the [alternate](CounterState::alternate) one.
    pub fn registers_for(self, select: u64, value: u64) -> impl Iterator<Item = (ExtraRegister, bool)> {
        let own = self.extra_event(select);
        let other = own.and_then(|own| self.other_event(own));
        let both = own.map(|row| (row, false)).into_iter().chain(other.map(|row| (row, true)));
        both.filter(move |(row, _)| row.takes(value)).map(|(row, is_other)| (row.register, is_other))
    }

    /// Returns the register that a counter in this state uses; `select` selects its event without regard to
    /// [`alternate`](CounterState::alternate).
    #[must_use]
    pub fn register_of(self, select: u64, state: CounterState) -> Option<ExtraRegister> {
        let own = self.extra_event(select)?;
        let row = if state.alternate() { self.other_event(own)? } else { own };
        Some(row.register)
    }

    /// Returns the register of the event that a counter was started with.
    #[must_use]
    pub fn register_selected(self, select: u64) -> Option<ExtraRegister> {
        self.extra_event(select).map(|row| row.register)
    }

    /// Returns the select register with the event of the other response register.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[cold]
    #[inline(never)]
    pub(super) fn alternate_select(self, select: u64) -> u64 {
        let other = self.extra_event(select).and_then(|own| self.other_event(own));
        let encoded = PerfEvtSel::from_bits(select);
        other.map_or(select, |row| encoded.with_event_select(row.event).with_umask(row.umask).into_bits())
    }
}
