//! The processors of a core, and those of a node.

use x86_defs::cpuid::{Leaf1Ebx, Leaf80000001Ebx, Leaf80000008Ecx, LeafBEax, LeafBEbx, PACKAGE_G34, Signature, leaf};

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

/// Returns whether the current processor is the first core of its node. It must be one of AMD up to family 14h. A node
/// is a northbridge with its cores. A package has one node, except the package G34 of family 10h (Magny-Cours), which
/// has two. The first half of its core numbers belongs to one node, the second half to the other, also if each node has
/// fewer than six cores (Linux, arch/x86/kernel/cpu/amd.c, `legacy_fixup_core_id`).
///
/// CPUID alone decides, because the events of a session are checked before any register is accessed. MSRC001_100C,
/// which has the number of the node, would need a first access before that check, and a processor may lack it: there is
/// a Magny-Cours without Fn8000_0001 ECX\[19\], which reports it. Leaf Fn8000_001E, which has the number too, came with
/// family 15h, from which on the northbridge has counters of its own.
pub fn is_first_of_node(cpu: &impl Cpuid) -> bool {
    const TWO_NODES: u16 = 0x10;
    if cpu.cpuid(leaf::EXTENDED_MAXIMUM, 0).eax < leaf::EXTENDED_CORES {
        return true;
    }
    let cores = Leaf80000008Ecx::from_bits(cpu.cpuid(leaf::EXTENDED_CORES, 0).ecx);
    let bits = match cores.apic_id_size() {
        0 => u8::BITS - cores.cores_minus_1().leading_zeros(),
        size => u32::from(size),
    };
    let id = u32::from(Leaf1Ebx::from_bits(cpu.cpuid(leaf::FEATURES, 0).ebx).initial_apic_id());
    let core = id & !(u32::MAX << bits);
    let features = cpu.cpuid(leaf::EXTENDED_FEATURES, 0);
    let has_two_nodes = Signature::from_bits(features.eax).family() == TWO_NODES
        && Leaf80000001Ebx::from_bits(features.ebx).pkg_type() == PACKAGE_G34;
    // The last core of an even number, divided and rounded up: the first one of the second half.
    core == 0 || has_two_nodes && core == u32::from(cores.cores_minus_1()).div_ceil(2)
}
