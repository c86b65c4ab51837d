//! What CPUID says of architectural performance monitoring.

use bitfield_struct::bitfield;

use crate::cpu::Cpu;

/// CPUID leaf 0xA, EAX (SDM Vol. 2A, CPUID; Vol. 3B, 21.2.1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEax {
    /// Version of architectural performance monitoring.
    pub version: u8,
    /// General counters of a logical processor.
    pub counters: u8,
    /// Bits of a general counter.
    pub width: u8,
    /// How many bits of EBX mean something.
    pub ebx_length: u8,
}

/// CPUID leaf 0xA, EBX: a set bit says that an event is not available (SDM Vol. 3B, 21.2.3, Table 21-1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEbx {
    /// Core cycles.
    pub no_core_cycles: bool,
    /// The other events; [`Emon::support`](super::Emon) takes them by number, as seed 002 does.
    #[bits(31)]
    pub others: u32,
}

/// CPUID leaf 0xA, EDX, from version 2 on (SDM Vol. 2A, CPUID; Vol. 3B, 21.2.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEdx {
    /// Fixed counters, numbered from 0 without a gap.
    #[bits(5)]
    pub fixed: u8,
    /// Bits of a fixed counter.
    pub fixed_width: u8,
    /// Reserved.
    #[bits(2)]
    __: u8,
    /// The AnyThread bits are deprecated. Here they are never set.
    pub no_any_thread: bool,
    /// Reserved, and what later versions put there.
    __: u16,
}

/// CPUID leaf 1, EAX: the signature (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Eax {
    /// Stepping.
    #[bits(4)]
    __: u8,
    /// Low half of the model.
    #[bits(4)]
    low_model: u8,
    /// Family; 15 stands for all those with an extension.
    #[bits(4)]
    pub family: u8,
    /// Type, and reserved.
    #[bits(4)]
    __: u8,
    /// High half of the model.
    #[bits(4)]
    high_model: u8,
    /// Extended family, and reserved.
    #[bits(12)]
    __: u16,
}

/// CPUID leaf 7, EDX, as far as it is asked (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
struct Leaf7Edx {
    /// Other features.
    #[bits(15)]
    __: u16,
    /// Hybrid: leaf 0x1A says of which type a core is.
    hybrid: bool,
    /// Other features.
    __: u16,
}

/// CPUID leaf 0x1A, EAX (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
struct Leaf1AEax {
    /// Native model.
    #[bits(24)]
    __: u32,
    /// Core type.
    core_type: u8,
}

/// [`Leaf1AEax`]: Intel Atom.
const ATOM: u8 = 0x20;

/// Returns whether the current processor is an E core of a hybrid. Any IRQL at which it stays the same.
pub fn is_efficient(cpu: &impl Cpu) -> bool {
    cpu.cpuid(0, 0).eax >= 0x1A
        && Leaf7Edx::from_bits(cpu.cpuid(7, 0).edx).hybrid()
        && Leaf1AEax::from_bits(cpu.cpuid(0x1A, 0).eax).core_type() == ATOM
}

/// CPUID leaf 1, ECX, as far as it is asked (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Ecx {
    /// Other features.
    #[bits(2)]
    __: u8,
    /// DTES64: the save area of the Debug Store has its 64-bit form.
    pub dtes64: bool,
    /// Another feature.
    __: bool,
    /// DS-CPL: branches can be recorded by privilege level.
    pub ds_cpl: bool,
    /// Other features.
    #[bits(10)]
    __: u16,
    /// PDCM: there is IA32_PERF_CAPABILITIES.
    pub pdcm: bool,
    /// Other features.
    __: u16,
}

impl Leaf1Eax {
    /// Of the current processor.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(1, 0).eax)
    }

    /// The model, with its extension.
    #[must_use]
    pub const fn model(self) -> u8 {
        self.high_model() << 4 | self.low_model()
    }
}

impl LeafAEax {
    /// Of the current processor, whose highest leaf has to be at least 0xA.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(0xA, 0).eax)
    }
}

impl LeafAEbx {
    /// Of the current processor, whose highest leaf has to be at least 0xA.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(0xA, 0).ebx)
    }
}
