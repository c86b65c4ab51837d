//! Assignment of counters and ESCRs to events: exact, in bounded time, without allocation.
//!
//! An ESCR detects one event in one selection of modes; any number of counters of its column may use it. All counters
//! of a group and column are equivalent. So the only choice is the column of each ESCR setting. If two settings compete
//! for the ESCRs of a unit, there are two orders. That makes at most 2 to the power of the number of units, and for
//! each the counters are matched to the events.

use super::sources::{Event, Group, Unit};
use super::{Escr, SECOND_COLUMN, Thread, escr};
use crate::placement::{self, Wanted};
use crate::state::{CounterSet, CounterState, CpuCounters};

/// The counters of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All counters of the core, in both columns.
    Whole,
    /// The counters of one column; the other belongs to the other thread.
    Threads,
}

impl Layout {
    const fn columns(self) -> u8 {
        match self {
            Self::Whole => 2,
            Self::Threads => 1,
        }
    }

    /// Returns the counters of a column that can use units of a group. Counter 1 is excluded, because its enable flag
    /// has a quirk (Linux, `p4_event_bind_map`). With threads, the second counter is excluded in both columns, because
    /// a thread does not know its column.
    const fn counters(self, group: Group, column: u8) -> CounterSet {
        CounterSet::from_bits(match (self, group, column) {
            (Self::Whole, Group::Bpu, 0) | (Self::Threads, Group::Bpu, _) => 1,
            (Self::Whole, Group::Bpu, _) => 0b11 << 2,
            (Self::Whole, Group::Iq, 0) => 0b1_0011 << 12,
            (Self::Whole, Group::Iq, _) => 0b10_1100 << 12,
            (Self::Threads, Group::Iq, _) => 0b111 << 6,
        })
    }

    /// Returns the counters that can use a unit.
    pub const fn counters_of(self, unit: Unit) -> CounterSet {
        match self {
            Self::Whole => self.counters(unit.group(), 0).or(self.counters(unit.group(), 1)),
            Self::Threads => self.counters(unit.group(), 0),
        }
    }

    const fn column_of(self, counter: u8) -> u8 {
        match self {
            Self::Whole => SECOND_COLUMN.has(counter) as u8,
            Self::Threads => 0,
        }
    }
}

/// An ESCR setting that an event requires. The thread is the same for all, and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Demand {
    unit: Unit,
    escr: Escr,
}

impl Demand {
    fn of(state: CounterState) -> Option<Self> {
        let event = Event::of(state)?;
        Some(Self { unit: event.unit, escr: escr(event, state, Thread::First) })
    }
}

/// The settings of all ESCRs.
#[derive(Debug, Clone, Copy, Default)]
struct Escrs([Option<Escr>; 2 * Unit::ALL.len()]);

impl Escrs {
    /// Returns the settings that the counters in use require.
    fn held(layout: Layout, cpu_counters: CpuCounters<'_>) -> Self {
        let mut escrs = Self::default();
        for counter in cpu_counters.counters(|state| !state.is_free()).iter() {
            if let Some(demand) = Demand::of(cpu_counters.get(counter)) {
                escrs.give(demand, layout.column_of(counter));
            }
        }
        escrs
    }

    const fn place(unit: Unit, column: u8) -> usize {
        unit as usize * 2 + column as usize
    }

    fn is_free(&self, unit: Unit, column: u8) -> bool {
        self.0.get(Self::place(unit, column)).is_some_and(Option::is_none)
    }

    fn serves(&self, demand: Demand, column: u8) -> bool {
        self.0.get(Self::place(demand.unit, column)) == Some(&Some(demand.escr))
    }

    fn give(&mut self, demand: Demand, column: u8) {
        if let Some(escr) = self.0.get_mut(Self::place(demand.unit, column)) {
            *escr = Some(demand.escr);
        }
    }

    /// Returns the settings with an ESCR for each demand; the bit of a unit in `order` selects which of its free ESCRs
    /// is used first. Remaining ESCRs go to any demand that can use them. Returns `None` if there are too few.
    fn shared_out(mut self, layout: Layout, wanted: &[Wanted], order: u8) -> Option<Self> {
        for demand in wanted.iter().filter_map(|wanted| Demand::of(wanted.state)) {
            let first = u8::from(order & 1 << demand.unit as u8 != 0);
            if (0..layout.columns()).any(|column| self.serves(demand, column)) {
                continue;
            }
            let mut columns = [first, 1 - first].into_iter().filter(|column| *column < layout.columns());
            let column = columns.find(|column| self.is_free(demand.unit, *column))?;
            self.give(demand, column);
        }
        for demand in wanted.iter().filter_map(|wanted| Demand::of(wanted.state)) {
            for column in
                (0..layout.columns()).filter(|column| self.is_free(demand.unit, *column)).collect::<CounterSet>().iter()
            {
                self.give(demand, column);
            }
        }
        Some(self)
    }
}

/// Implements [`ProfileInterface::assign`](crate::ProfileInterface::assign).
#[inline(never)] // its stack is not in use for the events of other interfaces
pub fn assign(
    layout: Layout,
    cpu_counters: CpuCounters<'_>,
    wanted: &[Wanted],
    assigned: &mut [u8],
) -> Result<(), usize> {
    /// One bit for each unit.
    const ORDERS: u8 = 1 << Unit::ALL.len();
    let (held, free) = (Escrs::held(layout, cpu_counters), cpu_counters.counters(CounterState::is_free));
    for (last, Wanted { state, .. }) in wanted.iter().enumerate() {
        let so_far = wanted.get(..=last).filter(|_| Demand::of(*state).is_some()).ok_or(last)?;
        let mut attempt = |order| {
            let escrs = held.shared_out(layout, so_far, order)?;
            place(layout, escrs, free, so_far, assigned)
        };
        (0..ORDERS).find_map(&mut attempt).ok_or(last)?;
    }
    Ok(())
}

/// Assigns a counter to each event: one of a column in which an ESCR serves it.
fn place(layout: Layout, escrs: Escrs, free: CounterSet, wanted: &[Wanted], assigned: &mut [u8]) -> Option<()> {
    let counters_of = |event| {
        let Some(Wanted { state, within }) = wanted.get(event).copied() else { return CounterSet::NONE };
        let Some(demand) = Demand::of(state) else { return CounterSet::NONE };
        let columns = (0..layout.columns()).filter(|column| escrs.serves(demand, *column));
        let counters = columns.map(|column| layout.counters(demand.unit.group(), column));
        counters.fold(CounterSet::NONE, CounterSet::or).and(within)
    };
    placement::assign(free, CounterSet::NONE, assigned.get_mut(..wanted.len())?, &counters_of).ok()
}
