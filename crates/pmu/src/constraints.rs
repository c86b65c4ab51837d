//! Event constraints: the counters on which a processor counts and records an event.
//!
//! On most processors some events count on some counters only. On any other counter they count nothing, without an
//! error. Each generation has a table here that lists the known events. An event that no table lists is taken for
//! unconstrained, and [`Listing::Unlisted`] says so.
//!
//! `cargo xtask constraints` generates `tables.rs`; `crates/pmu/facts/README.md` describes the facts and their sources.

#[rustfmt::skip]
pub mod tables;

use crate::counter_set::CounterSet;

/// Counters that count an event, and those that record it precisely. Bit n is general counter n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    counters: u16,
    precise: u16,
}

impl Class {
    /// Creates a class.
    pub(crate) const fn new(counters: u16, precise: u16) -> Self {
        Self { counters, precise }
    }

    /// Returns the general counters that count the event, as far as they exist. Empty if only a fixed counter counts
    /// it.
    #[must_use]
    pub const fn counters(self) -> CounterSet {
        CounterSet::from_bits(self.counters as u64)
    }

    /// Returns the general counters that record the event precisely (PEBS), as far as they exist.
    #[must_use]
    pub const fn precise(self) -> CounterSet {
        CounterSet::from_bits(self.precise as u64)
    }
}

/// Whether the tables know an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The counters of the event are known: a table lists them, or all counters of the interface are alike.
    Known,
    /// No table lists the event; the driver may place it on a counter that does not count it.
    Unlisted,
}

/// The constraints of a generation.
///
/// `groups` is a sequence of: event number bits 7:0; event number bits 11:8 in the high half and an index of `classes`
/// in the low half; the number of unit masks; these unit masks. With zero unit masks the group stands for every unit
/// mask that no earlier group has. Groups are in ascending order of their event numbers.
///
/// `exceptions` has the encodings that no group can tell:
///
/// - Encodings that other counters count if CMASK is not 0. Of all facts that is one: C0/01 of Skylake counts on
///   counter 1 only (INST_RETIRED.PREC_DIST), and with CMASK on the others (INST_RETIRED.TOTAL_CYCLES_PS). CMASK of
///   other events, and INV, edge and AnyThread of all, change no counters in Intel's event files; Linux's constraints
///   compare event and unit mask alone (`INTEL_UEVENT_CONSTRAINT`).
/// - Unit masks of more than 8 bits: bits 15:8 are UMASK2.
#[derive(Debug)]
pub struct Table {
    /// The classes of its events.
    classes: &'static [Class],
    groups: &'static [u8],
    /// Where in `groups` the events of each [part] begin.
    parts: [u16; PARTS],
    exceptions: &'static [Exception],
}

/// Number of parts of a table: 16 event numbers each, and the last one all others too.
const PARTS: usize = 16;

/// Returns the part to which an event number belongs.
const fn part(number: u16) -> usize {
    let part = (number >> 4) as usize;
    if part < PARTS { part } else { PARTS - 1 }
}

/// Returns where the events of each part begin in `groups`.
const fn parts_of(groups: &[u8]) -> [u16; PARTS] {
    let mut parts = [0; PARTS];
    let (mut left, mut number): (&mut [u16], u16) = (&mut parts, 0);
    while let [first, others @ ..] = left {
        *first = begin_of(groups, number);
        number += 16;
        left = others;
    }
    parts
}

/// Returns where the groups of this event number and of higher ones begin.
const fn begin_of(groups: &[u8], number: u16) -> u16 {
    let (mut begin, mut rest) = (0, groups);
    while let [low, high_and_class, length, tail @ ..] = rest {
        if number_of(*low, *high_and_class) >= number {
            return begin;
        }
        begin += 3 + *length as u16;
        rest = tail.split_at(*length as usize).1;
    }
    begin
}

/// Returns the event number of a group.
const fn number_of(low: u8, high_and_class: u8) -> u16 {
    (high_and_class as u16 >> 4) << 8 | low as u16
}

/// An encoding that no group of a [`Table`] can tell.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    event: u16,
    umask: u16,
    /// It is one only if CMASK is not 0.
    needs_cmask: bool,
    class: Class,
}

impl Exception {
    /// Creates an exception for a unit mask of more than 8 bits.
    pub(crate) const fn wide(event: u16, umask: u16, class: Class) -> Self {
        Self { event, umask, needs_cmask: false, class }
    }

    /// Creates an exception for a CMASK that is not 0.
    pub(crate) const fn with_cmask(event: u16, umask: u16, class: Class) -> Self {
        Self { event, umask, needs_cmask: true, class }
    }
}

impl Table {
    /// A table without events.
    pub const EMPTY: Self = Self::new(&[], &[]);

    /// Creates a table.
    pub(crate) const fn new(classes: &'static [Class], groups: &'static [u8]) -> Self {
        Self { classes, groups, parts: parts_of(groups), exceptions: &[] }
    }

    /// Returns the table with exceptions.
    pub(crate) const fn except(self, exceptions: &'static [Exception]) -> Self {
        Self { exceptions, ..self }
    }

    /// Returns the class of an event with CMASK or without it, or `None` if the table does not list the event. Bits
    /// 15:8 of the unit mask are UMASK2; without a row of its own, such a unit mask has the class of its lower bits.
    #[must_use]
    pub fn find(&self, event: u16, umask: u16, has_cmask: bool) -> Option<Class> {
        let is_it = |one: &&Exception| (one.event, one.umask) == (event, umask) && (has_cmask || !one.needs_cmask);
        let exception = self.exceptions.iter().find(is_it).map(|exception| exception.class);
        exception.or_else(|| self.grouped(event, (umask & 0xFF) as u8))
    }

    /// Returns the class of an event without CMASK if the table lists the whole unit mask, with UMASK2.
    #[must_use]
    pub fn find_whole(&self, event: u16, umask: u16) -> Option<Class> {
        let is_listed = umask <= 0xFF || self.exceptions.iter().any(|one| (one.event, one.umask) == (event, umask));
        self.find(event, umask, false).filter(|_| is_listed)
    }

    /// Returns the class of an event by the groups.
    fn grouped(&self, event: u16, umask: u8) -> Option<Class> {
        let begin = self.parts.get(part(event)).copied().unwrap_or_default();
        let mut rest = self.groups.get(usize::from(begin)..)?;
        while let [low, high_and_class, length, tail @ ..] = rest {
            let (umasks, next) = tail.split_at_checked(usize::from(*length))?;
            let number = number_of(*low, *high_and_class);
            if number > event {
                return None;
            }
            if number == event && (umasks.is_empty() || umasks.contains(&umask)) {
                return self.classes.get(usize::from(high_and_class & 0xF)).copied();
            }
            rest = next;
        }
        None
    }

    /// Returns the bytes that the table takes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        size_of_val(self.classes) + size_of_val(self.groups) + size_of_val(&self.parts) + size_of_val(self.exceptions)
    }
}
