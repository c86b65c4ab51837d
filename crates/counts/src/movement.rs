//! Counts of counters that do not count here, or only a part: what a hypervisor lets them count.

use std::fmt::Write;

use halprof::text::processors::ranges;
use pmu::Kind;
use pmu::hal::movement::Movement;
use protocol::{CountRecord, InfoReply};
use serde::Serialize;
use x86_defs::cpuid::VENDOR_VMWARE;

/// What VMware's counters count if the virtual machine has its default, freezeMode=hybrid (Broadcom KB 344161).
const OF_VMWARE: &str = "instructions and branches count the guest, all else VMware too";

/// Returns what the counts of different events have not in common under a hypervisor, if there is something.
#[must_use]
pub fn scope_under(hypervisor_vendor: &[u8]) -> Option<&'static str> {
    (hypervisor_vendor == VENDOR_VMWARE).then_some(OF_VMWARE)
}

/// Returns the same for this machine, if it has counters.
#[must_use]
pub fn scope_note(info: &InfoReply) -> Option<&'static str> {
    scope_under(&info.hypervisor_vendor).filter(|_| info.counters > 0)
}

/// The mark of such a count in tables.
pub const MARK: &str = "!";

/// What stands for the unit of such a count between separators.
pub const UNIT: &str = "does not count here";

/// Maximum number of events that are listed.
const MAX_LISTED: usize = 4;

/// How much of a known loop the counter of a count did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// It counted a part.
    Part,
    /// It counted nothing.
    All,
}

impl Missed {
    /// Returns the mark of a count, if it has one.
    #[must_use]
    pub fn of(record: &CountRecord) -> Option<Self> {
        match Movement::from_number(record.movement) {
            Some(Movement::StandsStill) => Some(Self::All),
            Some(Movement::CountsPart) => Some(Self::Part),
            Some(Movement::Counts) | None => None,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::All => "its counter stands still",
            Self::Part => "its counter misses events",
        }
    }
}

/// Returns the text for the marked counts of events, each with its name, its processors and the mark of the worst;
/// `None` if there are none.
pub fn note(events: impl Iterator<Item = (String, Vec<u32>, Missed)>) -> Option<String> {
    let all: Vec<_> = events.collect();
    let mut text = format!("{MARK} {UNIT}: the hypervisor gives this machine counters that do not count");
    // Writing to a `String` cannot fail.
    for (event, processors, missed) in all.iter().take(MAX_LISTED) {
        let cpu = if processors.len() == 1 { "CPU" } else { "CPUs" };
        let _ = write!(text, "\n  {event} on {cpu} {}: {}", ranges(processors.iter().copied()), missed.text());
    }
    if let more @ 1.. = all.len().saturating_sub(MAX_LISTED) {
        let _ = write!(text, "\n  and {more} more (--json lists all)");
    }
    text.push_str("\n  try: other events; or later, because the host may use these counters now");
    (!all.is_empty()).then_some(text)
}

/// The counters on which a known loop ran, by the names F0 to F2 of fixed counters and the numbers of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Tried {
    /// Those that counted it on each processor on which they were tried.
    count: Vec<String>,
    /// Those that counted a part of it on some processor.
    miss_events: Vec<String>,
    /// Those that counted nothing of it on some processor.
    stand_still: Vec<String>,
}

impl Tried {
    /// Returns what the driver has found out; `None` on bare metal, where it tries nothing.
    #[must_use]
    pub fn of(info: &InfoReply) -> Option<Self> {
        if info.hypervisor == 0 || info.interface == Kind::Default as u32 {
            return None;
        }
        let general = info.counters.saturating_sub(info.fixed_counters);
        let name = |counter: u32| {
            counter.checked_sub(general).map_or_else(|| counter.to_string(), |fixed| format!("F{fixed}"))
        };
        let names = |mask: u32| (0..u32::BITS).filter(|counter| mask >> counter & 1 == 1).map(name).collect();
        let InfoReply { tried, still, partial, .. } = *info;
        Some(Self {
            count: names(tried & !still & !partial),
            miss_events: names(partial & !still),
            stand_still: names(still),
        })
    }

    /// Returns the text for a row of properties.
    #[must_use]
    pub fn text(&self) -> String {
        let listed = [(&self.count, "count"), (&self.miss_events, "miss events"), (&self.stand_still, "stand still")];
        let parts = listed.into_iter().filter(|(counters, _)| !counters.is_empty());
        let parts: Vec<_> = parts.map(|(counters, what)| format!("{} {what}", counters.join(" "))).collect();
        if parts.is_empty() { "not tried yet; each start tries its counters".to_owned() } else { parts.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_system::{count, info};

    #[test]
    fn only_marked_counts_are_noted_in_80_columns() {
        let marks = [0, 1, 2, 99].map(|movement| Missed::of(&CountRecord { movement, ..count(2, 0, 1, 1) }));
        assert_eq!(marks, [None, Some(Missed::All), Some(Missed::Part), None]);
        assert_eq!(note([].into_iter()), None);
        let one = |event: &str, cpus: &[u32], missed| (event.to_owned(), cpus.to_vec(), missed);
        let text =
            note([one("TotalCycles", &[0], Missed::All), one("LLCMisses:u", &[0, 1, 3], Missed::Part)].into_iter());
        assert_eq!(
            text.as_deref(),
            Some(
                "! does not count here: the hypervisor gives this machine counters that do not count\n  \
                 TotalCycles on CPU 0: its counter stands still\n  \
                 LLCMisses:u on CPUs 0-1,3: its counter misses events\n  \
                 try: other events; or later, because the host may use these counters now"
            )
        );
        let many = note((0..6).map(|_| one("TotalCycles", &[0], Missed::All))).unwrap();
        assert!(many.contains("\n  and 2 more (--json lists all)\n"), "{many}");
    }

    #[test]
    fn vmware_counts_instructions_and_cycles_in_different_scopes() {
        let of =
            |hypervisor_vendor: [u8; 12], counters| scope_note(&InfoReply { hypervisor_vendor, counters, ..info() });
        assert!(of(*b"VMwareVMware", 4).is_some_and(|note| note.len() < 80));
        assert_eq!((of(*b"VMwareVMware", 0), of(*b"Microsoft Hv", 4), of([0; 12], 4)), (None, None, None));
    }

    #[test]
    fn counters_are_named_by_what_they_did() {
        let guest = InfoReply { interface: Kind::Emon as u32, hypervisor: 1, counters: 7, fixed_counters: 3, ..info() };
        assert_eq!(Tried::of(&InfoReply { hypervisor: 0, ..guest }), None);
        assert_eq!(Tried::of(&InfoReply { interface: Kind::Default as u32, ..guest }), None);
        let text = |tried, still, partial| Tried::of(&InfoReply { tried, still, partial, ..guest }).unwrap().text();
        assert_eq!(text(0, 0, 0), "not tried yet; each start tries its counters");
        assert_eq!(text(0b111_0011, 0b010_0000, 0b001_0000), "0 1 F2 count; F0 miss events; F1 stand still");
    }
}
