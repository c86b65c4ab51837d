//! Episodes in several threads, until there were enough requests.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use simulation::SimMachine;

use crate::choices::{Choices, random_bytes};
use crate::episode::Episode;
use crate::identities::Catalog;
use crate::lies::{self, Lies, Traced};
use crate::stats::Stats;
use crate::traits::Traits;

/// Time between two calls of the report of progress.
const PROGRESS: Duration = Duration::from_mins(1);

/// What an episode is about.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// The processors tell the truth, so that every count is known. In `scarce` percent, something is scarce.
    Honest {
        /// Share of the episodes in which something is scarce, in percent.
        scarce: u32,
    },
    /// The processors lie.
    Lying,
}

/// How long a run takes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of the first episode. Those that follow have the next numbers.
    pub seed: u64,
    /// Number of requests after which no episode begins any more.
    pub requests: u64,
    /// Time after which none begins.
    pub time: Option<Duration>,
    /// Number of threads.
    pub threads: usize,
    /// Kind of the episodes.
    pub kind: Kind,
    /// Number of last steps in the report of a failure.
    pub last_steps: usize,
}

/// An episode that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its seed, which repeats it.
    pub seed: u64,
    /// The identity, the message, the number of the step, and the last steps.
    pub text: String,
    /// Machines and requests of the run before it.
    pub before: (u64, u64),
}

/// Share of the episodes in which something is scarce, in percent, unless something else is wanted.
pub const SCARCE: u32 = 12;

/// Most bytes of an episode with random ones.
const MOST_BYTES: u64 = 20_000;

/// Returns the bytes of the episode of a seed.
fn bytes_of(seed: u64) -> Vec<u8> {
    let length = Choices::new(&mut random_bytes(seed, 0)).up_to(MOST_BYTES);
    random_bytes(seed, 1).take(usize::try_from(length).unwrap_or_default()).collect()
}

/// Runs the episode to which bytes lead, and returns its numbers.
///
/// # Panics
/// Panics if a check fails.
#[must_use]
pub fn episode(bytes: &[u8], kind: Kind, catalog: &Catalog) -> Stats {
    traced(bytes, kind, catalog, None)
}

/// Runs an episode, and adds its steps to `trace`.
fn traced(bytes: &[u8], kind: Kind, catalog: &Catalog, trace: Option<&Mutex<Vec<String>>>) -> Stats {
    let (bytes, of_lies) = match kind {
        Kind::Honest { .. } => (bytes, None),
        Kind::Lying => {
            let (bytes, of_lies) = lies::parts(bytes);
            (bytes, Some(of_lies))
        }
    };
    let mut bytes = bytes.iter().copied();
    let mut choices = Choices::new(&mut bytes);
    let traits = match kind {
        Kind::Honest { scarce } => Traits::choose(&mut choices, scarce, catalog),
        Kind::Lying => Traits::of_lies(&mut choices, catalog),
    };
    let (most, active) = traits.processors;
    // `Follow` knows in advance what each session counts, in kernel mode too.
    let machine = SimMachine::new(traits.identity, most).with_active(active).with_interrupt_mode(traits.interrupt_mode);
    let machine = machine.without_time_between_accesses();
    if let Some(scarcity) = traits.scarcity {
        scarcity.set_up(&machine);
    }
    if traits.masks_on_delivery {
        machine.all().for_each(|cpu| cpu.model().set_masked_on_delivery());
    }
    if let Some(trace) = trace {
        trace.lock().unwrap_or_else(PoisonError::into_inner).push(traits.to_string());
    }
    let lies = of_lies.map(|bytes| Lies::begin(&machine, bytes));
    let traced = lies.as_ref().map(|lies| Traced::new(lies, trace));
    let mut episode = Episode::new(&machine, &traits, catalog.sources(traits.identity), choices, trace);
    episode.lies = lies.is_some();
    episode.set_up();
    while !episode.choices.is_empty() {
        episode.step();
        traced.as_ref().inspect(|traced| traced.add());
    }
    match &lies {
        Some(lies) => episode.finish_lies(lies),
        None => episode.finish(),
    }
    let mut done = episode.stats;
    done.steps = episode.step;
    done.count_episode(traits.identity.expected.interface, done.requests);
    done
}

/// Returns the message of a panic.
pub(crate) fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Runs the episode to which bytes lead.
///
/// # Errors
/// The message of a check that failed, the machine, and the last steps.
pub fn replay(bytes: &[u8], kind: Kind, last_steps: usize, catalog: &Catalog) -> Result<Stats, String> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| episode(bytes, kind, catalog)));
    outcome.map_err(|payload| explain(bytes, kind, last_steps, catalog, &message(&*payload)))
}

/// Repeats an episode that failed, and returns what it did.
fn explain(bytes: &[u8], kind: Kind, last_steps: usize, catalog: &Catalog, first: &str) -> String {
    let trace = Mutex::new(Vec::new());
    let again = panic::catch_unwind(AssertUnwindSafe(|| traced(bytes, kind, catalog, Some(&trace))));
    let again = again.err().map(|payload| message(&*payload));
    let trace = trace.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (head, steps) = trace.split_first().map(|(head, steps)| (head.clone(), steps)).unwrap_or_default();
    let last = steps.get(steps.len().saturating_sub(last_steps)..).unwrap_or_default();
    let repeated = match again {
        Some(again) if again == first => "repeats".to_owned(),
        Some(again) => format!("fails in another way when repeated: {again}"),
        None => "does not fail when repeated".to_owned(),
    };
    format!("{first}\n{head}\nits last steps:\n{}\nIt {repeated}.", last.join("\n"))
}

/// Runs episodes of these identities. `progress` gets the numbers once a minute.
///
/// # Errors
/// The first episode that failed.
pub fn run(
    settings: &Settings,
    catalog: &Catalog,
    progress: &(dyn Fn(&Stats, Duration) + Sync),
) -> Result<Stats, Failure> {
    let begin = Instant::now();
    let next = AtomicU64::new(settings.seed);
    let ends = AtomicBool::new(false);
    let total = Mutex::new((Stats::default(), begin));
    let failure = Mutex::new(None);
    let work = || {
        while !ends.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let stats = match replay(&bytes_of(seed), settings.kind, settings.last_steps, catalog) {
                Ok(stats) => stats,
                Err(text) => {
                    ends.store(true, Ordering::Relaxed);
                    let (all, _) = *total.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = (all.episodes, all.requests);
                    let found = Failure { seed, text: format!("seed {seed}: {text}"), before };
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
                    return;
                }
            };
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            let (all, reported) = &mut *total;
            all.add(&stats);
            if reported.elapsed() >= PROGRESS {
                *reported = Instant::now();
                progress(all, begin.elapsed());
            }
            if all.requests >= settings.requests || settings.time.is_some_and(|time| begin.elapsed() >= time) {
                ends.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..settings.threads {
            scope.spawn(work);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner).0),
    }
}
