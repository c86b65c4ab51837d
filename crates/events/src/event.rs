//! An event: its encoding and its constraints.

/// The fields of an event select register that select an event (SDM Vol. 3B, Figure 21-1; APM Vol. 2, 13.2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "the bits of the register")]
pub struct Encoding {
    /// Event number: 8 bits on Intel processors, 12 on AMD processors.
    pub event: u16,
    /// Unit mask; bits 15:8 are UMASK2 of version 6.
    pub umask: u16,
    /// CMASK: if not 0, clocks with at least this many occurrences are counted.
    pub cmask: u8,
    /// INV: clocks with fewer than `cmask` occurrences are counted instead.
    pub inv: bool,
    /// Edge detect: the beginnings of the condition are counted.
    pub edge: bool,
    /// AnyThread: both threads of the core are counted.
    pub any: bool,
    /// EQ of version 6: clocks with exactly `cmask` occurrences are counted.
    pub eq: bool,
}

impl Encoding {
    /// Returns the value of the event select register without mode, interrupt and enable bits.
    #[must_use]
    pub const fn select(self) -> u64 {
        let (event, umask) = (self.event as u64, self.umask as u64);
        event & 0xFF
            | (umask & 0xFF) << 8
            | (self.edge as u64) << 18
            | (self.any as u64) << 21
            | (self.inv as u64) << 23
            | (self.cmask as u64) << 24
            | event >> 8 << 32
            | (self.eq as u64) << 36
            | umask >> 8 << 40
    }
}

/// A set of counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counters {
    /// Bit n: general counter n.
    pub general_mask: u16,
    /// Bit n: fixed counter n.
    pub fixed_mask: u16,
}

impl Counters {
    /// No counter.
    pub const NONE: Self = Self { general_mask: 0, fixed_mask: 0 };
    /// Every general counter that the processor has: the facts name no others.
    pub const ANY: Self = Self { general_mask: u16::MAX, fixed_mask: 0 };

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.general_mask | self.fixed_mask == 0
    }

    /// Returns the counters of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { general_mask: self.general_mask & other.general_mask, fixed_mask: self.fixed_mask & other.fixed_mask }
    }

    /// Iterates over the general counters.
    pub fn general(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |number| self.general_mask >> number & 1 == 1)
    }

    /// Iterates over the fixed counters.
    pub fn fixed(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |number| self.fixed_mask >> number & 1 == 1)
    }
}

/// Whether the processor can record the event itself (Intel's PEBS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Precision {
    /// It cannot.
    #[default]
    Imprecise = 0,
    /// It can.
    Precise = 1,
    /// It can, and the event counts in no other way.
    OnlyPrecise = 2,
}

/// A register that an event needs, and the event that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register {
    /// Address of the model-specific register.
    pub msr: u16,
    /// Event number with this register.
    pub event: u16,
    /// Unit mask with this register.
    pub umask: u16,
}

impl Register {
    /// Returns the registers of lists in which makers have them, the first encoding first: the n-th event and unit mask
    /// are for the n-th register, and a list with one is for all. A list of encodings that is longer than that of
    /// registers begins with the encoding of MSR_OFFCORE_RSP_0.
    #[must_use]
    pub fn of_lists(msrs: &[u16], events: &[u16], umasks: &[u16]) -> Vec<Self> {
        const MSR_OFFCORE_RSP_0: u16 = 0x1A6;
        let is_longer = events.len().max(umasks.len()) > msrs.len();
        let pick = |list: &[u16], index| list.get(index).or(list.first()).copied().unwrap_or_default();
        let register = |(index, msr): (usize, &u16)| {
            let index = if is_longer { usize::from(msr.saturating_sub(MSR_OFFCORE_RSP_0)) } else { index };
            Self { msr: *msr, event: pick(events, index), umask: pick(umasks, index) }
        };
        msrs.iter().enumerate().map(register).collect()
    }
}

/// A second register that an event needs: the off-core response, the latency of loads, or the front end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventExtra {
    /// The registers that can serve, at least one. Each has its own encoding, so that two such events can run at once.
    pub registers: Vec<Register>,
    /// The value of the register.
    pub value: u64,
}

/// An event with its constraints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Name, as the maker writes it.
    pub name: String,
    /// Encoding; with an [`EventExtra`] that of its first register.
    pub encoding: Encoding,
    /// The counters that count it.
    pub counters: Counters,
    /// Whether the processor can record it.
    pub precision: Precision,
    /// The counters that record it; empty unless it is precise.
    pub precise_counters: Counters,
    /// The second register that it needs.
    pub extra: Option<EventExtra>,
    /// Whether no other event may have a general counter at the same time.
    ///
    /// Intel's files set TakenAlone for it (`perfmon/README.md`). They also set it for events with an extra register,
    /// of which only the register is exclusive: Linux counts them beside others, and Intel's own grouping for
    /// `perf stat` compares the value of the register instead ("TakenAlone" in tools/perf/util/metricgroup.c, series
    /// "Hardware-aware grouping", version 5, by Weilin Wang). For them this is false; the driver shares the register
    /// out.
    pub alone: bool,
    /// Whether the maker advises against it.
    pub deprecated: bool,
    /// The event of the same table that replaces a deprecated one.
    pub successor: Option<String>,
    /// Recommended number of events between two samples, or 0.
    pub period: u64,
}

impl Event {
    /// Creates an event that these counters count, and of which nothing else is known.
    #[must_use]
    pub const fn new(name: String, encoding: Encoding, counters: Counters) -> Self {
        Self {
            name,
            encoding,
            counters,
            precision: Precision::Imprecise,
            precise_counters: Counters::NONE,
            extra: None,
            alone: false,
            deprecated: false,
            successor: None,
            period: 0,
        }
    }

    /// Returns the event with its fixed counter and encoding as the processor numbers them: counter n is event 0, unit
    /// mask n + 1 (SDM Vol. 3B, Table 21-2; Linux, arch/x86/events/intel/core.c). Files of Nehalem, Westmere, Bonnell
    /// and Silvermont number the counters from 1, and some have no unit mask.
    #[must_use]
    pub fn with_fixed_counter(mut self) -> Self {
        if self.is_fixed() {
            let known = self.counters.fixed().next().map(u16::from);
            let umask = if self.encoding.umask == 0 { known.unwrap_or_default() } else { self.encoding.umask };
            if let 1..=16 = umask {
                self.encoding.event = 0;
                self.encoding.umask = umask;
                self.counters.fixed_mask = 1 << (umask - 1);
            }
        }
        self
    }

    /// Returns whether only fixed counters count it.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.counters.general_mask == 0 && self.counters.fixed_mask != 0
    }
}
