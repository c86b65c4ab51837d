//! Profile sources: the HAL's numbers and names for events.

use core::fmt;

use bitfield_struct::bitfield;

/// A KPROFILE_SOURCE. WDM.H defines the numbers below 0x18; the profile interface defines those from 0x19 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u32);

impl Source {
    /// ProfileTime: every interface has it, and a timer serves it.
    pub const TIME: Self = Self(0);

    /// Returns the raw event that the number encodes, or `None` if it encodes none.
    #[must_use]
    pub const fn raw(self) -> Option<RawEvent> {
        RawEvent::of_number(self.0)
    }
}

/// An event that is in no table: the number of its source encodes the selection in bit fields. No field selects modes,
/// interrupts or other registers.
///
/// The number has one of two layouts. The usual one has room for 12 bits of event number. The other one is that of
/// events with a unit mask above 0xFF or with `eq`, which only processors with 8 bits of event number have; there is
/// room for 4 bits of `cmask` beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of the select register")]
pub struct RawEvent {
    event: u16,
    umask: u16,
    cmask: u8,
    inv: bool,
    edge: bool,
    any: bool,
    eq: bool,
}

/// An event as a request has it: every field of a raw event, and the selector of its extra register.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct FullEvent {
    /// Event number.
    #[bits(12)]
    pub event: u16,
    /// Unit mask; bits 15:8 are UMASK2.
    pub umask: u16,
    /// CMASK.
    pub cmask: u8,
    /// INV.
    pub inv: bool,
    /// Edge detect.
    pub edge: bool,
    /// AnyThread.
    pub any: bool,
    /// EQ.
    pub eq: bool,
    /// Number of a [`Selector`](crate::extra::Selector), or 0.
    #[bits(3)]
    pub selector: u8,
    /// Zero.
    #[bits(20)]
    reserved: u32,
    /// One: zero is no event.
    pub is_event: bool,
}

impl FullEvent {
    /// Returns the event without its extra register.
    #[must_use]
    pub const fn raw(self) -> RawEvent {
        RawEvent {
            event: self.event(),
            umask: self.umask(),
            cmask: self.cmask(),
            inv: self.inv(),
            edge: self.edge(),
            any: self.any(),
            eq: self.eq(),
        }
    }

    /// Returns whether reserved bits are zero, and the bit that marks an event is set.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.reserved() == 0 && self.is_event()
    }
}

/// The usual layout.
#[bitfield(u32)]
struct UsualNumber {
    #[bits(12)]
    event: u16,
    umask: u8,
    cmask: u8,
    inv: bool,
    edge: bool,
    /// Zero: the usual layout.
    is_wide: bool,
    /// One; no number in a table has this bit.
    is_raw: bool,
}

/// The layout of events with a wide unit mask or with `eq`.
#[bitfield(u32)]
struct WideNumber {
    event: u8,
    umask: u16,
    inv: bool,
    edge: bool,
    eq: bool,
    #[bits(3)]
    cmask_low: u8,
    /// One: this layout. No number in a table has this bit.
    is_wide: bool,
    cmask_high: bool,
}

impl RawEvent {
    /// Event 0 without a unit mask.
    pub const NONE: Self = Self { event: 0, umask: 0, cmask: 0, inv: false, edge: false, any: false, eq: false };

    /// The largest event number.
    pub const MAX_EVENT: u16 = 0xFFF;

    /// The largest event number beside a unit mask above 0xFF or `eq`.
    pub const MAX_WIDE_EVENT: u16 = 0xFF;

    /// The largest `cmask` beside a unit mask above 0xFF or `eq`.
    pub const MAX_WIDE_CMASK: u8 = 0xF;

    /// Returns the event that a number encodes. ALL_SOURCES and BRANCHES of the protocol, which have every bit of the
    /// wide layout set, encode none.
    const fn of_number(number: u32) -> Option<Self> {
        const NOT_CMASK_HIGH: u32 = u32::MAX >> 1;
        let (usual, wide) = (UsualNumber::from_bits(number), WideNumber::from_bits(number));
        if wide.is_wide() {
            let cmask = wide.cmask_low() | (wide.cmask_high() as u8) << 3;
            let [inv, edge, eq] = [wide.inv(), wide.edge(), wide.eq()];
            let event = Self { event: wide.event() as u16, umask: wide.umask(), cmask, inv, edge, any: false, eq };
            return if number & NOT_CMASK_HIGH == NOT_CMASK_HIGH || !event.is_wide() { None } else { Some(event) };
        }
        if !usual.is_raw() {
            return None;
        }
        let [inv, edge] = [usual.inv(), usual.edge()];
        let (event, umask, cmask) = (usual.event(), usual.umask() as u16, usual.cmask());
        Some(Self { event, umask, cmask, inv, edge, any: false, eq: false })
    }

    /// Returns whether the event needs the wide layout: registers of version 6 (SDM Vol. 3B, "Architectural Performance
    /// Monitoring Version 6").
    const fn is_wide(self) -> bool {
        self.umask > 0xFF || self.eq
    }

    /// Returns whether the number of a source can encode the event.
    #[must_use]
    pub const fn is_encodable(self) -> bool {
        match Self::of_number(self.source().0) {
            Some(encoded) => {
                let selects = encoded.select() == self.select();
                selects && self.event <= Self::MAX_EVENT
            }
            None => false,
        }
    }

    /// Event number: 8 bits on Intel processors, 12 on AMD processors.
    #[must_use]
    pub const fn event(self) -> u16 {
        self.event
    }

    /// Unit mask; bits 15:8 are UMASK2.
    #[must_use]
    pub const fn umask(self) -> u16 {
        self.umask
    }

    /// CMASK: if not 0, count clocks with at least this many events.
    #[must_use]
    pub const fn cmask(self) -> u8 {
        self.cmask
    }

    /// INV: count clocks with fewer than `cmask` events instead.
    #[must_use]
    pub const fn inv(self) -> bool {
        self.inv
    }

    /// Edge detect: count how often the condition becomes true.
    #[must_use]
    pub const fn edge(self) -> bool {
        self.edge
    }

    /// AnyThread: count the events of all threads of the core.
    #[must_use]
    pub const fn any(self) -> bool {
        self.any
    }

    /// EQ: count clocks with exactly `cmask` events instead.
    #[must_use]
    pub const fn equality(self) -> bool {
        self.eq
    }

    /// Returns the event with another number.
    #[must_use]
    pub const fn with_event(self, event: u16) -> Self {
        Self { event, ..self }
    }

    /// Returns the event with another unit mask.
    #[must_use]
    pub const fn with_umask(self, umask: u16) -> Self {
        Self { umask, ..self }
    }

    /// Returns the event with another CMASK.
    #[must_use]
    pub const fn with_cmask(self, cmask: u8) -> Self {
        Self { cmask, ..self }
    }

    /// Returns the event with INV set or clear.
    #[must_use]
    pub const fn with_inv(self, inv: bool) -> Self {
        Self { inv, ..self }
    }

    /// Returns the event with edge detect set or clear.
    #[must_use]
    pub const fn with_edge(self, edge: bool) -> Self {
        Self { edge, ..self }
    }

    /// Returns the event with AnyThread set or clear.
    #[must_use]
    pub const fn with_any(self, any: bool) -> Self {
        Self { any, ..self }
    }

    /// Returns the event with EQ set or clear.
    #[must_use]
    pub const fn with_equality(self, eq: bool) -> Self {
        Self { eq, ..self }
    }

    /// Returns the event select register for both modes, as in the tables. Every processor that has one of these fields
    /// has it in the same bits (SDM Vol. 3B, Figure 21-1; APM Vol. 2, 13.2.1); UMASK2 and EQ are Intel's, and bits
    /// 35:32 of the event number AMD's.
    #[must_use]
    pub const fn select(self) -> u64 {
        const BOTH_MODES: u64 = 3 << 16;
        let (event, umask) = (self.event as u64, self.umask as u64);
        BOTH_MODES
            | event & 0xFF
            | (umask & 0xFF) << 8
            | (self.edge as u64) << 18
            | (self.any as u64) << 21
            | (self.inv as u64) << 23
            | (self.cmask as u64) << 24
            | event >> 8 << 32
            | (self.eq as u64) << 36
            | umask >> 8 << 40
    }

    /// Returns the event with these fields, without an extra register.
    #[must_use]
    pub const fn full(self) -> FullEvent {
        FullEvent::new()
            .with_event(self.event & Self::MAX_EVENT)
            .with_umask(self.umask)
            .with_cmask(self.cmask)
            .with_inv(self.inv)
            .with_edge(self.edge)
            .with_any(self.any)
            .with_eq(self.eq)
            .with_is_event(true)
    }

    /// Returns the source that encodes this event, if it is [encodable](Self::is_encodable); otherwise the source that
    /// stands for it in replies, without `any` and the upper bits of a `cmask` beside a wide unit mask.
    #[must_use]
    pub const fn source(self) -> Source {
        let Self { event, umask, cmask, inv, edge, eq, any: _ } = self;
        if !self.is_wide() {
            let number = UsualNumber::new()
                .with_event(event & Self::MAX_EVENT)
                .with_umask((umask & 0xFF) as u8)
                .with_cmask(cmask)
                .with_inv(inv)
                .with_edge(edge)
                .with_is_raw(true);
            return Source(number.into_bits());
        }
        let number = WideNumber::new()
            .with_event((event & 0xFF) as u8)
            .with_umask(umask)
            .with_inv(inv)
            .with_edge(edge)
            .with_eq(eq)
            .with_cmask_low(cmask & 7)
            .with_cmask_high(cmask >> 3 & 1 == 1)
            .with_is_wide(true);
        Source(number.into_bits())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// An entry of a profile interface's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSource {
    /// Number of the source.
    pub source: Source,
    /// Name in the HAL: the name of the enumerator without `Profile`.
    pub name: &'static str,
    /// Event select register in the table: event, unit mask, USR and OS. Zero if no counter counts the source.
    pub select: u64,
    /// Emon only: the bit of CPUID leaf 0xA EBX that is clear if the event is available.
    pub ebx_bit: Option<u8>,
}

impl ProfileSource {
    /// Returns an entry without a name for a raw event.
    #[must_use]
    pub const fn of_raw(event: RawEvent) -> Self {
        Self { source: event.source(), name: "", select: event.select(), ebx_bit: None }
    }
}

/// A table of sources: entries in ascending order of their numbers, and the selects of a processor if they differ from
/// those of the entries.
///
/// The families of AMD differ in their selects only. With a table of selects for each, all share the names.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    entries: &'static [ProfileSource],
    /// One for each entry, or empty.
    selects: &'static [PackedSelect],
}

impl Sources {
    /// Creates a table.
    #[must_use]
    pub const fn new(entries: &'static [ProfileSource]) -> Self {
        Self { entries, selects: &[] }
    }

    /// Creates a table with other selects, one for each entry.
    pub(crate) const fn with_selects(entries: &'static [ProfileSource], selects: &'static [PackedSelect]) -> Self {
        assert!(entries.len() == selects.len());
        Self { entries, selects }
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(self) -> usize {
        self.entries.len()
    }

    /// Returns whether the table has no entry.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an entry.
    #[must_use]
    pub fn get(self, index: usize) -> Option<ProfileSource> {
        let entry = *self.entries.get(index)?;
        Some(self.selects.get(index).map_or(entry, |select| ProfileSource { select: select.unpacked(), ..entry }))
    }

    /// Iterates over the entries.
    pub fn iter(self) -> impl Iterator<Item = ProfileSource> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// Returns the entry of a source, and its index.
    #[must_use]
    pub fn find(self, source: Source) -> Option<(u16, ProfileSource)> {
        let index = self.entries.iter().position(|entry| entry.source == source)?;
        Some((u16::try_from(index).ok()?, self.get(index)?))
    }
}

/// An event select register of a table in four bytes: bits 35:32 of the register are in bits 31:28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedSelect(u32);

impl PackedSelect {
    /// The source is absent.
    pub(crate) const ABSENT: Self = Self(0);

    /// Packs a select, which must have no other bits above bit 27.
    pub(crate) const fn new(select: u64) -> Self {
        let packed = Self((select & 0x0FFF_FFFF) as u32 | ((select >> 32 & 0xF) as u32) << 28);
        assert!(packed.unpacked() == select);
        packed
    }

    /// Returns the select.
    pub(crate) const fn unpacked(self) -> u64 {
        (self.0 & 0x0FFF_FFFF) as u64 | (self.0 as u64 >> 28) << 32
    }
}

/// Returns an entry of the Amd64 table (HAL Amd64 interface, section 2.2: Value, Symbol, Select).
pub(crate) const fn amd64(source: u32, name: &'static str, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit: None }
}

/// Returns an entry of the Emon table (HAL Emon interface, section 2.2: Value, Name, EBX Bit, Select).
pub(crate) const fn emon(source: u32, name: &'static str, ebx_bit: Option<u8>, select: u64) -> ProfileSource {
    ProfileSource { source: Source(source), name, select, ebx_bit }
}
