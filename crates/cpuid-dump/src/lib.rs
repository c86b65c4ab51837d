//! Parses CPUID dumps in the formats of common tools.
//!
//! Two formats are supported and may be mixed in one text:
//!
//! ```text
//! CPUID 00000004: 1C004121-01C0003F-0000003F-00000000 [SL 00]
//! CPUID 00000004 [SL 01]: 1C004122-01C0003F-0000003F-00000000
//! CPUID 00000005 00000040-00000040-00000003-00000011
//! CPUID 00000006<tab>00000077-00000002-00000009-00000000
//! CPUID 00000007: 00000000 - 00000000 - 00000000 - 00000000
//!    0x00000004 0x02: eax=0x1c004143 ebx=0x01c0003f ecx=0x000003ff edx=0x00000000
//! ```
//!
//! AIDA64, the `InstLatx64` collection and libcpuid write the first format, `cpuid -r` on Linux writes the second. All
//! other lines are ignored. Only the first processor of a dump is read: parsing stops at a second leaf 0, or at a
//! `CPU n:` header after the first leaf.

#![forbid(unsafe_code)]

mod error;
mod line;

use std::collections::BTreeMap;
use std::fmt;

pub use error::{LineError, ParseError};
use line::Line;

/// Maximum number of leaves in a dump. Real dumps have fewer than 300.
pub const MAX_LEAVES: usize = 4096;

/// CPUID leaves of one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// EAX, EBX, ECX and EDX by leaf and subleaf.
    leaves: BTreeMap<(u32, u32), [u32; 4]>,
}

impl Dump {
    /// Parses the first processor of a dump. If a leaf occurs twice, the first occurrence counts.
    ///
    /// # Errors
    /// If there is no CPUID line, a CPUID line is malformed, or there are more than [`MAX_LEAVES`] leaves. A line
    /// counts as a CPUID line if it starts with `CPUID` and continues with eight hexadecimal digits or has four values
    /// joined by dashes after its colon, or if it starts with `0x` and contains `eax=`. Such a line is never ignored,
    /// because a missing leaf would silently give a wrong result.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut leaves = BTreeMap::new();
        for (index, text) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let error = |cause| ParseError::Line { line: index + 1, cause };
            match line::read(text).map_err(error)? {
                Line::Leaf { leaf: 0, subleaf: 0, .. } if leaves.contains_key(&(0, 0)) => break,
                Line::Leaf { .. } if leaves.len() == MAX_LEAVES => return Err(error(LineError::TooMany)),
                Line::Leaf { leaf, subleaf, registers } => {
                    leaves.entry((leaf, subleaf)).or_insert(registers);
                }
                Line::Processor if !leaves.is_empty() => break,
                Line::Processor | Line::Other => {}
            }
        }
        if leaves.is_empty() { Err(ParseError::NoLeaf) } else { Ok(Self { leaves }) }
    }

    /// Returns EAX, EBX, ECX and EDX of a leaf.
    ///
    /// A leaf without subleaves is the same for every subleaf. A leaf that is not in the dump, or is above the highest
    /// leaf that leaf 0 or 0x80000000 reports, is zero, as on AMD processors. Intel processors return the highest basic
    /// leaf instead, but software must not rely on that, and zero means "not supported" to every reader.
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        self.lookup(leaf, subleaf).unwrap_or_default()
    }

    /// Returns all leaves in ascending order: leaf, subleaf, and EAX, EBX, ECX, EDX.
    pub fn leaves(&self) -> impl Iterator<Item = (u32, u32, [u32; 4])> + '_ {
        self.leaves.iter().map(|(&(leaf, subleaf), &registers)| (leaf, subleaf, registers))
    }

    fn lookup(&self, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        if self.highest(leaf).is_some_and(|highest| leaf > highest) {
            return None;
        }
        let exact = self.leaves.get(&(leaf, subleaf));
        let registers = if self.has_subleaves(leaf) { exact } else { exact.or_else(|| self.leaves.get(&(leaf, 0))) };
        registers.copied()
    }

    /// Returns the highest leaf of the range of `leaf`, if the dump has it. The hypervisor range is excluded: early KVM
    /// reported 0 and meant 0x40000001.
    fn highest(&self, leaf: u32) -> Option<u32> {
        let range = leaf & 0xFFFF_0000;
        let [highest, ..] = self.leaves.get(&(range, 0)).filter(|_| matches!(range, 0 | 0x8000_0000))?;
        Some((*highest).max(range))
    }

    /// Returns whether the leaf depends on ECX, so that subleaf 0 says nothing about the others.
    fn has_subleaves(&self, leaf: u32) -> bool {
        let known = matches!(
            leaf,
            0x4 | 0x7
                | 0xB
                | 0xD
                | 0xF
                | 0x10
                | 0x12
                | 0x14
                | 0x17
                | 0x18
                | 0x1A
                | 0x1B
                | 0x1D
                | 0x1F
                | 0x20
                | 0x23
                | 0x24
                | 0x8000_001D
                | 0x8000_0020
                | 0x8000_0026
        );
        known || self.leaves.range((leaf, 1)..=(leaf, u32::MAX)).next().is_some()
    }
}

/// Writes the dump in the first format of the [crate documentation](crate), one leaf per line. The subleaf is written
/// unless it is 0.
impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (leaf, subleaf, [eax, ebx, ecx, edx]) in self.leaves() {
            write!(f, "CPUID {leaf:08X}: {eax:08X}-{ebx:08X}-{ecx:08X}-{edx:08X}")?;
            if subleaf != 0 {
                write!(f, " [SL {subleaf:02X}]")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
