//! The bench for the end-to-end tests and the demo, which run client.exe and halprof.sys as they ship.
//!
//! On Linux they run under Wine, in a prefix that `cargo xtask` makes. The lab provides a model of the processor's
//! performance monitoring unit and the kernel functions that Wine lacks. On Windows the tests that do not need the
//! model run on the machine itself (see [`Machine`]).

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

mod agent;
mod c_program;
mod event_access;
pub mod interrupts;
mod lab;
mod log;
mod machine;
mod pe;
mod probe;
mod program;
mod requests;
mod shell;
mod start;
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
pub use shell::Shell;
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

/// What does not happen within this time hangs, however busy the machine is.
pub const HANG_LIMIT: Duration = Duration::from_mins(2);

/// Waits until `look` succeeds, and returns its result.
///
/// # Errors
/// The last error, after [`HANG_LIMIT`].
pub fn wait_for<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match look() {
            Err(_) if begun.elapsed() < HANG_LIMIT => sleep(pause),
            result => return result,
        }
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// Waits until it is so.
///
/// # Panics
/// After [`HANG_LIMIT`], with `otherwise`.
pub fn wait_until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let waited = wait_for(|| if is_so() { Ok(()) } else { bail!("it is not so") });
    assert!(waited.is_ok(), "{otherwise}");
}

/// Returns the cases to test: all of them in the soak, otherwise the first `usual`. The cases must be in order of
/// importance.
#[must_use]
pub fn first_or_all<T>(cases: &[T], usual: usize) -> &[T] {
    if is_soak() { cases } else { cases.get(..usual).unwrap_or(cases) }
}
