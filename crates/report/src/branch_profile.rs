//! What the last branches of samples say of the code of a module: ranges that ran without a taken branch, and branches.
//! LLVM's llvm-profgen makes a sample profile for compilers of them (`--unsymbolized-profile`).
//!
//! Between the target of a branch and the next branch of the same sample, every instruction ran once, so a compiler
//! learns counts of basic blocks, not only where samples were.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use protocol::{is_kernel_address, last_branches};
use recording::RecordedSession;

use crate::branch_code::{BranchCode, SourceFix};
use crate::filter::Filter;
use crate::function_code::CodeError;
use crate::guard::guarded;
use crate::input::Input;
use crate::last_branches::{LastBranchStats, for_each_branch_stack};
use crate::modules::ModuleId;
use crate::read::{Contents, ExportError};

/// Maximum length of a range in bytes. Code without any taken branch is shorter: a call, a return and a loop end it. A
/// longer one has lost a branch between its ends, as after a deep sleep, which empties the registers.
const MAX_RANGE: u64 = 0x1_0000;

/// The kinds of branches without which a range can have a taken branch in it.
const EVERY_NEAR_KIND: u32 = last_branches::ANY & !last_branches::FAR;

/// Ranges and branches of a module, as offsets from its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchProfile {
    /// The module.
    pub module: ModuleId,
    /// How often the code from a target to the next branch instruction ran, by both.
    pub ranges: BTreeMap<(u32, u32), u64>,
    /// How often a branch was taken, by its instruction and its target, which are in the module.
    pub branches: BTreeMap<(u32, u32), u64>,
    /// Number of pairs of successive branches of a sample that are no range of the module: it begins behind its end, is
    /// longer than 64 KiB, or has an unconditional jump or a return before its end.
    pub broken: u64,
}

/// How the branch instructions of a profile agree with an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeAgreement {
    /// Number of records with a branch instruction there.
    pub right: u64,
    /// Number of records that name the instruction before a conditional branch, as AMD's processors do when both were
    /// fused. They were corrected.
    pub fused: u64,
    /// Number of records where no branch is. They were removed.
    pub wrong: u64,
}

/// Returns whether the branches of a recording tell which code ran between two of them.
#[must_use]
pub const fn have_ranges(session: &RecordedSession) -> bool {
    session.last_branches & EVERY_NEAR_KIND == EVERY_NEAR_KIND
}

/// Returns the profile of each module with branches, in no particular order, and what became of the branches of the
/// samples that `filter` selects, as [`for_each_branch_stack`] says.
///
/// # Errors
/// If the recording cannot be read again.
pub fn branch_profiles(
    contents: &Contents,
    filter: &Filter,
    input: &mut dyn Input,
) -> Result<(Vec<BranchProfile>, LastBranchStats), ExportError> {
    let mut profiles: BTreeMap<ModuleId, BranchProfile> = BTreeMap::new();
    let stats = for_each_branch_stack(contents, filter, input, |stack| {
        let place = |address: u64| {
            let (module, offset) = contents.processes.module_at(stack.process, is_kernel_address(address), address)?;
            Some((module, u32::try_from(offset).ok()?))
        };
        let mut newer: Option<(ModuleId, u32)> = None;
        for branch in &stack.branches {
            let (from, to) = (place(branch.from), place(branch.to));
            if let (Some((module, begin)), Some((newer, end))) = (to, newer)
                && module == newer
            {
                let profile = profiles.entry(module).or_insert_with(|| BranchProfile::of(module));
                match end.checked_sub(begin) {
                    Some(length) if u64::from(length) <= MAX_RANGE => {
                        *profile.ranges.entry((begin, end)).or_default() += 1;
                    }
                    _ => profile.broken += 1,
                }
            }
            if let (Some((module, from)), Some((target, to))) = (from, to)
                && module == target
            {
                let profile = profiles.entry(module).or_insert_with(|| BranchProfile::of(module));
                *profile.branches.entry((from, to)).or_default() += 1;
            }
            newer = from;
        }
        Ok(())
    })?;
    Ok((profiles.into_values().collect(), stats))
}

impl BranchProfile {
    const fn of(module: ModuleId) -> Self {
        Self { module, ranges: BTreeMap::new(), branches: BTreeMap::new(), broken: 0 }
    }

    /// Returns the number of branches.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.branches.values().sum()
    }

    /// Compares the branch instructions with those of the image of the module, and corrects those of fused pairs.
    ///
    /// # Errors
    /// If the image cannot be read.
    pub fn agree(&mut self, image: &[u8]) -> Result<CodeAgreement, CodeError> {
        let sources: BTreeSet<u32> =
            self.branches.keys().map(|(from, _)| *from).chain(self.ranges.keys().map(|(_, end)| *end)).collect();
        let read = || {
            let code = BranchCode::new(image)?;
            let fixes: BTreeMap<u32, SourceFix> =
                sources.iter().map(|address| (*address, code.fix(*address))).collect();
            let is_whole = |(begin, end): &(u32, u32)| match fixes.get(end) {
                Some(SourceFix::Moved(end)) => code.runs_through(*begin, *end),
                _ => code.runs_through(*begin, *end),
            };
            let broken: BTreeSet<(u32, u32)> = self.ranges.keys().filter(|range| !is_whole(range)).copied().collect();
            Ok((fixes, broken))
        };
        let read = guarded(read).unwrap_or_else(|failure| Err(CodeError::Image(failure)));
        let (fixes, broken) = read?;
        let fix_of = |address: u32| fixes.get(&address).copied().unwrap_or(SourceFix::Wrong);
        let mut agreement = CodeAgreement::default();
        let mut branches: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for ((from, to), count) in &self.branches {
            match fix_of(*from) {
                SourceFix::Right => {
                    agreement.right += count;
                    *branches.entry((*from, *to)).or_default() += count;
                }
                SourceFix::Moved(from) => {
                    agreement.fused += count;
                    *branches.entry((from, *to)).or_default() += count;
                }
                SourceFix::Wrong => agreement.wrong += count,
            }
        }
        let mut ranges: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for ((begin, end), count) in &self.ranges {
            let end = match fix_of(*end) {
                _ if broken.contains(&(*begin, *end)) => {
                    self.broken += count;
                    continue;
                }
                SourceFix::Right => *end,
                SourceFix::Moved(end) => end,
                SourceFix::Wrong => continue,
            };
            *ranges.entry((*begin, end)).or_default() += count;
        }
        (self.branches, self.ranges) = (branches, ranges);
        Ok(agreement)
    }

    /// Writes the profile as llvm-profgen reads it: the number of ranges, a line `from-to:count` for each, the number
    /// of branches, and a line `from->to:count` for each. Addresses are relative to the image base, in hexadecimal.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.ranges.len())?;
        for ((begin, end), count) in &self.ranges {
            writeln!(out, "{begin:x}-{end:x}:{count}")?;
        }
        writeln!(out, "{}", self.branches.len())?;
        for ((from, to), count) in &self.branches {
            writeln!(out, "{from:x}->{to:x}:{count}")?;
        }
        out.flush()
    }
}
