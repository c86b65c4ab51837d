//! Requests that start sessions: counting, sampling, precise records, branches, turns, groups and threads.

use bench_protocol::Random;
use protocol::{
    BRANCH_BUFFER, BRANCHES, DEFAULT_BUDGET, Event, EventRequest, MAX_BATCH, MAX_BUDGET, ProcessorSet, StartHeader,
    event_flags, flags, modes,
};
use zerocopy::IntoBytes;

use crate::draw::{number, pick};
use crate::machine::{Machine, SourceLimits};
use crate::storm::Restrictions;

/// Sizes of rings: mostly small ones, which fill up.
const RINGS: [u32; 6] = [64, 64, 64, 128, 1 << 10, 1 << 14];

/// Most events of a session that does not take turns. Few processors have more counters.
pub const FEW: u32 = 8;

/// Most events of a session that takes turns.
const MANY: u32 = 20;

/// Least interval, and highest frequency, where events occur as time passes: a simulated processor must keep up.
const SLOW_INTERVAL: u32 = 10_000_000;
const SLOW_FREQUENCY: u32 = 100;

/// The bit of [`Event::source`] that marks an event in no table.
const IS_EVENT: u64 = 1 << 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Sample,
    Frequency,
    Precise,
    Branches,
    Turns,
    Groups,
    Threads,
}

/// The kinds of sessions, by their shares.
const KINDS: [Kind; 16] = [
    Kind::Count,
    Kind::Count,
    Kind::Count,
    Kind::Count,
    Kind::Count,
    Kind::Sample,
    Kind::Sample,
    Kind::Sample,
    Kind::Sample,
    Kind::Sample,
    Kind::Frequency,
    Kind::Precise,
    Kind::Branches,
    Kind::Turns,
    Kind::Groups,
    Kind::Threads,
];

/// Returns the input of a valid request to start a session, as far as the machine offers what it asks for. `ordinal`
/// differs between all sessions of all threads.
pub fn start(random: &mut Random, machine: &Machine, restrictions: Restrictions, ordinal: u32) -> Vec<u8> {
    let mut kind = pick(random, &KINDS).unwrap_or(Kind::Count);
    if restrictions.exact && matches!(kind, Kind::Frequency | Kind::Precise | Kind::Branches) {
        kind = Kind::Sample;
    }
    let mut header = StartHeader { processors: processors(random, machine), ..StartHeader::EMPTY };
    for (flag, share) in [(flags::FORCE, 15), (flags::DETACHED, 4)] {
        if random.percent(share) {
            header.flags |= flag;
        }
    }
    if matches!(kind, Kind::Sample | Kind::Frequency | Kind::Precise | Kind::Branches) {
        header.ring = pick(random, &RINGS).unwrap_or(64);
        // In real time, four processors that serve interrupts for 90 % of it would leave nothing of two host cores.
        let most = if restrictions.slow { DEFAULT_BUDGET } else { MAX_BUDGET };
        header.budget = if random.percent(70) { most } else { number(random, most) };
    }
    let most = match kind {
        Kind::Branches => 0,
        Kind::Turns => MANY,
        _ => FEW - 1,
    };
    let count = if random.percent(60) { 1 } else { 1 + number(random, most) };
    let mut events: Vec<EventRequest> = (0..count)
        .map(|nth| event(random, machine, kind, restrictions.slow, ordinal.wrapping_mul(FEW).wrapping_add(nth)))
        .collect();
    match kind {
        Kind::Turns => header.flags |= flags::MULTIPLEX,
        Kind::Threads => (header.flags, header.processors) = (flags::THREADS, ProcessorSet::EMPTY),
        Kind::Precise if random.percent(50) => header.batch = 1 + number(random, MAX_BATCH - 1),
        Kind::Groups => {
            header.flags |= flags::MULTIPLEX;
            for event in &mut events {
                event.group = number(random, 2);
            }
        }
        _ => {}
    }
    [header.as_bytes(), events.as_bytes()].concat()
}

/// Returns all processors, or some of them.
fn processors(random: &mut Random, machine: &Machine) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    if random.percent(30) {
        for processor in 0..machine.active {
            if random.percent(50) {
                set.insert(processor);
            }
        }
    }
    set
}

/// Returns an event of a session. `interval` is a number that no other event has.
fn event(random: &mut Random, machine: &Machine, kind: Kind, slow: bool, interval: u32) -> EventRequest {
    let limits = source(random, machine, kind);
    let mut event = EventRequest { event: Event::of(limits.source), modes: modes::BOTH, ..EventRequest::EMPTY };
    if random.percent(30) && limits.source != 0 {
        event.modes = 1 + number(random, 1);
    }
    if !machine.core_types.is_empty() && random.percent(70) {
        event.event.core_type = pick(random, &machine.core_types).unwrap_or(0);
    }
    if random.percent(5) {
        event.event.counters = 1 << number(random, 8);
    }
    match kind {
        Kind::Branches => {
            event = EventRequest { event: Event::of(BRANCHES), modes: event.modes, ..EventRequest::EMPTY };
            event.interval = if slow { *BRANCH_BUFFER.end() } else { BRANCH_BUFFER.start() << number(random, 4) };
        }
        Kind::Frequency => event.frequency = 1 + number(random, if slow { SLOW_FREQUENCY } else { 20_000 }),
        Kind::Sample | Kind::Precise => {
            let minimum = if slow { SLOW_INTERVAL.max(limits.minimum) } else { limits.minimum };
            event.interval = minimum.saturating_add(interval).min(limits.maximum);
            if kind == Kind::Precise {
                event.modes |= modes::PRECISE;
            }
        }
        Kind::Count | Kind::Turns | Kind::Groups | Kind::Threads => {}
    }
    if matches!(kind, Kind::Turns | Kind::Groups) && random.percent(10) {
        event.flags = event_flags::PINNED;
    }
    if matches!(kind, Kind::Sample | Kind::Precise) && random.percent(30) {
        event.flags = event_flags::COUNTED;
    }
    if matches!(kind, Kind::Count | Kind::Sample | Kind::Turns) && random.percent(15) {
        raw(random, &mut event);
    }
    if kind == Kind::Precise && random.percent(30) {
        access(random, &mut event);
    }
    event
}

/// Returns a source that the kind of session can use, if there is one.
fn source(random: &mut Random, machine: &Machine, kind: Kind) -> SourceLimits {
    let usable: Vec<SourceLimits> = match kind {
        Kind::Precise => machine.sources.iter().filter(|limits| limits.precise != 0).copied().collect(),
        Kind::Sample => machine.sources.iter().filter(|limits| limits.source != 0).copied().collect(),
        _ => Vec::new(),
    };
    let by_counter = matches!(kind, Kind::Precise | Kind::Sample);
    let sources = if by_counter { &usable } else { &machine.sources };
    let none = SourceLimits { source: 2, minimum: 4_096, maximum: u32::MAX, precise: 0 };
    pick(random, sources).unwrap_or(none)
}

/// Makes a precise event one of the loads or stores that Intel's processors record with their accesses of memory. Each
/// generation has one of each.
fn access(random: &mut Random, event: &mut EventRequest) {
    /// Event, unit mask, and the number of the extra register.
    const ACCESSES: [(u64, u64, u64); 6] =
        [(0x0B, 0x10, 2), (0xCD, 0x01, 2), (0xCD, 0x02, 0), (0xD0, 0x05, 2), (0xD0, 0x06, 0), (0xD0, 0x82, 0)];
    if let Some((number, umask, selector)) = pick(random, &ACCESSES) {
        event.event.source = IS_EVENT | number | umask << 12 | selector << 40;
        event.event.extra = if selector == 0 { 0 } else { 3 + random.up_to(100) };
    }
}

/// Makes an event one that is in no table, sometimes one with an extra register.
fn raw(random: &mut Random, event: &mut EventRequest) {
    event.event.source = IS_EVENT | random.up_to(0xFF) | random.up_to(0xFF) << 12;
    if random.percent(30) {
        let selector = random.up_to(4);
        event.event.source |= selector << 40;
        event.event.extra = if selector == 0 { 0 } else { random.up_to(0xFFFF) };
    }
}
