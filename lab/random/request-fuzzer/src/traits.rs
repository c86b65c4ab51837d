//! What an episode does beside valid requests. Each episode has a random part of it, so that a disturbance that hides
//! others, or weakens the checks, is absent from most.

use std::fmt;

use crate::choices::Choices;
use cpuid_dumps::CpuIdentity;
use model::InterruptMode;

use crate::identities::Catalog;
use crate::scarcity::Scarcity;

/// Decisions for a whole episode.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent decision")]
pub struct Traits {
    /// The processors of the machine.
    pub identity: &'static CpuIdentity,
    /// Maximum number of processors, and those active at first.
    pub processors: (u32, u32),
    /// Behavior of interrupts at a masked LVT entry.
    pub interrupt_mode: InterruptMode,
    /// Delivery masks the LVT entry whatever the vendor.
    pub masks_on_delivery: bool,
    /// The machine sleeps and wakes.
    pub sleeps: bool,
    /// Other programs write registers of counters.
    pub foreign: bool,
    /// Other software masks the LVT entry, and spurious interrupts arrive.
    pub spurious: bool,
    /// Interrupts arrive late.
    pub late: bool,
    /// Calls of the platform are refused.
    pub refusals: bool,
    /// Reading the clock takes long, so that the budget of interrupts is soon exhausted.
    pub slow: bool,
    /// Threads profile, so that Windows keeps its configuration.
    pub profiling_threads: bool,
    /// Windows keeps save areas of its own, or VA shadowing is on.
    pub areas: Areas,
    /// Share of requests with corrupted bytes or lengths, in percent.
    pub corrupted: u32,
    /// Whether the processors have a Debug Store.
    pub has_debug_store: bool,
    /// Whether the counters of a thread lose events to those of the other thread of the core, for some events. The
    /// driver starts none of these beside counters of the other thread. It cannot see there that another program does.
    pub leaks: bool,
    /// Every event occurs equally often, whatever its number.
    pub uniform: bool,
    /// What is scarce.
    pub scarcity: Option<Scarcity>,
    /// At the end, every session is stopped.
    pub stops_at_end: bool,
    /// At the end, every handle is closed.
    pub closes_at_end: bool,
}

/// How the kernel treats control areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Areas {
    /// It allocates them.
    Allocated,
    /// It refuses them on some processors.
    Refused,
    /// User code runs with its own page tables.
    Shadowed,
}

impl Traits {
    /// Chooses the traits of an episode. In `scarce` percent of them, something is scarce.
    pub fn choose(choices: &mut Choices<'_>, scarce: u32, catalog: &Catalog) -> Self {
        let scarcity = if choices.percent(scarce) { choices.pick(&Scarcity::ALL).copied() } else { None };
        let found = scarcity.and_then(|scarcity| Some((scarcity, catalog.choose_for(choices, scarcity)?)));
        let (scarcity, identity) =
            found.map_or_else(|| (None, catalog.choose(choices)), |(scarcity, identity)| (Some(scarcity), identity));
        let most = u32::try_from(choices.up_to(3)).unwrap_or_default() + 1;
        let most = if catalog.hides_threads(identity) { 1 } else { most };
        let active = if choices.percent(60) {
            most
        } else {
            u32::try_from(choices.up_to(u64::from(most) - 1)).unwrap_or_default() + 1
        };
        let processors = scarcity.and_then(Scarcity::processors).map_or((most, active), |all| (all, all));
        let mode = usize::try_from(choices.up_to(InterruptMode::ALL.len() as u64 - 1)).unwrap_or_default();
        Self {
            identity,
            processors,
            interrupt_mode: InterruptMode::ALL.get(mode).copied().unwrap_or_default(),
            masks_on_delivery: choices.percent(20),
            sleeps: choices.percent(50),
            foreign: choices.percent(20),
            spurious: choices.percent(25),
            late: choices.percent(50),
            refusals: choices.percent(30),
            slow: choices.percent(30),
            profiling_threads: choices.percent(20),
            areas: match choices.up_to(9) {
                0 => Areas::Refused,
                1 => Areas::Shadowed,
                _ => Areas::Allocated,
            },
            corrupted: if choices.percent(50) { 10 } else { 0 },
            has_debug_store: catalog.has_debug_store(identity),
            leaks: processors.0 > 1 && identity.has_disturbing_threads(),
            uniform: choices.percent(30),
            scarcity,
            stops_at_end: choices.percent(67),
            closes_at_end: choices.percent(50),
        }
    }
}

impl fmt::Display for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, active) = self.processors;
        write!(f, "{}, {active} of {most} processors, {:?}", self.identity.name, self.interrupt_mode)?;
        let all = [
            ("masks on delivery", self.masks_on_delivery),
            ("sleeps", self.sleeps),
            ("foreign writes", self.foreign),
            ("spurious interrupts", self.spurious),
            ("late interrupts", self.late),
            ("refusals", self.refusals),
            ("slow", self.slow),
            ("profiling threads", self.profiling_threads),
            ("uniform", self.uniform),
        ];
        all.iter().filter(|(_, has)| *has).try_for_each(|(name, _)| write!(f, ", {name}"))?;
        if let Some(scarcity) = self.scarcity {
            write!(f, ", scarce {scarcity:?}")?;
        }
        write!(f, ", areas {:?}", self.areas)
    }
}
