//! Episodes in several threads, until there were enough requests.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bench_protocol::Random;
use simulation::SimMachine;

use crate::episode::Episode;
use crate::identities::Catalog;
use crate::stats::Stats;
use crate::traits::Traits;

/// Time between two calls of the report of progress.
const PROGRESS: Duration = Duration::from_mins(1);

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
    /// Share of the episodes in which something is scarce, in percent.
    pub scarce: u32,
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
}

/// Number of steps of an episode.
const STEPS: u64 = 1_000;

/// Runs an episode. Adds its numbers to `stats`, unless it panics.
fn episode(seed: u64, scarce: u32, catalog: &Catalog, stats: &mut Stats, trace: Option<&Mutex<Vec<String>>>) {
    let mut random = Random::new(seed, 0);
    let traits = Traits::choose(&mut random, scarce, catalog);
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
    let steps = random.up_to(STEPS);
    if let Some(trace) = trace {
        trace.lock().unwrap_or_else(PoisonError::into_inner).push(traits.to_string());
    }
    let mut episode = Episode::new(&machine, &traits, catalog.sources(traits.identity), random, trace);
    episode.set_up();
    (0..steps).for_each(|_| episode.step());
    episode.finish();
    let mut done = episode.stats;
    done.count_episode(traits.identity.expected.interface, done.requests);
    stats.add(&done);
}

/// Returns the message of a panic.
pub(crate) fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Repeats an episode that failed, and returns what it did.
fn explain(seed: u64, settings: &Settings, catalog: &Catalog, first: &str) -> Failure {
    let Settings { scarce, last_steps, .. } = *settings;
    let trace = Mutex::new(Vec::new());
    let again =
        panic::catch_unwind(AssertUnwindSafe(|| episode(seed, scarce, catalog, &mut Stats::default(), Some(&trace))));
    let again = again.err().map(|payload| message(&*payload));
    let trace = trace.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (head, steps) = trace.split_first().map(|(head, steps)| (head.clone(), steps)).unwrap_or_default();
    let last = steps.get(steps.len().saturating_sub(last_steps)..).unwrap_or_default();
    let repeated = match again {
        Some(again) if again == first => "repeats".to_owned(),
        Some(again) => format!("fails in another way when repeated: {again}"),
        None => "does not fail when repeated".to_owned(),
    };
    let text = format!("{first}\nseed {seed}, {head}\nits last steps:\n{}\nIt {repeated}.", last.join("\n"));
    Failure { seed, text }
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
            let mut stats = Stats::default();
            let outcome =
                panic::catch_unwind(AssertUnwindSafe(|| episode(seed, settings.scarce, catalog, &mut stats, None)));
            if let Err(payload) = outcome {
                ends.store(true, Ordering::Relaxed);
                let found = explain(seed, settings, catalog, &message(&*payload));
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
                return;
            }
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
