//! What a hypervisor lets a virtual counter count: everything, nothing, or a share; and a loop whose events are known.

use crate::{counter::CounterId, cpuid, select::Selected};
use std::collections::{BTreeMap, BTreeSet};

/// How much of its events a counter counts. Its registers can be read and written all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Movement {
    /// All of them.
    #[default]
    All,
    /// None: the host has no counter for it, or the hypervisor only stores the registers.
    None,
    /// So many of 1,000, because the host uses its counter the rest of the time.
    PerMille(u16),
}

/// Restrictions of a virtual PMU.
#[derive(Debug, Default)]
pub(crate) struct Movements {
    /// The counters that do not count everything, each with thousandths of events that are not counted yet.
    counters: BTreeMap<CounterId, (Movement, u64)>,
    /// Events, by number and unit mask, that general counters count as zero (Linux commit 66bb8a065f5a, "KVM: x86: PMU
    /// Event Filter").
    filtered: BTreeSet<(u16, u16)>,
}

impl Movements {
    pub(crate) fn set(&mut self, counter: CounterId, movement: Movement) {
        self.counters.insert(counter, (movement, 0));
    }

    pub(crate) fn set_filtered(&mut self, events: impl IntoIterator<Item = (u16, u16)>) {
        self.filtered = events.into_iter().collect();
    }

    /// Returns how many of `events` a counter counts.
    pub(crate) fn counted(&mut self, counter: CounterId, selected: Selected, events: u64) -> u64 {
        if self.is_filtered(counter, selected) {
            return 0;
        }
        match self.counters.get_mut(&counter) {
            None | Some((Movement::All, _)) => events,
            Some((Movement::None, _)) => 0,
            Some((Movement::PerMille(share), rest)) => {
                let thousandths = events.saturating_mul(u64::from(*share)).saturating_add(*rest);
                *rest = thousandths % 1_000;
                thousandths / 1_000
            }
        }
    }

    /// Returns whether a counter counts all of its events.
    pub(crate) fn is_whole(&self, counter: CounterId, selected: Selected) -> bool {
        let movement = self.counters.get(&counter).map_or(Movement::All, |(movement, _)| *movement);
        movement == Movement::All && !self.is_filtered(counter, selected)
    }

    fn is_filtered(&self, counter: CounterId, Selected { event, umask, .. }: Selected) -> bool {
        matches!(counter, CounterId::General(_)) && self.filtered.contains(&(event, umask))
    }
}

/// Returns how often an event occurs in a loop of two instructions, a decrement and a branch that is taken while the
/// result is not zero. An iteration takes a cycle, and the reference clock has a tenth of the frequency. The two
/// instructions take one of six slots, and the others wait.
pub(crate) fn events_of_loop(
    cpuid: &dyn Fn(u32, u32) -> [u32; 4],
    iterations: u32,
) -> impl Fn(Selected) -> u64 + use<> {
    // Retired instructions, branches, and cycles: SDM, "Pre-defined Architectural Performance Events"; PPR, PMCx0C0,
    // PMCx0C2 and PMCx076.
    let (branches, cycles): (u16, u16) =
        if cpuid::vendor(cpuid) == b"GenuineIntel" { (0xC4, 0x3C) } else { (0xC2, 0x76) };
    let times = u64::from(iterations);
    move |selected| match selected {
        one if one == Selected::event(0xC0, 0) => 2 * times,
        one if one == Selected::event(branches, 0) || one == Selected::event(cycles, 0) => times,
        one if one == Selected::event(0x3C, 1) && cycles == 0x3C => times / 10,
        // Slots, those that retire, and those that wait for the back end (event files, `TOPDOWN.SLOTS` and
        // `PERF_METRICS`).
        one if one == Selected::event(0xA4, 1) => 6 * times,
        one if one == Selected::event(0x00, 0x80) => times,
        one if one == Selected::event(0x00, 0x83) => 5 * times,
        _ => 0,
    }
}
