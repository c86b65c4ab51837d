//! Loom runs every interleaving of requests, interrupts and sleeps: `RUSTFLAGS="--cfg loom" cargo test -p engine
//! --release --test loom`.
//!
//! The engine is the shipped one, with a platform of plain memory. A mutex stands for PROFILE_LEVEL on each processor:
//! an interrupt and a call on the same processor exclude each other, and nothing else does.
//!
//! The tests bound the preemptions of an execution; `LOOM_MAX_PREEMPTIONS` overrides the bound.

#![cfg(loom)]

#[path = "loom/machine.rs"]
mod machine;
#[path = "loom/sampling.rs"]
mod sampling;
#[path = "loom/sleep.rs"]
mod sleep;

/// Runs `law` in every interleaving with at most so many preemptions, unless the environment says how many.
fn explore(preemptions: usize, law: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 50_000;
    builder.check(law);
}
