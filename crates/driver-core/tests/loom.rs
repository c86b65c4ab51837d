//! Loom runs every interleaving of up to four threads: `RUSTFLAGS="--cfg loom" cargo test -p driver-core --release
//! --test loom`.
//!
//! The tests bound the preemptions of an execution; `LOOM_MAX_PREEMPTIONS` overrides the bound. The orders of atomics
//! within the bound are all explored.

#![cfg(loom)]

#[path = "loom/ending.rs"]
mod ending;
#[path = "loom/pending.rs"]
mod pending;

/// Runs `law` in every interleaving with at most so many preemptions, unless the environment says how many.
fn explore(preemptions: usize, law: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(law);
}
