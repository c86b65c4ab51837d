//! CPUID for programs that run on another processor than the identity's.

/// Registers of CPUID with flags of instructions: leaf, subleaf, number of the register, and those flags in it that
/// tell of counters and of errata (SDM Vol. 2A, CPUID; APM Vol. 3 E.3 and E.4).
const FLAGS: [(u32, u32, usize, u32); 11] = [
    (1, 0, 2, 1 << 2 | 1 << 4 | 1 << 15 | 1 << 31), // DTES64, DS-CPL, PDCM, hypervisor
    (1, 0, 3, 1 << 21 | 1 << 28),                   // DS, HTT
    (7, 0, 1, 0),
    (7, 0, 2, 0),
    (7, 0, 3, 1 << 11 | 1 << 13 | 1 << 15), // RTM_ALWAYS_ABORT, TSX_FORCE_ABORT, hybrid
    (7, 1, 0, 1 << 8),                      // ArchPerfmonExt
    (7, 1, 2, 0),
    (7, 1, 3, 0),
    (0x24, 0, 1, 0),
    (0x8000_0001, 0, 2, 1 << 23 | 1 << 24 | 1 << 28), // PerfCtrExtCore, PerfCtrExtNB, PerfCtrExtLLC
    (0x8000_0001, 0, 3, 0),
];

/// Returns the registers of a leaf of `identity` for a program that runs on a processor with the leaf `here`. The
/// program finds no instruction that this one lacks.
#[must_use]
pub fn executable(leaf: u32, subleaf: u32, mut identity: [u32; 4], here: [u32; 4]) -> [u32; 4] {
    for (_, _, number, kept) in FLAGS.iter().filter(|(of, sub, ..)| (*of, *sub) == (leaf, subleaf)) {
        if let (Some(register), Some(here)) = (identity.get_mut(*number), here.get(*number)) {
            *register &= here | kept;
        }
    }
    identity
}
