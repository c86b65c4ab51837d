//! The events whose precise records have the address of a load or a store.

use x86_defs::cpuid::{CORE_TYPE_ATOM, Leaf1AEax, Signature};

use super::Microarchitecture;
use super::extra::ExtraEvent;
use crate::core_type::CoreType;
use crate::extra::ExtraRegister;

impl Microarchitecture {
    /// Returns the microarchitecture of the cores of a type, on a processor with this signature (CPUID.1:EAX). Without
    /// a type it is no hybrid.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn of_core_type(signature: u32, core_type: Option<CoreType>) -> Self {
        let efficient = Leaf1AEax::new().with_core_type(CORE_TYPE_ATOM);
        let efficient = (core_type == Some(CoreType::Atom)).then_some(efficient);
        Self::by_signature(Signature::from_bits(signature), || efficient)
    }

    /// Returns event select and unit mask of load latency, if the cores measure it.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn load_event(self) -> Option<(u8, u8)> {
        self.extra_events(false).iter().find(|row| row.register == ExtraRegister::LoadLatency).map(ExtraEvent::encoding)
    }

    /// Returns event select and unit mask of the stores that the cores record with their addresses:
    /// MEM_TRANS_RETIRED.PRECISE_STORE and STORE_SAMPLE, MEM_UOPS_RETIRED.ALL_STORES, MEM_INST_RETIRED.ALL_STORES,
    /// MEM_UOPS_RETIRED.STORE_LATENCY.
    ///
    /// # IRQL
    /// Any.
    ///
    /// # References
    /// The event files; Linux, arch/x86/events/intel/core.c, the events `mem-stores`.
    #[must_use]
    pub const fn store_event(self) -> Option<(u8, u8)> {
        Some(match self {
            Self::SandyBridge
            | Self::IvyBridge
            | Self::GoldenCove
            | Self::RedwoodCove
            | Self::LionCove
            | Self::CougarCove
            | Self::CoyoteCove => (0xCD, 0x02),
            Self::Haswell | Self::Broadwell | Self::Skylake | Self::IceLake => (0xD0, 0x82),
            Self::Gracemont | Self::Crestmont | Self::Skymont | Self::Darkmont => (0xD0, 0x06),
            _ => return None,
        })
    }

    /// Returns whether one counter alone records loads, and no other one stores: a session has either.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub const fn has_one_access_counter(self) -> bool {
        matches!(self, Self::SandyBridge | Self::IvyBridge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Family, model and stepping as CPUID.1:EAX has them.
    fn signature(model: u32) -> u32 {
        6 << 8 | (model & 0xF) << 4 | (model >> 4) << 16
    }

    #[test]
    fn each_core_type_has_the_events_of_its_microarchitecture() {
        let of = |model, core_type| {
            let cores = Microarchitecture::of_core_type(signature(model), core_type);
            (cores.load_event(), cores.store_event())
        };
        let (core, atom) = (Some(CoreType::Core), Some(CoreType::Atom));
        for (model, core_type, load, store) in [
            (0x1A, None, Some((0x0B, 0x10)), None),
            (0x2A, None, Some((0xCD, 0x01)), Some((0xCD, 0x02))),
            (0x3C, None, Some((0xCD, 0x01)), Some((0xD0, 0x82))),
            (0x5E, None, Some((0xCD, 0x01)), Some((0xD0, 0x82))),
            (0x8F, None, Some((0xCD, 0x01)), Some((0xCD, 0x02))),
            (0x97, core, Some((0xCD, 0x01)), Some((0xCD, 0x02))),
            (0x97, atom, Some((0xD0, 0x05)), Some((0xD0, 0x06))),
            (0xBD, core, Some((0xCD, 0x01)), Some((0xCD, 0x02))),
            (0xBD, atom, Some((0xD0, 0x05)), Some((0xD0, 0x06))),
            (0xAF, None, Some((0xD0, 0x05)), Some((0xD0, 0x06))),
            // Core 2, Goldmont, Knights Landing, and an unknown model.
            (0x17, None, None, None),
            (0x5C, None, None, None),
            (0x57, None, None, None),
            (0xFF, None, None, None),
        ] {
            assert_eq!(of(model, core_type), (load, store), "{model:#x} {core_type:?}");
            let cores = Microarchitecture::of_core_type(signature(model), core_type);
            assert_eq!(cores.has_one_access_counter(), model == 0x2A, "{model:#x}");
        }
    }
}
