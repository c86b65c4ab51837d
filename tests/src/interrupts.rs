//! Interrupts at every instruction of the driver.
//!
//! The lab steps through a call into the driver and lets counters overflow before a chosen instruction
//! ([`bench_protocol::StepPlan`]). A sweep repeats the call for every instruction, and compares the driver's account
//! with the ledger of the model after each.

mod scenario;
mod stage;
mod sweep;

pub use scenario::Scenario;
pub use stage::Stage;
pub use sweep::{MAX_INSTRUCTIONS, Row, Sweep, sweep};
