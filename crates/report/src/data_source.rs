//! Where the data of an access came from, by the encoding of its record.
//!
//! # References
//! SDM Vol. 3B, "Load Latency Performance Monitoring Facility", "Data Source Encoding for Load Latency Record"; Linux
//! 6.12, arch/x86/events/intel/ds.c (`intel_pmu_pebs_data_source_nhm` and those after it), arch/x86/events/amd/ibs.c
//! (`perf_ibs_get_mem_lvl`).

use std::borrow::Cow;

use protocol::{AccessEncoding, AccessRecord};

use self::MemoryLevel as Level;

/// The part of the memory system that served an access, from the nearest to the farthest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryLevel {
    /// The op cache: a fetch that needed no decoding.
    OpCache,
    /// The first-level cache of the core.
    L1,
    /// A fill buffer: the line was already on its way to the first-level cache, because of another access.
    FillBuffer,
    /// The second-level cache.
    L2,
    /// A buffer of misses of the second-level cache: the line was already on its way there.
    L2MissBuffer,
    /// Not the first-level cache; the record says no more.
    BeyondL1,
    /// Neither the first- nor the second-level cache; the record says no more.
    BeyondL2,
    /// The third-level cache, or through it another core's cache.
    L3,
    /// A miss of the third-level cache; the record says no more.
    BeyondL3,
    /// A cache of other cores of this node, behind another third-level cache or none.
    OtherCache,
    /// The memory-side cache.
    MemorySideCache,
    /// The fourth-level cache of a client, or persistent memory of a server: both have the same code.
    L4OrPersistent,
    /// A cache of another node.
    RemoteCache,
    /// DRAM of this node.
    LocalDram,
    /// DRAM of another node.
    RemoteDram,
    /// Persistent memory of this node.
    LocalPersistent,
    /// Persistent memory of another node.
    RemotePersistent,
    /// Memory behind CXL at this node.
    LocalCxl,
    /// Memory behind CXL at another node.
    RemoteCxl,
    /// A device.
    Io,
    /// Memory that is not cached.
    Uncached,
    /// Nothing: the fetch was abandoned.
    Abandoned,
    /// The record says nothing of it, or nothing valid.
    NotReported,
    /// A code without a meaning in the sources.
    Unknown(u8),
}

impl MemoryLevel {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        let name = match self {
            Self::OpCache => "op cache",
            Self::L1 => "L1",
            Self::FillBuffer => "fill buffer",
            Self::L2 => "L2",
            Self::L2MissBuffer => "L2 miss buffer",
            Self::BeyondL1 => "beyond L1",
            Self::BeyondL2 => "beyond L2",
            Self::L3 => "L3",
            Self::BeyondL3 => "beyond L3",
            Self::OtherCache => "other cache",
            Self::MemorySideCache => "memory-side cache",
            Self::L4OrPersistent => "L4 or PMEM",
            Self::RemoteCache => "remote cache",
            Self::LocalDram => "DRAM",
            Self::RemoteDram => "remote DRAM",
            Self::LocalPersistent => "PMEM",
            Self::RemotePersistent => "remote PMEM",
            Self::LocalCxl => "CXL",
            Self::RemoteCxl => "remote CXL",
            Self::Io => "I/O",
            Self::Uncached => "uncached",
            Self::Abandoned => "abandoned",
            Self::NotReported => "not reported",
            Self::Unknown(code) => return format!("unknown ({code:#x})").into(),
        };
        name.into()
    }

    /// Returns whether it is unknown what served the access.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::NotReported | Self::Unknown(_))
    }
}

/// What the other caches answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Snoop {
    /// The record does not say it.
    NotReported,
    /// None was asked.
    None,
    /// None had the line.
    Miss,
    /// One had it unmodified.
    Hit,
    /// One forwarded it.
    Forward,
    /// One had it modified.
    Modified,
}

impl Snoop {
    /// Returns its name, in the words of perf.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotReported => "not reported",
            Self::None => "none",
            Self::Miss => "miss",
            Self::Hit => "hit",
            Self::Forward => "forward",
            Self::Modified => "HITM",
        }
    }
}

/// How the address was translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Translation {
    /// The record does not say it.
    NotReported,
    /// By the first- or second-level TLB.
    Hit,
    /// By the first-level TLB.
    L1Hit,
    /// By the second-level TLB.
    L2Hit,
    /// By a walk of the page tables.
    Miss,
}

impl Translation {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotReported => "not reported",
            Self::Hit => "hit",
            Self::L1Hit => "L1 hit",
            Self::L2Hit => "L2 hit",
            Self::Miss => "miss",
        }
    }
}

/// Which earlier stores a load had to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blocked {
    /// None, as far as the processor reports it.
    No,
    /// One whose data could not be forwarded.
    Data,
    /// One whose address could be the same.
    Address,
    /// Both.
    Both,
}

impl Blocked {
    const fn of(data: bool, address: bool) -> Self {
        match (data, address) {
            (false, false) => Self::No,
            (true, false) => Self::Data,
            (false, true) => Self::Address,
            (true, true) => Self::Both,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Data => "data",
            Self::Address => "address",
            Self::Both => "data and address",
        }
    }
}

/// In which node another cache had a modified copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModifiedCopy {
    /// In that of the core.
    Local,
    /// In another one.
    Remote,
}

/// What the record of an access says of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataSource {
    /// What served it.
    pub level: MemoryLevel,
    /// What the other caches answered.
    pub snoop: Snoop,
    /// How its address was translated.
    pub translation: Translation,
    /// Whether the record says that the access was locked.
    pub locked: bool,
    /// What it had to wait for.
    pub blocked: Blocked,
}

/// What served an access, and what the other caches answered.
type Served = (MemoryLevel, Snoop);

impl DataSource {
    /// Decodes the source of an access.
    #[must_use]
    pub fn of(access: &AccessRecord) -> Self {
        let word = access.source;
        let is = |bit: u32| word >> bit & 1 == 1;
        let translated = |miss| if is(miss) { Translation::Miss } else { Translation::Hit };
        let found =
            |(level, snoop): Served, translation, locked, blocked| Self { level, snoop, translation, locked, blocked };
        match access.encoding {
            AccessEncoding::Nehalem => found(nehalem(word & 0xF), Translation::NotReported, false, Blocked::No),
            AccessEncoding::SandyBridge => found(sandy_bridge(word & 0xF), translated(4), is(5), Blocked::No),
            AccessEncoding::Skylake => found(skylake(word & 0xF), translated(4), is(5), Blocked::of(is(6), is(7))),
            AccessEncoding::Gracemont => found(gracemont(word & 0xF), translated(5), is(4), Blocked::of(is(6), false)),
            AccessEncoding::Crestmont => found(crestmont(word & 0x1F), translated(6), is(5), Blocked::of(is(7), false)),
            AccessEncoding::LionCove => {
                found(lion_cove(word & 0xFF), translated(10), is(11), Blocked::of(is(12), is(13)))
            }
            AccessEncoding::Store => {
                let level = if is(0) { Level::L1 } else { Level::BeyondL1 };
                found((level, Snoop::NotReported), translated(4), is(5), Blocked::No)
            }
            AccessEncoding::Ibs | AccessEncoding::IbsZen3 | AccessEncoding::IbsZen3Client | AccessEncoding::IbsZen4 => {
                let ibs = Ibs { word, encoding: access.encoding };
                found(ibs.served(), ibs.translation(), ibs.has(Ibs::LOCKED), Blocked::No)
            }
            AccessEncoding::IbsFetch
            | AccessEncoding::IbsFetchZen
            | AccessEncoding::IbsFetchZen3
            | AccessEncoding::IbsFetchZen4 => {
                let fetch = Fetch { word, encoding: access.encoding };
                found((fetch.level(), Snoop::NotReported), fetch.translation(), false, Blocked::No)
            }
        }
    }

    /// Returns where another cache had a modified copy, if one had it.
    #[must_use]
    pub fn modified_copy(&self) -> Option<ModifiedCopy> {
        let place = if self.level == Level::RemoteCache { ModifiedCopy::Remote } else { ModifiedCopy::Local };
        (self.snoop == Snoop::Modified).then_some(place)
    }
}

/// Returns whether records of loads in this encoding say that another cache had a modified copy.
#[must_use]
pub const fn reports_modified(encoding: AccessEncoding) -> bool {
    !matches!(encoding, AccessEncoding::Store | AccessEncoding::IbsZen3 | AccessEncoding::IbsZen3Client)
}

/// Returns the linear address of the data; `None` if the record has none.
#[must_use]
pub const fn data_address(access: &AccessRecord) -> Option<u64> {
    let is_valid = match access.encoding {
        AccessEncoding::Ibs | AccessEncoding::IbsZen3 | AccessEncoding::IbsZen3Client | AccessEncoding::IbsZen4 => {
            access.source & Ibs::LINEAR_VALID != 0
        }
        _ => true,
    };
    if is_valid && access.address != 0 { Some(access.address) } else { None }
}

/// Returns the meaning of a code of four bits on Sandy Bridge, of which later generations change some.
const fn sandy_bridge(code: u32) -> Served {
    match code {
        0x0 => (Level::BeyondL3, Snoop::NotReported),
        0x1 => (Level::L1, Snoop::None),
        0x2 => (Level::FillBuffer, Snoop::None),
        0x3 => (Level::L2, Snoop::None),
        0x4 => (Level::L3, Snoop::None),
        0x5 => (Level::L3, Snoop::Miss),
        0x6 => (Level::L3, Snoop::Hit),
        0x7 => (Level::L3, Snoop::Modified),
        0x8 => (Level::RemoteCache, Snoop::Hit),
        0x9 => (Level::RemoteCache, Snoop::Modified),
        // Shared: another cache has a copy.
        0xA => (Level::LocalDram, Snoop::Hit),
        0xB => (Level::RemoteDram, Snoop::Hit),
        0xC => (Level::LocalDram, Snoop::NotReported),
        0xD => (Level::RemoteDram, Snoop::NotReported),
        0xE => (Level::Io, Snoop::NotReported),
        0xF => (Level::Uncached, Snoop::NotReported),
        other => unknown(other),
    }
}

const fn nehalem(code: u32) -> Served {
    match code {
        0x5 => (Level::L3, Snoop::Hit),
        0x6 | 0x7 => (Level::L3, Snoop::Modified),
        other => sandy_bridge(other),
    }
}

const fn skylake(code: u32) -> Served {
    match code {
        0x8 => (Level::L4OrPersistent, Snoop::NotReported),
        0x9 => (Level::RemotePersistent, Snoop::NotReported),
        0xB => (Level::RemoteDram, Snoop::NotReported),
        0xC => (Level::RemoteCache, Snoop::Forward),
        0xD => (Level::RemoteCache, Snoop::Modified),
        other => sandy_bridge(other),
    }
}

const fn gracemont(code: u32) -> Served {
    match code {
        0x5 => (Level::L3, Snoop::Hit),
        0x6 => (Level::L3, Snoop::Modified),
        0x8 => (Level::L3, Snoop::Forward),
        other => sandy_bridge(other),
    }
}

/// Returns the meaning of a code of five bits.
const fn crestmont(code: u32) -> Served {
    match code {
        0x7 => (Level::L3, Snoop::Forward),
        0x8 => (Level::L3, Snoop::Modified),
        0xA => (Level::LocalDram, Snoop::NotReported),
        0xB => (Level::RemoteDram, Snoop::NotReported),
        0xC => (Level::RemoteCache, Snoop::Forward),
        0xD => (Level::RemoteCache, Snoop::Modified),
        other => gracemont(other),
    }
}

/// Returns the meaning of a code of eight bits.
const fn lion_cove(code: u32) -> Served {
    match code {
        0x01 | 0x02 => (Level::L1, Snoop::None),
        0x03 => (Level::FillBuffer, Snoop::None),
        0x05 => (Level::L2, Snoop::None),
        0x06 => (Level::L2MissBuffer, Snoop::None),
        0x08 => (Level::L3, Snoop::None),
        0x0C => (Level::L3, Snoop::Forward),
        0x0D => (Level::L3, Snoop::Modified),
        0x0F => (Level::OtherCache, Snoop::Modified),
        0x10 => (Level::MemorySideCache, Snoop::None),
        0x11 => (Level::LocalDram, Snoop::None),
        other => unknown(other),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a code has at most eight bits")]
const fn unknown(code: u32) -> Served {
    (Level::Unknown(code as u8), Snoop::NotReported)
}

/// The source of an access that IBS recorded: parts of `IBS_OP_DATA3` and `IBS_OP_DATA2`, as [`AccessEncoding::Ibs`]
/// says.
struct Ibs {
    word: u32,
    encoding: AccessEncoding,
}

impl Ibs {
    const L1_TLB_MISS: u32 = 1 << 2;
    const L2_TLB_MISS: u32 = 1 << 3;
    const MISS: u32 = 1 << 7;
    const UNCACHEABLE: u32 = 1 << 14;
    const LOCKED: u32 = 1 << 15;
    /// No buffer for the miss was allocated, because another access had one for the line.
    const NO_BUFFER: u32 = 1 << 16;
    const LINEAR_VALID: u32 = 1 << 17;
    const PHYSICAL_VALID: u32 = 1 << 18;
    const L2_MISS: u32 = 1 << 20;
    const PREFETCH: u32 = 1 << 21;
    const REMOTE: u32 = 1 << 27;
    const NOT_MODIFIED: u32 = 1 << 28;
    const HAS_SOURCE: u32 = 1 << 31;

    const fn has(&self, bit: u32) -> bool {
        self.word & bit != 0
    }

    const fn is_zen4(&self) -> bool {
        matches!(self.encoding, AccessEncoding::IbsZen4)
    }

    /// Returns the code of the source: five bits from Zen 4 on, before it three.
    const fn code(&self) -> u32 {
        self.word >> 22 & if self.is_zen4() { 0x1F } else { 7 }
    }

    /// Returns what served the access, in the order of perf. An access that is not cached has no other valid field, and
    /// a store no code.
    const fn served(&self) -> Served {
        const IO: u32 = 7;
        let has_code = self.has(Self::HAS_SOURCE);
        if self.has(Self::UNCACHEABLE) && !(has_code && self.code() == IO) {
            return (Level::Uncached, Snoop::NotReported);
        }
        if !self.has(Self::UNCACHEABLE) && !self.has(Self::MISS) {
            return (Level::L1, Snoop::NotReported);
        }
        // Erratum 1293: the bit of the second-level cache and the code are wrong.
        let is_wrong =
            matches!(self.encoding, AccessEncoding::IbsZen3) && (self.has(Self::PREFETCH) || self.has(Self::NO_BUFFER));
        if !self.has(Self::UNCACHEABLE) && !self.has(Self::L2_MISS) && !is_wrong {
            return (Level::L2, Snoop::NotReported);
        }
        // The code 0 means that nothing is known.
        if has_code && !is_wrong && self.code() != 0 {
            return self.by_code();
        }
        let level = if self.has(Self::NO_BUFFER) {
            Level::FillBuffer
        } else if is_wrong || has_code {
            Level::NotReported
        } else {
            Level::BeyondL2
        };
        (level, Snoop::NotReported)
    }

    const fn by_code(&self) -> Served {
        let level = match (self.is_zen4(), self.code(), self.has(Self::REMOTE)) {
            (true, 1, _) | (false, 2, _) => Level::L3,
            (true, 2, _) => Level::OtherCache,
            (true, 5, _) | (false, 4, _) => Level::RemoteCache,
            (_, 3, false) => Level::LocalDram,
            (_, 3, true) => Level::RemoteDram,
            (true, 6, false) => Level::LocalPersistent,
            (true, 6, true) => Level::RemotePersistent,
            (true, 8, false) => Level::LocalCxl,
            (true, 8, true) => Level::RemoteCxl,
            (_, 7, _) => Level::Io,
            (_, code, _) => return unknown(code),
        };
        let is_cache = matches!(level, Level::L3 | Level::OtherCache | Level::RemoteCache);
        let snoop = match (is_cache && reports_modified(self.encoding), self.has(Self::NOT_MODIFIED)) {
            (false, _) => Snoop::NotReported,
            (true, false) => Snoop::Modified,
            (true, true) => Snoop::Hit,
        };
        (level, snoop)
    }

    /// Returns how the address was translated. From Zen 5 on, its bits need a physical address.
    const fn translation(&self) -> Translation {
        let is_valid = self.has(Self::LINEAR_VALID) && (!self.is_zen4() || self.has(Self::PHYSICAL_VALID));
        translated_by(is_valid, self.has(Self::L1_TLB_MISS), self.has(Self::L2_TLB_MISS))
    }
}

/// Returns how an address was translated, from the misses of the TLBs of IBS.
const fn translated_by(is_valid: bool, l1_miss: bool, l2_miss: bool) -> Translation {
    match (is_valid, l1_miss, l2_miss) {
        (false, ..) => Translation::NotReported,
        (true, false, _) => Translation::L1Hit,
        (true, true, false) => Translation::L2Hit,
        (true, true, true) => Translation::Miss,
    }
}

/// The source of a fetch that IBS recorded: bits 63:48 of `IBS_FETCH_CTL`.
///
/// # References
/// PPR, "IBS Fetch Control"; Linux, tools/perf/util/amd-sample-raw.c (`pr_ibs_fetch_ctl`).
struct Fetch {
    word: u32,
    encoding: AccessEncoding,
}

impl Fetch {
    const COMPLETE: u32 = 1 << 2;
    const CACHE_MISS: u32 = 1 << 3;
    const PHYSICAL_VALID: u32 = 1 << 4;
    const L1_TLB_MISS: u32 = 1 << 7;
    const L2_TLB_MISS: u32 = 1 << 8;
    const L2_MISS: u32 = 1 << 10;
    const OP_CACHE_MISS: u32 = 1 << 12;
    const L3_MISS: u32 = 1 << 13;

    const fn has(&self, bit: u32) -> bool {
        self.word & bit != 0
    }

    const fn is_zen4(&self) -> bool {
        matches!(self.encoding, AccessEncoding::IbsFetchZen4)
    }

    /// Returns what delivered it. The bit of the second-level cache is valid of a fetch that was.
    const fn level(&self) -> Level {
        let has_l2_miss = !matches!(self.encoding, AccessEncoding::IbsFetch);
        // Erratum 1238.
        let tells_cache_miss = !matches!(self.encoding, AccessEncoding::IbsFetchZen3);
        if !self.has(Self::COMPLETE) {
            return Level::Abandoned;
        }
        if !self.is_valid() {
            return Level::NotReported;
        }
        if self.is_zen4() && !self.has(Self::OP_CACHE_MISS) {
            return Level::OpCache;
        }
        if has_l2_miss && self.has(Self::L2_MISS) {
            return match (self.is_zen4(), self.has(Self::L3_MISS)) {
                (false, _) => Level::BeyondL2,
                (true, false) => Level::L3,
                (true, true) => Level::BeyondL3,
            };
        }
        match (tells_cache_miss, self.has(Self::CACHE_MISS)) {
            (false, _) => Level::NotReported,
            (true, false) => Level::L1,
            (true, true) if has_l2_miss => Level::L2,
            (true, true) => Level::BeyondL1,
        }
    }

    /// From Zen 5 on the bits need a physical address.
    const fn is_valid(&self) -> bool {
        !self.is_zen4() || self.has(Self::PHYSICAL_VALID)
    }

    /// Returns how the address was translated.
    const fn translation(&self) -> Translation {
        translated_by(self.is_valid(), self.has(Self::L1_TLB_MISS), self.has(Self::L2_TLB_MISS))
    }
}
