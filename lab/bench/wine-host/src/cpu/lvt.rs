//! The LVT performance entry, as the HAL leaves it.

use model::Processor;

/// The HAL's value: vector FEH, fixed delivery, not masked.
pub const OF_HAL: u32 = 0xFE;

/// The entry after a reset: masked.
const OF_RESET: u32 = 1 << 16;

/// Initializes the entry of a processor, as at boot and after sleep. Where a hypervisor with Microsoft's interface does
/// not report counters (leaf 40000003H, EDX bit 2), the HAL takes the interface Default, which leaves the entry alone.
pub fn initialize(processor: &mut Processor) {
    const MICROSOFT: u32 = u32::from_le_bytes(*b"Hv#1");
    let [_, _, features, _] = processor.cpuid(1, 0);
    let [interface, ..] = processor.cpuid(0x4000_0001, 0);
    let [.., reported] = processor.cpuid(0x4000_0003, 0);
    let finds_none = features >> 31 & 1 == 1 && interface == MICROSOFT && reported >> 2 & 1 == 0;
    processor.set_lvt(if finds_none { OF_RESET } else { OF_HAL });
}
