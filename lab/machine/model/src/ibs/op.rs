//! An op that a processor executes, and the registers of its sample (PPR, "Instruction Based Sampling";
//! Linux, arch/x86/include/asm/amd/ibs.h).

use super::facts::Facts;

/// An op that retires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutedOp {
    /// Address of its instruction. While the processor runs a script, 0 stands for the script's place.
    pub ip: u64,
    /// Core clock cycles until it retires.
    pub cycles: u16,
    /// What it does.
    pub kind: OpKind,
}

/// What an op does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// It computes.
    Other,
    /// It comes from microcode that has no address of its own.
    Microcode,
    /// It branches.
    Branch {
        /// The target.
        target: u64,
        /// It was taken.
        taken: bool,
        /// It was predicted otherwise.
        mispredicted: bool,
    },
    /// It loads.
    Load(MemoryAccess),
    /// It stores.
    Store(MemoryAccess),
    /// It is a software prefetch.
    Prefetch(MemoryAccess),
}

/// An access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Linear address.
    pub address: u64,
    /// Where the data were.
    pub source: DataSource,
    /// The cache that had the line had modified it.
    pub modified: bool,
    /// Core clock cycles from the miss of the L1 cache until the data were there.
    pub latency: u16,
    /// The L1 and the L2 TLB missed.
    pub tlb_miss: bool,
    /// The bus was locked.
    pub locked: bool,
}

/// Where the data of an access were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSource {
    /// The L1 cache.
    L1,
    /// A line fill buffer: another access had missed before.
    Buffer,
    /// The L2 cache.
    L2,
    /// The L3 cache of the core complex, or another cache in it.
    L3,
    /// Another core complex of the node.
    NearCache,
    /// A core complex of another node.
    FarCache,
    /// Memory of the node.
    Dram,
    /// Memory of another node.
    FarDram,
    /// Persistent memory of the node.
    Persistent,
    /// Extension memory (CXL).
    Extension,
    /// A device.
    Device,
    /// Memory that is not cached.
    Uncached,
}

impl DataSource {
    /// Every source.
    pub const ALL: [Self; 12] = [
        Self::L1,
        Self::Buffer,
        Self::L2,
        Self::L3,
        Self::NearCache,
        Self::FarCache,
        Self::Dram,
        Self::FarDram,
        Self::Persistent,
        Self::Extension,
        Self::Device,
        Self::Uncached,
    ];

    /// Returns whether the L2 cache missed.
    const fn is_beyond_l2(self) -> bool {
        !matches!(self, Self::L1 | Self::Buffer | Self::L2)
    }

    /// Returns whether the L3 cache missed.
    pub(super) const fn is_beyond_l3(self) -> bool {
        self.is_beyond_l2() && !matches!(self, Self::L3)
    }

    const fn is_far(self) -> bool {
        matches!(self, Self::FarCache | Self::FarDram)
    }

    /// Returns the number of the source (`IBS_OP_DATA2`, bits 2:0, and from Zen 4 on bits 7:6 above them).
    const fn number(self, is_zen_4: bool) -> u64 {
        match (self, is_zen_4) {
            (Self::L3, true) => 1,
            (Self::L3 | Self::NearCache, _) => 2,
            (Self::FarCache, true) => 5,
            (Self::FarCache, false) => 4,
            (Self::Persistent, true) => 6,
            (Self::Extension, true) => 8,
            (Self::Dram | Self::FarDram | Self::Persistent | Self::Extension, _) => 3,
            (Self::Device | Self::Uncached, _) => 7,
            (Self::L1 | Self::Buffer | Self::L2, _) => 0,
        }
    }
}

/// The registers that describe the op: RIP, DATA, DATA2, DATA3, linear and physical address, target, DATA4.
pub(super) type Record = [u64; 8];

/// Bits of `IBS_OP_DATA`.
const TAKEN: u64 = 1 << 35;
const MISPREDICTED: u64 = 1 << 36;
const BRANCH: u64 = 1 << 37;
const INVALID_RIP: u64 = 1 << 38;
const MICROCODE: u64 = 1 << 40;
const TAG_TO_RETIRE: u32 = 16;

/// Bits of `IBS_OP_DATA2`.
const REMOTE: u64 = 1 << 4;
/// The line was in the state owned, and not modified.
const OWNED: u64 = 1 << 5;

/// Bits of `IBS_OP_DATA3`.
const LOAD: u64 = 1;
const STORE: u64 = 1 << 1;
const TLB_MISSES: u64 = 0b11 << 2;
const L1_MISS: u64 = 1 << 7;
const UNCACHED: u64 = 1 << 14;
const LOCKED: u64 = 1 << 15;
const NO_BUFFER: u64 = 1 << 16;
const ADDRESSES: u64 = 0b11 << 17;
const L2_MISS: u64 = 1 << 20;
const PREFETCH: u64 = 1 << 21;
const WIDTH: u64 = 4 << 22;
const LATENCY: u32 = 32;
const TLB_LATENCY: u64 = 60 << 48;

/// What `IBS_OP_DATA2` has of an op that is no load from memory: nothing that means anything.
const MEANINGLESS: u64 = 0x13;

/// The physical address of a linear one.
const PHYSICAL: u64 = 0x1234_5000_0000;

impl ExecutedOp {
    fn access(&self) -> Option<(u64, &MemoryAccess)> {
        match &self.kind {
            OpKind::Load(access) => Some((LOAD, access)),
            OpKind::Store(access) => Some((STORE, access)),
            OpKind::Prefetch(access) => Some((LOAD | PREFETCH, access)),
            OpKind::Other | OpKind::Microcode | OpKind::Branch { .. } => None,
        }
    }

    /// Returns the source of a load.
    pub(super) fn load(&self) -> Option<&MemoryAccess> {
        if let OpKind::Load(access) = &self.kind { Some(access) } else { None }
    }

    /// Returns the registers of its sample. What the op does not set is left from the one `before`.
    pub(super) fn record(&self, facts: &Facts, before: &Record) -> Record {
        let [mut rip, _, _, _, mut linear, mut physical, mut target, data_4] = *before;
        let mut data = u64::from(self.cycles) << TAG_TO_RETIRE | 1;
        match self.kind {
            OpKind::Microcode => data |= if facts.tells_invalid_rip() { MICROCODE | INVALID_RIP } else { MICROCODE },
            _ => rip = self.ip,
        }
        if let OpKind::Branch { target: to, taken, mispredicted } = self.kind {
            data |= BRANCH | if taken { TAKEN } else { 0 } | if mispredicted { MISPREDICTED } else { 0 };
            target = if facts.has_branch_target() { to } else { target };
        }
        let (mut data_2, mut data_3) = (MEANINGLESS, 0);
        if let Some((kind, access)) = self.access() {
            (linear, physical) = (access.address, PHYSICAL | access.address & 0xFFF_FFFF);
            data_3 = kind | ADDRESSES | WIDTH | access.bits(kind == LOAD);
            if kind & LOAD != 0 && access.source != DataSource::Uncached {
                data_2 = access.data_2(facts);
            }
            if facts.is_wrong_without_buffer() && data_3 & (PREFETCH | NO_BUFFER) != 0 {
                data_3 ^= L2_MISS;
                data_2 = MEANINGLESS;
            }
        }
        [rip, data, data_2, data_3, linear, physical, target, data_4]
    }
}

impl MemoryAccess {
    /// Returns the bits of `IBS_OP_DATA3` that depend on the access.
    fn bits(&self, is_load: bool) -> u64 {
        let mut bits = if self.locked { LOCKED } else { 0 };
        if self.tlb_miss {
            bits |= TLB_MISSES | TLB_LATENCY;
        }
        if self.source != DataSource::L1 {
            bits |= L1_MISS | if is_load { u64::from(self.latency) << LATENCY } else { 0 };
        }
        match self.source {
            DataSource::Buffer => bits |= NO_BUFFER,
            DataSource::Uncached => bits |= UNCACHED,
            source if source.is_beyond_l2() => bits |= L2_MISS,
            _ => {}
        }
        bits
    }

    /// Returns `IBS_OP_DATA2` of a load.
    fn data_2(&self, facts: &Facts) -> u64 {
        let number = self.source.number(facts.is_zen_4());
        let is_owned = if facts.has_wrong_hit_state() { self.modified } else { !self.modified };
        number & 7 | number >> 3 << 6 | if self.source.is_far() { REMOTE } else { 0 } | if is_owned { OWNED } else { 0 }
    }
}
