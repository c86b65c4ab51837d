//! Intel's last branch records before the architectural ones (SDM Vol. 3B 19.4 to 19.13; Vol. 4): a ring of registers,
//! whose newest entry MSR_LASTBRANCH_TOS names.

use x86_defs::intel::last_branches as registers;
use x86_defs::intel::last_branches::LbrInfo;

use super::branch::sign_extended;
use super::{Branch, Filter, LastBranches, Registers, SavedLastBranches, intel_freeze};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Fault, FirstAccess, GuardedCpu};
use crate::interface::emon::Microarchitecture;

pub const MSR_LBR_SELECT: Msr = Msr::new(registers::MSR_LBR_SELECT);
const MSR_LASTBRANCH_TOS: Msr = Msr::new(registers::MSR_LASTBRANCH_TOS);
const MSR_LBR_INFO: Msr = Msr::new(registers::MSR_LBR_INFO);

/// Where the entries are, and what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    from: Msr,
    to: Msr,
    layout: Layout,
}

/// What an entry holds, by LBR_FMT of IA32_PERF_CAPABILITIES (SDM Vol. 3B 19.4.8.1; Linux,
/// arch/x86/events/intel/lbr.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// 1 and 2: addresses.
    Addresses,
    /// 3: FROM\[63\] is a misprediction.
    Mispredicted,
    /// 4: also FROM\[62:61\], about transactions.
    Transactions,
    /// 5 and 7: MSR_LBR_INFO_x has everything else.
    Info,
    /// 6: 3, and TO\[63:48\] are cycles.
    Cycles,
}

impl Layout {
    const fn of(format: u8) -> Option<Self> {
        match format {
            1 | 2 => Some(Self::Addresses),
            3 => Some(Self::Mispredicted),
            4 => Some(Self::Transactions),
            5 | 7 => Some(Self::Info),
            6 => Some(Self::Cycles),
            _ => None,
        }
    }

    /// Returns the branch of an entry without MSR_LBR_INFO_x.
    const fn branch(self, from: u64, to: u64) -> Branch {
        let mispredicted = Some(from >> 63 != 0);
        let plain = Branch { from, to, cycles: 0, mispredicted: None, branch_type: None };
        match self {
            Self::Addresses | Self::Info => plain,
            Self::Mispredicted => Branch { from: sign_extended(from, 62), mispredicted, ..plain },
            Self::Transactions => Branch { from: sign_extended(from, 60), mispredicted, ..plain },
            Self::Cycles => {
                let [.., low, high] = to.to_le_bytes();
                let cycles = u16::from_le_bytes([low, high]);
                Branch { from: sign_extended(from, 62), to: sign_extended(to, 47), cycles, mispredicted, ..plain }
            }
        }
    }
}

/// Examines a processor with this LBR_FMT. Core, Core 2 and Bonnell have four or eight entries and cannot choose.
pub fn examine(cpu: &impl Cpuid, format: u8) -> Option<LastBranches> {
    use Microarchitecture as M;
    let early = (registers::MSR_LASTBRANCH_FROM_EARLY, registers::MSR_LASTBRANCH_TO_EARLY);
    let usual = (registers::MSR_LASTBRANCH_FROM, registers::MSR_LASTBRANCH_TO);
    let microarchitecture = Microarchitecture::of(cpu);
    let (depth, (from, to), has_call_stack) = match microarchitecture {
        M::Silvermont => (8, early, false),
        M::KnightsLanding => (8, usual, false),
        M::Nehalem | M::Westmere | M::SandyBridge | M::IvyBridge => (16, usual, false),
        M::Haswell | M::Broadwell => (16, usual, true),
        M::Skylake | M::IceLake | M::Goldmont | M::GoldmontPlus | M::Tremont => (32, usual, true),
        _ => return None,
    };
    // It reports format 1, and has the bit of format 3 (Linux, `intel_pmu_lbr_init_knl`).
    let is_modest = microarchitecture == M::KnightsLanding && format == 1;
    let layout = Layout::of(if is_modest { 3 } else { format })?;
    Some(LastBranches {
        registers: Registers::Legacy(Format { from: Msr::new(from), to: Msr::new(to), layout }),
        depth,
        freeze: intel_freeze(cpu),
        // They record calls only with both kinds of jumps (Linux, `nhm_lbr_sel_map`).
        has_kinds: !matches!(microarchitecture, M::Nehalem | M::Westmere | M::Silvermont),
        has_call_stack,
    })
}

/// Returns the register that chooses branches, if another program has written it.
pub fn in_use(cpu: &impl Cpu) -> Option<(u32, u64)> {
    let select = cpu.rdmsr(MSR_LBR_SELECT);
    (select != 0).then_some((MSR_LBR_SELECT.address(), select))
}

pub fn is_ours(cpu: &impl Cpu, filter: Filter) -> bool {
    cpu.rdmsr(MSR_LBR_SELECT) == filter.select()
}

pub fn compare(cpu: &impl Cpu, filter: Filter) -> Option<Disturbance> {
    Disturbance::of(MSR_LBR_SELECT, cpu.rdmsr(MSR_LBR_SELECT), filter.select())
}

impl Format {
    const fn has_info(self) -> bool {
        matches!(self.layout, Layout::Info)
    }

    /// Returns the registers of an entry.
    fn entry(self, index: u8) -> impl Iterator<Item = Msr> {
        let info = self.has_info().then_some(MSR_LBR_INFO.at(index));
        [self.from.at(index), self.to.at(index)].into_iter().chain(info)
    }

    /// Accesses the registers for the first time. Returns the newest entry of the known loop.
    ///
    /// A register that was read is not written back: format 4 faults for the sign of its own addresses where
    /// transactions are off (Linux, `lbr_from_signext_quirk_wr`).
    pub fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>, depth: u8) -> Result<(Msr, u64), Fault> {
        first.read(MSR_LASTBRANCH_TOS)?;
        for register in (0..depth).flat_map(|index| self.entry(index)) {
            first.read(register)?;
            first.write(register, 0)?;
        }
        first.trying(MSR_LBR_SELECT, |_| {
            first.demand(MSR_LBR_SELECT, Filter::KERNEL.select())?;
            first.trying(super::IA32_DEBUGCTL, |found| {
                first.write(super::IA32_DEBUGCTL, found | 1)?;
                first.run_loop();
                Ok(())
            })
        })?;
        let newest = self.from.at(newest(first.read(MSR_LASTBRANCH_TOS)?, depth));
        Ok((newest, first.read(newest)?))
    }

    /// Chooses the branches, and empties the entries. Nothing is recorded yet.
    pub fn prepare(self, cpu: &impl Cpu, depth: u8, filter: Filter) -> SavedLastBranches {
        let saved = SavedLastBranches { select: cpu.rdmsr(MSR_LBR_SELECT), ..SavedLastBranches::default() };
        cpu.wrmsr(MSR_LBR_SELECT, filter.select());
        (0..depth).for_each(|index| cpu.wrmsr(self.from.at(index), 0));
        saved
    }

    /// Empties the entries, and puts back what chose the branches.
    pub fn empty(self, cpu: &impl Cpu, depth: u8, saved: SavedLastBranches) {
        cpu.wrmsr(MSR_LBR_SELECT, saved.select);
        (0..depth).flat_map(|index| self.entry(index)).for_each(|register| cpu.wrmsr(register, 0));
    }

    /// Reads the entries from the newest to the oldest, while `each` wants more. An entry without a source is empty,
    /// and so are those before it: deep sleep empties all at once.
    pub fn read(self, cpu: &impl Cpu, depth: u8, mut each: impl FnMut(Branch) -> bool) {
        let newest = newest(cpu.rdmsr(MSR_LASTBRANCH_TOS), depth);
        for age in 0..depth {
            let index = newest.wrapping_sub(age) & (depth - 1);
            let from = cpu.rdmsr(self.from.at(index));
            if from == 0 {
                break;
            }
            let to = cpu.rdmsr(self.to.at(index));
            let branch = if self.has_info() {
                Branch::with_info(from, to, LbrInfo::from_bits(cpu.rdmsr(MSR_LBR_INFO.at(index))))
            } else {
                self.layout.branch(from, to)
            };
            if !each(branch) {
                break;
            }
        }
    }
}

/// Returns the index of the newest entry. The register has more bits than the depth needs.
fn newest(top: u64, depth: u8) -> u8 {
    let [low, ..] = top.to_le_bytes();
    low & (depth - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u64 = 0x7FF6_1234_5678;
    const KERNEL: u64 = 0xFFFF_F801_1234_5678;

    #[test]
    fn each_layout_has_its_addresses_and_its_flags() {
        let plain = Branch { from: USER, to: KERNEL, cycles: 0, mispredicted: None, branch_type: None };
        assert_eq!(Layout::of(1).unwrap().branch(USER, KERNEL), plain);
        let (right, wrong) = (Some(false), Some(true));
        for (format, from, to, expected) in [
            (3, USER, KERNEL, Branch { mispredicted: right, ..plain }),
            (3, USER | 1 << 63, KERNEL, Branch { mispredicted: wrong, ..plain }),
            (3, KERNEL & !(1 << 63), USER, Branch { from: KERNEL, to: USER, mispredicted: right, ..plain }),
            (4, USER | 7 << 61, KERNEL, Branch { mispredicted: wrong, ..plain }),
            // Without transactions, bits 62 and 61 are zero and no copies of the sign.
            (4, KERNEL & !(7 << 61), USER, Branch { from: KERNEL, to: USER, mispredicted: right, ..plain }),
            (6, USER, KERNEL << 16 >> 16 | 9 << 48, Branch { cycles: 9, mispredicted: right, ..plain }),
        ] {
            assert_eq!(Layout::of(format).unwrap().branch(from, to), expected, "format {format}");
        }
        for format in [0, 8, 0x3F] {
            assert_eq!(Layout::of(format), None, "format {format}");
        }
    }
}
