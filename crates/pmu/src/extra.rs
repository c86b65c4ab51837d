//! Extra registers: some events of Intel's processors are selected by a second register as well. A client names it by a
//! selector, never by its address.

use x86_defs::intel::extra;

use crate::cpu::Msr;
use crate::first_access::RegisterGroup;
use crate::source::RawEvent;

/// Kind of an extra register. Requests have these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Selector {
    /// Off-core or off-module response: of two registers, the driver takes a free one.
    OffcoreResponse = 1,
    /// Threshold of load latency, in cycles.
    LoadLatency = 2,
    /// Front-end event.
    FrontEnd = 3,
}

/// The event beside which Golden Cove measures load latency (Linux commit 61b985e3e775, `mem-loads-aux`). Its count has
/// no meaning.
pub const AUXILIARY: RawEvent = RawEvent::new().with_event(0x03).with_umask(0x82);

impl Selector {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::OffcoreResponse, Self::LoadLatency, Self::FrontEnd];

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|selector| *selector as u8 == number)
    }

    /// Returns the group of its registers.
    #[must_use]
    pub const fn group(self) -> RegisterGroup {
        match self {
            Self::OffcoreResponse => RegisterGroup::OffcoreResponse,
            Self::LoadLatency => RegisterGroup::LoadLatency,
            Self::FrontEnd => RegisterGroup::FrontEnd,
        }
    }
}

/// What an event needs in an extra register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// Kind of the register.
    pub selector: Selector,
    /// Value of the register.
    pub value: u64,
}

/// An extra register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExtraRegister {
    /// MSR_OFFCORE_RSP_0.
    OffcoreResponse0 = 0,
    /// MSR_OFFCORE_RSP_1.
    OffcoreResponse1 = 1,
    /// MSR_PEBS_LD_LAT_THRESHOLD.
    LoadLatency = 2,
    /// MSR_PEBS_FRONTEND.
    FrontEnd = 3,
    /// MSR_OMR_0.
    OffModuleResponse0 = 4,
    /// MSR_OMR_1.
    OffModuleResponse1 = 5,
    /// MSR_OMR_2.
    OffModuleResponse2 = 6,
    /// MSR_OMR_3.
    OffModuleResponse3 = 7,
}

impl ExtraRegister {
    /// All registers, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::OffcoreResponse0,
        Self::OffcoreResponse1,
        Self::LoadLatency,
        Self::FrontEnd,
        Self::OffModuleResponse0,
        Self::OffModuleResponse1,
        Self::OffModuleResponse2,
        Self::OffModuleResponse3,
    ];

    /// Returns its address.
    #[must_use]
    pub(crate) const fn msr(self) -> Msr {
        Msr::new(match self {
            Self::OffcoreResponse0 => extra::MSR_OFFCORE_RSP_0,
            Self::OffcoreResponse1 => extra::MSR_OFFCORE_RSP_1,
            Self::LoadLatency => extra::MSR_PEBS_LD_LAT_THRESHOLD,
            Self::FrontEnd => extra::MSR_PEBS_FRONTEND,
            Self::OffModuleResponse0 => extra::MSR_OMR_0,
            Self::OffModuleResponse1 => extra::MSR_OMR_1,
            Self::OffModuleResponse2 => extra::MSR_OMR_2,
            Self::OffModuleResponse3 => extra::MSR_OMR_3,
        })
    }

    /// Returns the address, for messages.
    #[must_use]
    pub const fn address(self) -> u32 {
        self.msr().address()
    }

    /// Returns the kind.
    #[must_use]
    pub const fn selector(self) -> Selector {
        match self {
            Self::OffcoreResponse0
            | Self::OffcoreResponse1
            | Self::OffModuleResponse0
            | Self::OffModuleResponse1
            | Self::OffModuleResponse2
            | Self::OffModuleResponse3 => Selector::OffcoreResponse,
            Self::LoadLatency => Selector::LoadLatency,
            Self::FrontEnd => Selector::FrontEnd,
        }
    }

    /// Returns the register that can have the value instead, selected by another encoding of the event.
    #[must_use]
    pub(crate) const fn other(self) -> Option<Self> {
        match self {
            Self::OffcoreResponse0 => Some(Self::OffcoreResponse1),
            Self::OffcoreResponse1 => Some(Self::OffcoreResponse0),
            Self::OffModuleResponse0 => Some(Self::OffModuleResponse1),
            Self::OffModuleResponse1 => Some(Self::OffModuleResponse0),
            Self::OffModuleResponse2 => Some(Self::OffModuleResponse3),
            Self::OffModuleResponse3 => Some(Self::OffModuleResponse2),
            Self::LoadLatency | Self::FrontEnd => None,
        }
    }
}
