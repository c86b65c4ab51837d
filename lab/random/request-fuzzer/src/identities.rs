//! The processors of the episodes, and the events that requests name.

use std::collections::{BTreeMap, BTreeSet};

use crate::choices::Choices;
use cpuid_dumps::CpuIdentity;
use engine::Engine;
use protocol::{Code, SourceRecord};
use simulation::{Client, SimMachine};

use crate::scarcity::Scarcity;

/// Every identity.
#[derive(Debug)]
pub struct Catalog {
    /// Those with counters.
    with_counters: Vec<&'static CpuIdentity>,
    /// Those without.
    without: Vec<&'static CpuIdentity>,
    /// Event number and unit mask by identity and source.
    encodings: BTreeMap<&'static str, Sources>,
    /// Names of those with a Debug Store.
    with_debug_store: BTreeSet<&'static str>,
    /// Names of those whose threads share registers without a leaf that tells it.
    hiding_threads: BTreeSet<&'static str>,
    /// Those on which something can be scarce, except the ones that hide threads.
    by_scarcity: Vec<(Scarcity, Vec<&'static CpuIdentity>)>,
}

/// Event number and unit mask of each source that a counter of an identity counts.
pub type Sources = BTreeMap<u64, (u16, u16)>;

/// Share of the episodes on processors without counters, in percent.
const WITHOUT_COUNTERS: u32 = 3;

impl Catalog {
    /// Reads the identities. Only those with names that contain `filter` are chosen.
    #[must_use]
    pub fn new(filter: Option<&str>) -> Self {
        let all = cpuid_dumps::all().iter().filter(|identity| filter.is_none_or(|part| identity.name.contains(part)));
        let (with_counters, without): (Vec<&'static CpuIdentity>, Vec<&'static CpuIdentity>) =
            all.partition(|identity| identity.expected.counters > 0);
        let encodings = with_counters.iter().map(|identity| (identity.name, encodings(identity))).collect();
        let recording = with_counters.iter().filter(|identity| identity.has_debug_store());
        let hiding = with_counters.iter().filter(|identity| !identity.real && shares_registers(identity));
        let hiding_threads: BTreeSet<&str> = hiding.map(|identity| identity.name).collect();
        let told: Vec<_> =
            with_counters.iter().copied().filter(|identity| !hiding_threads.contains(identity.name)).collect();
        let fitting = |scarcity: Scarcity| told.iter().copied().filter(move |identity| scarcity.can_be_on(identity));
        let by_scarcity = Scarcity::ALL.map(|scarcity| (scarcity, fitting(scarcity).collect())).into();
        let with_debug_store = recording.map(|identity| identity.name).collect();
        Self { with_counters, without, encodings, with_debug_store, hiding_threads, by_scarcity }
    }

    /// Chooses an identity.
    ///
    /// # Panics
    /// Panics if there is [none](Self::is_empty).
    pub fn choose(&self, choices: &mut Choices<'_>) -> &'static CpuIdentity {
        let wants_none = choices.percent(WITHOUT_COUNTERS);
        let group = if (wants_none || self.with_counters.is_empty()) && !self.without.is_empty() {
            &self.without
        } else {
            &self.with_counters
        };
        #[expect(clippy::expect_used, reason = "a filter that fits nothing is refused before")]
        choices.pick(group).copied().expect("an identity")
    }

    /// Chooses an identity on which this can be scarce, if there is one.
    pub(crate) fn choose_for(&self, choices: &mut Choices<'_>, scarcity: Scarcity) -> Option<&'static CpuIdentity> {
        let (_, fitting) = self.by_scarcity.iter().find(|(other, _)| *other == scarcity)?;
        choices.pick(fitting).copied()
    }

    /// Returns whether there is an identity.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.with_counters.is_empty() && self.without.is_empty()
    }

    /// Returns the event number and the unit mask of each source, if the selection of the identity has them in the
    /// usual place.
    #[must_use]
    pub fn sources(&self, identity: &CpuIdentity) -> Option<&Sources> {
        self.encodings.get(identity.name)
    }

    /// Returns whether two processors of an identity share registers and CPUID does not tell it: the made-up ones that
    /// end before leaf 0BH. No such processor exists.
    #[must_use]
    pub fn hides_threads(&self, identity: &CpuIdentity) -> bool {
        self.hiding_threads.contains(identity.name)
    }

    /// Returns whether an identity has a Debug Store.
    #[must_use]
    pub fn has_debug_store(&self, identity: &CpuIdentity) -> bool {
        self.with_debug_store.contains(identity.name)
    }
}

/// Reads the encodings from the select values that the engine reports. Only Emon and Amd64 have one select register for
/// each counter. The core types of a hybrid have different ones.
fn encodings(identity: &'static CpuIdentity) -> Sources {
    if !["Emon", "Amd64"].contains(&identity.expected.interface) || identity.odd_processors.is_some() {
        return Sources::new();
    }
    let machine = SimMachine::new(identity, 1);
    let Ok(mut engine) = Engine::new(&machine, [0; 4]) else { return Sources::new() };
    let client = Client::open(&mut engine, 1, 1);
    let list: Vec<SourceRecord> = client.tell(&mut engine, Code::ListSources);
    let of = |record: &SourceRecord| {
        let [event, umask, _, cmask, high, ..] = record.select.to_le_bytes();
        let event = u16::from(event) | u16::from(high & 0xF) << 8;
        (cmask == 0 && record.select != 0).then_some((record.source, (event, umask.into())))
    };
    list.iter().filter(|record| identity.expected.supported.contains(&record.source)).filter_map(of).collect()
}

/// Returns whether this is Nehalem or Westmere, where the threads of a core have the off-core response registers in
/// common.
fn shares_registers(identity: &CpuIdentity) -> bool {
    let [signature, ..] = identity.cpuid().cpuid(1, 0);
    let model = signature >> 4 & 0xF | signature >> 12 & 0xF0;
    signature >> 8 & 0xF == 6 && matches!(model, 0x1A | 0x1E | 0x1F | 0x2E | 0x25 | 0x2C | 0x2F)
}
