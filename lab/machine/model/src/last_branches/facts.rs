//! Which last branch records a processor has, from CPUID and `IA32_PERF_CAPABILITIES`.

use crate::bits::{bit, byte, field};
use crate::cpuid::{hidden_by_hypervisor, is_amd, vendor};

/// The records of a processor.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) format: Format,
    /// The most entries.
    pub(super) depth: usize,
    /// The depths of leaf 1CH.
    depths: u64,
    pub(super) has_call_stack: bool,
    /// Calls are recorded only with jumps (Nehalem's filter).
    pub(super) has_nehalems_filter: bool,
}

/// Kind of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Legacy {
        /// First registers.
        from: u32,
        to: u32,
        info: Option<u32>,
        layout: Layout,
    },
    Architectural,
    Amd,
}

/// Layout of a legacy entry, by `LBR_FMT` (SDM Vol. 3B, "LBR Stack and 64-bit Mode").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Addresses,
    Mispredicted,
    Transactions,
    Info,
    Cycles,
}

/// Models of family 6 by the size and place of their records (SDM Vol. 4, tables of `MSR_LASTBRANCH_x_FROM_IP`).
const EIGHT_EARLY: [u8; 6] = [0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x5D];
const EIGHT: [u8; 2] = [0x57, 0x85];
const NEHALEM_AND_WESTMERE: [u8; 7] = [0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F];
const SANDY_AND_IVY_BRIDGE: [u8; 4] = [0x2A, 0x2D, 0x3A, 0x3E];
const HASWELL_AND_BROADWELL: [u8; 8] = [0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56];
const THIRTY_TWO: [u8; 22] = [
    0x4E, 0x5E, 0x55, 0x8E, 0x9E, 0xA5, 0xA6, 0x66, 0x6A, 0x6C, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7, 0x9D, 0x5C, 0x5F, 0x7A,
    0x86, 0x96, 0x9C,
];

impl Facts {
    pub(super) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64) -> Option<Self> {
        if hidden_by_hypervisor(cpuid) {
            return None;
        }
        if is_amd(cpuid) {
            return Self::amd(cpuid);
        }
        let [last, ..] = cpuid(0, 0);
        let [signature, _, features, _] = cpuid(1, 0);
        if vendor(cpuid) != b"GenuineIntel" || last < 0xA {
            return None;
        }
        if last >= 0x1C && bit(u64::from(cpuid(7, 0)[3]), 19) {
            let [depths, choices, ..] = cpuid(0x1C, 0);
            let depths = field(u64::from(depths), 7, 0);
            let depth = (0..8).rev().find(|number| bit(depths, *number)).map(|number| 8 * (number as usize + 1))?;
            let has_call_stack = bit(u64::from(choices), 2);
            return Some(Self {
                format: Format::Architectural,
                depth,
                depths,
                has_call_stack,
                has_nehalems_filter: false,
            });
        }
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        let early = (0x040, 0x060);
        let usual = (0x680, 0x6C0);
        let (depth, (from, to), has_call_stack) = match model {
            _ if byte(signature, 11, 8) != 6 => return None,
            model if EIGHT_EARLY.contains(&model) => (8, early, false),
            model if EIGHT.contains(&model) => (8, usual, false),
            model if NEHALEM_AND_WESTMERE.contains(&model) => (16, usual, false),
            model if SANDY_AND_IVY_BRIDGE.contains(&model) => (16, usual, false),
            model if HASWELL_AND_BROADWELL.contains(&model) => (16, usual, true),
            model if THIRTY_TWO.contains(&model) => (32, usual, true),
            _ => return None,
        };
        let format = if bit(u64::from(features), 15) { field(perf_capabilities, 5, 0) } else { 0 };
        let layout = match format {
            1 if EIGHT.contains(&model) => Layout::Mispredicted,
            1 | 2 => Layout::Addresses,
            3 => Layout::Mispredicted,
            4 => Layout::Transactions,
            5 | 7 => Layout::Info,
            6 => Layout::Cycles,
            _ => return None,
        };
        let info = (layout == Layout::Info).then_some(0xDC0);
        let has_nehalems_filter = NEHALEM_AND_WESTMERE.contains(&model) || EIGHT_EARLY.contains(&model);
        let format = Format::Legacy { from, to, info, layout };
        Some(Self { format, depth, depths: 0, has_call_stack, has_nehalems_filter })
    }

    /// `ExtPerfMonAndDbg`: EAX\[1\] LbrStack, EBX\[9:4\] LbrStackSize.
    fn amd(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Option<Self> {
        let [last, ..] = cpuid(0x8000_0000, 0);
        let [eax, ebx, ..] = if last >= 0x8000_0022 { cpuid(0x8000_0022, 0) } else { [0; 4] };
        let depth = usize::from(byte(ebx, 9, 4));
        (bit(u64::from(eax), 1) && depth > 0).then_some(Self {
            format: Format::Amd,
            depth,
            depths: 0,
            has_call_stack: false,
            has_nehalems_filter: false,
        })
    }

    /// Returns whether `IA32_LBR_DEPTH` takes a value.
    pub(super) fn allows_depth(&self, value: u64) -> bool {
        value.is_multiple_of(8) && (8..=64).contains(&value) && self.depths >> (value / 8 - 1) & 1 != 0
    }
}

impl Format {
    pub(super) fn has_transactions(self) -> bool {
        matches!(self, Self::Legacy { layout: Layout::Transactions, .. })
    }
}
