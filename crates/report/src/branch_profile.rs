//! What the last branches of samples say of the code of a module: ranges that ran without a taken branch, and branches.
//! LLVM's llvm-profgen makes a sample profile for compilers of them (`--unsymbolized-profile`).
//!
//! Between the target of a branch and the next branch of the same sample, every instruction ran once, so a compiler
//! learns counts of basic blocks, not only where samples were.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use protocol::{is_kernel_address, last_branches};
use recording::RecordedSession;

use crate::block_counts::{BlockCount, InstructionCount};
use crate::branch_code::{BranchCode, Run, SourceFix};
use crate::branch_table::{LastBranchCount, location};
use crate::filter::Filter;
use crate::function_code::CodeError;
use crate::guard::guarded;
use crate::input::Input;
use crate::last_branches::{LastBranchStats, for_each_branch_stack};
use crate::locations::SampleLocation;
use crate::modules::ModuleId;
use crate::process_keys::ProcessKey;
use crate::proportion::real;
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
    /// A process that has it, and its address there.
    base: (ProcessKey, u64),
    /// The blocks, by the target at which they begin and the next branch instruction.
    pub ranges: BTreeMap<(u32, u32), BlockCount>,
    /// The branch instructions, wherever their targets are.
    pub sources: BTreeMap<u32, LastBranchCount>,
    /// How often a branch was taken, by its instruction and its target, which are in the module.
    pub branches: BTreeMap<(u32, u32), u64>,
    /// Number of pairs of successive branches of a sample that are no range of the module: it begins behind its end, is
    /// longer than 64 KiB, has an unconditional jump, a call or a return before its end, or ends where the image has no
    /// branch.
    pub broken: u64,
}

/// The profiles of a recording.
#[derive(Debug, Clone, Default)]
pub struct BranchProfiles {
    /// Those of the modules with branches, in no particular order.
    pub modules: Vec<BranchProfile>,
    /// Number of pairs of successive branches of a sample between which the code is in no module, or which are in two.
    pub outside: u64,
    /// What became of the branches.
    pub stats: LastBranchStats,
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

/// Returns the profile of each module with branches of the samples that `filter` selects, as [`for_each_branch_stack`]
/// says.
///
/// # Errors
/// If the recording cannot be read again.
pub fn branch_profiles(
    contents: &Contents,
    filter: &Filter,
    input: &mut dyn Input,
) -> Result<BranchProfiles, ExportError> {
    let mut profiles: BTreeMap<ModuleId, BranchProfile> = BTreeMap::new();
    let mut outside = 0;
    let stats = for_each_branch_stack(contents, filter, input, |stack| {
        let place = |address: u64| {
            let (module, offset) = contents.processes.module_at(stack.process, is_kernel_address(address), address)?;
            Some((module, u32::try_from(offset).ok()?))
        };
        let mut newer: Option<(Option<(ModuleId, u32)>, u16)> = None;
        for branch in &stack.branches {
            let (from, to) = (place(branch.from), place(branch.to));
            match (to, newer) {
                (Some((module, begin)), Some((Some((same, end)), cycles))) if module == same => {
                    let base = (stack.process, branch.to.wrapping_sub(begin.into()));
                    let profile = profiles.entry(module).or_insert_with(|| BranchProfile::of(module, base));
                    profile.add_range(begin, end, cycles);
                }
                (_, Some(_)) => outside += 1,
                (_, None) => {}
            }
            if let Some((module, source)) = from {
                let base = (stack.process, branch.from.wrapping_sub(source.into()));
                let profile = profiles.entry(module).or_insert_with(|| BranchProfile::of(module, base));
                *profile.sources.entry(source).or_default() += LastBranchCount::of(branch);
                if let Some((_, target)) = to.filter(|(target, _)| *target == module) {
                    *profile.branches.entry((source, target)).or_default() += 1;
                }
            }
            newer = Some((from, branch.cycles));
        }
        Ok(())
    })?;
    Ok(BranchProfiles { modules: profiles.into_values().collect(), outside, stats })
}

impl BranchProfile {
    const fn of(module: ModuleId, base: (ProcessKey, u64)) -> Self {
        let ranges = BTreeMap::new();
        Self { module, base, ranges, sources: BTreeMap::new(), branches: BTreeMap::new(), broken: 0 }
    }

    /// Adds one execution of the code between two branches, if there is no gap in it.
    fn add_range(&mut self, begin: u32, end: u32, cycles: u16) {
        match end.checked_sub(begin) {
            Some(length) if u64::from(length) <= MAX_RANGE => {
                *self.ranges.entry((begin, end)).or_default() += BlockCount::once(cycles);
            }
            _ => self.broken += 1,
        }
    }

    /// Returns the location of an offset, in a process that has the module.
    #[must_use]
    pub fn location(&self, offset: u32) -> SampleLocation {
        let (process, base) = self.base;
        location(process, base.wrapping_add(offset.into()))
    }

    /// Returns what the branches say of the instructions at these offsets, which are in ascending order.
    #[must_use]
    pub fn instructions(&self, offsets: &[u32]) -> Vec<InstructionCount> {
        // Each block adds its executions at its begin, and takes them away behind its end.
        let mut begins: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ends: BTreeMap<u32, Vec<BlockCount>> = BTreeMap::new();
        for ((begin, end), block) in &self.ranges {
            *begins.entry(*begin).or_default() += block.count;
            ends.entry(*end).or_default().push(*block);
        }
        let (mut begun, mut ended) = (begins.into_iter().peekable(), ends.iter().peekable());
        let mut running = 0;
        let each = offsets.iter().map(|offset| {
            while let Some((_, count)) = begun.next_if(|(begin, _)| begin <= offset) {
                running += count;
            }
            while let Some((_, blocks)) = ended.next_if(|(end, _)| *end < offset) {
                running -= blocks.iter().map(|block| block.count).sum::<u64>();
            }
            let blocks = ends.get(offset).map_or(&[][..], Vec::as_slice);
            let ipc = || {
                let known = blocks.iter().filter_map(|block| Some((u64::from(block.instructions?), block)));
                let (instructions, cycles) = known.fold((0, 0), |(instructions, cycles), (length, block)| {
                    (instructions + length * block.timed, cycles + block.cycles)
                });
                (cycles > 0).then(|| real(instructions) / real(cycles))
            };
            InstructionCount {
                executions: running,
                taken: self.sources.get(offset).copied().unwrap_or_default(),
                blocks: blocks.iter().fold(BlockCount::default(), |mut sum, block| {
                    sum += *block;
                    sum
                }),
                ipc: ipc(),
            }
        });
        each.collect()
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
        let ends = self.ranges.keys().map(|(_, end)| *end);
        let sources: BTreeSet<u32> = self.sources.keys().copied().chain(ends).collect();
        let read = || {
            let code = BranchCode::new(image)?;
            let fixes: BTreeMap<u32, SourceFix> =
                sources.iter().map(|address| (*address, code.fix(*address))).collect();
            let run = |(begin, end): &(u32, u32)| match fixes.get(end) {
                Some(SourceFix::Moved(end)) => code.run(*begin, *end),
                _ => code.run(*begin, *end),
            };
            let runs: Vec<Run> = self.ranges.keys().map(run).collect();
            Ok((fixes, runs))
        };
        let read = guarded(read).unwrap_or_else(|failure| Err(CodeError::Image(failure)));
        let (fixes, runs) = read?;
        // Where a branch is; `None` if there is none.
        let moved = |address: u32| match fixes.get(&address) {
            Some(SourceFix::Right) => Some(address),
            Some(SourceFix::Moved(branch)) => Some(*branch),
            Some(SourceFix::Wrong) | None => None,
        };
        let mut agreement = CodeAgreement::default();
        let mut branches: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for ((from, to), count) in &self.branches {
            match moved(*from) {
                Some(branch) if branch == *from => agreement.right += count,
                Some(_) => agreement.fused += count,
                None => agreement.wrong += count,
            }
            if let Some(from) = moved(*from) {
                *branches.entry((from, *to)).or_default() += count;
            }
        }
        let mut sources: BTreeMap<u32, LastBranchCount> = BTreeMap::new();
        for (from, count) in &self.sources {
            if let Some(from) = moved(*from) {
                *sources.entry(from).or_default() += *count;
            }
        }
        let mut ranges: BTreeMap<(u32, u32), BlockCount> = BTreeMap::new();
        for (((begin, end), block), run) in self.ranges.iter().zip(runs) {
            let instructions = match run {
                Run::Instructions(number) => Some(number),
                Run::Unknown | Run::Broken => None,
            };
            match moved(*end).filter(|_| run != Run::Broken) {
                Some(end) => *ranges.entry((*begin, end)).or_default() += BlockCount { instructions, ..*block },
                None => self.broken += block.count,
            }
        }
        (self.branches, self.sources, self.ranges) = (branches, sources, ranges);
        Ok(agreement)
    }

    /// Writes the profile as llvm-profgen reads it: the number of ranges, a line `from-to:count` for each, the number
    /// of branches, and a line `from->to:count` for each. Addresses are relative to the image base, in hexadecimal.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.ranges.len())?;
        for ((begin, end), block) in &self.ranges {
            writeln!(out, "{begin:x}-{end:x}:{}", block.count)?;
        }
        writeln!(out, "{}", self.branches.len())?;
        for ((from, to), count) in &self.branches {
            writeln!(out, "{from:x}->{to:x}:{count}")?;
        }
        out.flush()
    }
}
