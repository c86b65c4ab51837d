//! Random requests to the engine on the model of the hardware, checked against what the model executed.
//!
//! A run consists of episodes. Each has a machine of its own, with the processors of one identity, an engine, four
//! handles and bytes, from which every decision follows: random ones of a seed, or those of a fuzzer that looks for
//! bytes that reach new code (`fuzz`, target `engine`). Between the requests, processors execute events, interrupts
//! and ticks arrive early or late, the machine sleeps, processors are added, other programs write registers, and calls
//! of the platform fail. `Traits` chooses which of these an episode has. In some, one thing is scarce (`Scarcity`).
//!
//! The checks do not use the engine: they compare its replies with sums that the fuzzer keeps of what it executed, and
//! with the ledger of the model.

#![forbid(unsafe_code)]

mod book;
mod choices;
mod day;
mod episode;
mod finish;
mod follow;
mod generate;
mod identities;
mod lies;
mod registers;
mod run;
mod scarcity;
mod stats;
mod traits;
mod world;

pub use day::{DAYS, day};
pub use identities::Catalog;
pub use run::{Failure, Kind, SCARCE, Settings, episode, replay, run};
pub use stats::{CodeStats, Stats};
