//! The bench for the end-to-end tests and the demo, which run client.exe and halprof.sys as they ship.
//!
//! On Linux they run under Wine, in a prefix that `cargo xtask` makes. The lab provides a model of the processor's
//! performance monitoring unit and the kernel functions that Wine lacks. On Windows the tests that do not need the
//! model run on the machine itself (see [`Machine`]).

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

mod agent;
mod c_program;
mod event_access;
pub mod interrupts;
mod lab;
mod machine;
mod pe;
mod probe;
mod program;
mod requests;
mod storm;
mod walk;
mod wine;
mod workload;

pub use agent::{Agent, agent_address, configure, get, line_with, lines_of};
pub use c_program::{Linkage, c_program};
pub use lab::Lab;
pub use machine::Machine;
pub use pe::{checksum, checksum_place};
pub use probe::{Probe, Reply, hex};
pub use program::ProgramOutput;
pub use storm::{StormRound, StormTotals};
pub use walk::{Image, Reach};
pub use wine::{Wine, artifacts, package};
pub use workload::{CALLER_SHARES, Description, Function, KnownStack, SHARES, Workload};

/// Returns whether `cargo xtask soak` runs the tests.
#[must_use]
pub fn is_soak() -> bool {
    env::var_os("HALPROF_SOAK").is_some()
}

/// Returns the number of repetitions of a step: `usual`, or `soak` in the soak.
#[must_use]
pub fn rounds(usual: usize, soak: usize) -> usize {
    if is_soak() { soak } else { usual }
}

/// Returns how many thousands of events were counted. Tests let thousands of events occur, and those that occur between
/// the accesses of the driver are fewer than a thousand.
#[must_use]
pub const fn thousands(count: u64) -> u64 {
    count / 1_000
}

/// Waits until it is so.
///
/// # Panics
/// After two minutes, with `otherwise`: whatever does not happen by then hangs, however busy the machine is.
pub fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    const LIMIT: Duration = Duration::from_mins(2);
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{otherwise}");
        sleep(Duration::from_millis(5));
    }
}

/// Starts something, up to three times. On a busy machine Wine sometimes ends a program before it begins; that is
/// printed.
fn start_with_retries<T>(start: impl Fn() -> Result<T>) -> Result<T> {
    const TRIES: usize = 3;
    for _ in 1..TRIES {
        match start() {
            Ok(started) => return Ok(started),
            Err(error) => eprintln!("trying again: {error:#}"),
        }
    }
    start()
}

/// Returns the cases to test: all of them in the soak, otherwise the first `usual`. The cases must be in order of
/// importance.
#[must_use]
pub fn first_or_all<T>(cases: &[T], usual: usize) -> &[T] {
    if is_soak() { cases } else { cases.get(..usual).unwrap_or(cases) }
}
