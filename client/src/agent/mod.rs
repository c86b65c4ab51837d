//! The agent: it counts and samples all the time, at a bounded cost, for the systems that many machines report to.
//!
//! | module | contents |
//! |---|---|
//! | `costs` | what counting costs, and the intervals that stay within a budget |
//! | `counting` | the session: it starts, yields, and starts again |
//! | `gap` | the times without counters |
//! | `profiling` | a profile, from its session to pprof |
//! | `run` | the loop |
//! | `log` | the log of the service |
//! | `outputs` | where numbers and profiles go, and the thread that takes profiles |
//! | `points` | the numbers of a moment, for the crate `agent` to publish |

mod costs;
mod counting;
mod gap;
mod log;
mod outputs;
mod points;
mod profiling;
mod run;
#[cfg(test)]
mod tests;

pub use log::Log;
pub use outputs::{NewSystem, Outputs};
pub use run::Agent;

use ::agent::config::Config;

use crate::error::Error;

/// Checks the events of a configuration, as far as no driver is needed.
///
/// # Errors
/// If one is malformed.
pub fn check(config: &Config) -> Result<(), Error> {
    counting::event_lists(config)?;
    config.profiles.as_ref().map(profiling::Profiling::new).transpose()?;
    Ok(())
}
