//! A measurement of criterion: events of the benchmark's thread, counted by the halprof driver on Windows.
//!
//! ```no_run
//! use criterion::{Criterion, criterion_group, criterion_main};
//! use halprof_criterion::{Events, ExactBencher};
//!
//! fn sums(criterion: &mut Criterion<Events>) {
//!     criterion.bench_function("sum", |bencher| bencher.iter_exact(|| (0..1_000_u64).sum::<u64>()));
//! }
//!
//! criterion_group! {
//!     name = benches;
//!     config = Criterion::default().with_measurement(Events::open("instructions").unwrap());
//!     targets = sums
//! }
//! criterion_main!(benches);
//! ```
//!
//! # Counts that are not exact
//!
//! A region can be [disturbed](halprof::Quality::Disturbed), for example if another thread ran on the CPU and Windows
//! has no thread profiling. Criterion has no channel for that:
//!
//! - [`iter_exact`](ExactBencher::iter_exact) measures short regions and repeats disturbed ones, up to
//!   [`ATTEMPTS`] times. Use it wherever the routine can be called again.
//! - `iter`, `iter_batched` and the other functions of criterion measure each sample once.
//!
//! A disturbed region that remains is part of a sample. It is reported on standard error: the first of each reason when
//! it happens, and the number of all when [`Events`] is dropped. With [`Events::strict`] it ends the benchmark instead.
//!
//! # Other programs
//!
//! Criterion saves the mean of a benchmark without its unit. critcmp reads every mean as nanoseconds, and shows 1,500
//! instructions as 1500.0 ns. Its ratios are right.

mod current;
mod exact;
mod formatter;
mod measurement;
mod regions;
mod report;
mod shared;
#[cfg(test)]
mod tests;

pub use exact::{ATTEMPTS, ExactBencher};
pub use measurement::Events;
