//! What is known of the boot processor, which decides for all. Nothing changes it.

use crate::cpu::Cpuid;
use crate::errata::workarounds::Workarounds;
use crate::hypervisor::Hypervisor;
use crate::interface::{Interface, Kind};
use crate::selection::{self, Options, Selection};

/// The boot processor.
#[derive(Debug)]
pub struct BootProcessor {
    /// The interface that was chosen, and the reason.
    pub selection: Selection,
    /// The hypervisor between the system and the processor.
    pub hypervisor: Hypervisor,
    /// The workarounds that the processor needs.
    pub workarounds: Workarounds,
    /// The interface, as it is on this processor.
    pub interface: Interface,
    /// Whether CPUID enumerates the registers of the interface. If not, none of them may be touched.
    pub is_enumerated: bool,
}

impl BootProcessor {
    pub(super) fn of(cpu: &impl Cpuid, options: Options) -> Self {
        let selection = Selection::with_options(cpu, options);
        let has_workarounds = matches!(selection.interface, Kind::Emon | Kind::Amd64);
        Self {
            selection,
            hypervisor: Hypervisor::of(cpu),
            workarounds: if has_workarounds { Workarounds::of_processor(cpu) } else { Workarounds::default() },
            interface: Interface::new(selection.interface, cpu),
            is_enumerated: selection::enumerated(cpu, selection.interface),
        }
    }
}
