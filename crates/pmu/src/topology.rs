//! The processors of a core.

use x86_defs::cpuid::{LeafBEax, LeafBEbx, leaf};

use crate::cpu::Cpuid;

/// Returns the ID of the core of the current processor, if the core has several threads (SDM Vol. 3A, "Hierarchical
/// Mapping of CPUID Extended Topology Leaf").
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn core_with_threads(cpu: &impl Cpuid) -> Option<u32> {
    if cpu.cpuid(leaf::VENDOR, 0).eax < leaf::EXTENDED_TOPOLOGY {
        return None;
    }
    let threads = cpu.cpuid(leaf::EXTENDED_TOPOLOGY, 0);
    let has_threads = LeafBEbx::from_bits(threads.ebx).processors() > 1;
    has_threads.then_some(threads.edx >> LeafBEax::from_bits(threads.eax).shift())
}
