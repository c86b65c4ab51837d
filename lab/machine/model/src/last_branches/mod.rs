//! The last branches that a processor took, in registers.
//!
//! | file | what it holds |
//! |---|---|
//! | `facts.rs` | which registers a processor has, and what their entries hold |
//! | `entry.rs` | a taken branch, and how each format writes it |
//! | `filter.rs` | which branches the registers let through |

mod entry;
mod facts;
mod filter;

pub use entry::{BranchKind, TakenBranch};

use crate::{
    bits::{bit, ones},
    fault::{GeneralProtection, refuse_reserved},
};
use entry::Entry;
use facts::{Facts, Format};

/// `MSR_LBR_SELECT` (SDM Vol. 4).
const LEGACY_SELECT: u32 = 0x1C8;
/// `MSR_LASTBRANCH_TOS`.
const TOP: u32 = 0x1C9;
/// `IA32_LBR_CTL`, `IA32_LBR_DEPTH`.
const CONTROL: u32 = 0x14CE;
const DEPTH: u32 = 0x14CF;
/// `IA32_LBR_x_INFO`, `_FROM_IP`, `_TO_IP`.
const ARCHITECTURAL: [u32; 3] = [0x1500, 0x1600, 0x1200];
/// `LbrSelect`, `DebugExtnCtl` and the first `LbrStackFromIp` of AMD (PPR for family 19h).
const AMD_SELECT: u32 = 0xC000_010E;
const AMD_CONTROL: u32 = 0xC000_010F;
const AMD_STACK: u32 = 0xC001_0300;
/// Bits of `DebugExtnCtl`.
const AMD_ENABLE: u32 = 6;
const AMD_WRITABLE: u64 = 0b111_1100;

/// Bit of an LBR in `IA32_DEBUGCTL`.
const LBR: u32 = 0;

/// The last branch records of a processor.
pub(crate) struct LastBranches {
    facts: Option<Facts>,
    /// The entries of a ring, whose newest is `top`; or a stack, whose newest is entry 0.
    entries: Vec<Entry>,
    top: usize,
    select: u64,
    control: u64,
    depth: u64,
    /// Whether AMD also shows branches of wrong paths, entries that are none, and the sources of fused pairs.
    is_unkind: bool,
    taken: u64,
}

impl LastBranches {
    pub(crate) fn new(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64) -> Self {
        let facts = Facts::read(cpuid, perf_capabilities);
        let depth = facts.as_ref().map_or(0, |facts| facts.depth);
        Self {
            facts,
            entries: vec![Entry::default(); depth],
            top: 0,
            select: 0,
            control: 0,
            depth: depth as u64,
            is_unkind: false,
            taken: 0,
        }
    }

    /// Empties the entries, as a deep sleep does. The register that enables stays.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(Entry::default());
        self.top = 0;
    }

    pub(crate) fn lose_power(&mut self) {
        self.clear();
        (self.select, self.control) = (0, 0);
        self.depth = self.entries.len() as u64;
    }

    /// Lets AMD show branches of wrong paths, entries that are none, and the first instruction of fused pairs.
    pub(crate) fn set_unkind(&mut self, is_unkind: bool) {
        self.is_unkind = is_unkind;
    }

    /// Returns whether branches are recorded. `debugctl` is `IA32_DEBUGCTL`.
    pub(crate) fn is_on(&self, debugctl: u64) -> bool {
        self.facts.as_ref().is_some_and(|facts| match facts.format {
            Format::Amd => bit(self.control, AMD_ENABLE),
            Format::Architectural => bit(self.control, 0),
            Format::Legacy { .. } => bit(debugctl, LBR),
        })
    }

    /// Records a branch, unless `frozen`. `debugctl` is `IA32_DEBUGCTL`.
    pub(crate) fn take(&mut self, branch: &TakenBranch, debugctl: u64, frozen: bool) {
        let Some(facts) = &self.facts else { return };
        let is_let_through = match facts.format {
            Format::Architectural => filter::captured(self.control, branch),
            _ => filter::not_suppressed(self.select, facts.has_nehalems_filter, branch),
        };
        if !self.is_on(debugctl) || frozen || !is_let_through {
            return;
        }
        let calls_only = match facts.format {
            Format::Architectural => bit(self.control, 3),
            Format::Amd => false,
            Format::Legacy { .. } => facts.has_call_stack && bit(self.select, 9),
        };
        if calls_only && branch.kind == BranchKind::Return {
            return self.pop();
        }
        self.taken += 1;
        if self.is_unkind && facts.format == Format::Amd && self.taken.is_multiple_of(3) {
            self.push(Entry::speculative(branch, self.taken.is_multiple_of(2)));
        }
        let Some(facts) = &self.facts else { return };
        let is_fused = self.is_unkind && facts.format == Format::Amd && branch.kind == BranchKind::Conditional;
        let entry = Entry::of(branch, &facts.format, is_fused);
        self.push(entry);
    }

    fn depth(&self) -> usize {
        usize::try_from(self.depth).unwrap_or(0).min(self.entries.len())
    }

    fn is_ring(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| matches!(facts.format, Format::Legacy { .. }))
    }

    /// Adds the newest entry.
    fn push(&mut self, entry: Entry) {
        let depth = self.depth();
        if self.is_ring() {
            self.top = (self.top + 1) % depth;
        } else if let Some(used) = self.entries.get_mut(..depth) {
            used.rotate_right(1);
        }
        self.set_newest(entry);
    }

    /// Removes the newest entry, as a return does in call-stack mode.
    fn pop(&mut self) {
        let depth = self.depth();
        self.set_newest(Entry::default());
        if self.is_ring() {
            self.top = (self.top + depth - 1) % depth;
        } else if let Some(used) = self.entries.get_mut(..depth) {
            used.rotate_left(1);
        }
    }

    fn set_newest(&mut self, entry: Entry) {
        let newest = if self.is_ring() { self.top } else { 0 };
        if let Some(place) = self.entries.get_mut(newest) {
            *place = entry;
        }
    }

    /// Returns the entry and the part of it that a register holds.
    fn place(&self, msr: u32) -> Option<(usize, usize)> {
        let facts = self.facts.as_ref()?;
        if facts.format == Format::Amd {
            let offset = usize::try_from(msr.checked_sub(AMD_STACK)?).ok()?;
            return (offset / 2 < self.entries.len()).then_some((offset / 2, offset % 2));
        }
        let bases = match facts.format {
            Format::Legacy { from, to, info, .. } => vec![Some(from), Some(to), info],
            _ => ARCHITECTURAL.map(Some).to_vec(),
        };
        // Registers beyond the depth fault.
        let number = |base: Option<u32>| {
            let offset = usize::try_from(msr.checked_sub(base?)?).ok()?;
            (offset < self.depth()).then_some(offset)
        };
        bases.into_iter().enumerate().find_map(|(part, base)| Some((number(base)?, part)))
    }

    /// Reads a register. Returns `None` if the register does not exist.
    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        let facts = self.facts.as_ref()?;
        let is = |format: bool, value| format.then_some(value);
        match msr {
            LEGACY_SELECT => is(self.is_ring(), self.select),
            TOP => is(self.is_ring(), self.top as u64),
            CONTROL => is(facts.format == Format::Architectural, self.control),
            DEPTH => is(facts.format == Format::Architectural, self.depth),
            AMD_SELECT => is(facts.format == Format::Amd, self.select),
            AMD_CONTROL => is(facts.format == Format::Amd, self.control),
            _ => {
                let (entry, part) = self.place(msr)?;
                self.entries.get(entry)?.0.get(part).copied()
            }
        }
    }

    /// Writes a register. Returns `None` if the register does not exist.
    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        self.rdmsr(msr)?;
        let facts = self.facts.as_ref()?;
        let select = if facts.has_call_stack { 0x3FF } else { 0x1FF };
        Some(match msr {
            LEGACY_SELECT => refuse_reserved(value, !select).map(|()| self.select = value),
            AMD_SELECT => refuse_reserved(value, !0x1FF).map(|()| self.select = value),
            AMD_CONTROL => refuse_reserved(value, !AMD_WRITABLE).map(|()| self.control = value),
            CONTROL => refuse_reserved(value, !0x007F_000F).map(|()| self.control = value),
            DEPTH if facts.allows_depth(value) => {
                self.depth = value;
                self.clear();
                Ok(())
            }
            TOP | DEPTH => Err(GeneralProtection),
            _ => {
                let (entry, part) = self.place(msr)?;
                if facts.format.has_transactions() && part == 0 && ![0, ones(17)].contains(&(value >> 47)) {
                    return Some(Err(GeneralProtection));
                }
                *self.entries.get_mut(entry)?.0.get_mut(part)? = value;
                Ok(())
            }
        })
    }
}
