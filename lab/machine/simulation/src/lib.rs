//! The model as the platform of [`pmu`] and [`engine`], natively in one process. A [`SimMachine`] takes the place of
//! driver, kernel and hardware in tests.
//!
//! A #GP of the model panics with the access that raised it. On Windows it would be a bug check.

#![forbid(unsafe_code)]

mod client;
mod cpu;
mod current;
mod fault_point;
mod lies;
mod sim_machine;
mod stale;

pub use client::{Answer, Client, STATUS_PENDING, quiet_modes};
pub use cpu::ModelCpu;
pub use current::{access_first, boot, current};
pub use fault_point::{Decision, decide_faults};
pub use lies::{Liar, Lie, Question};
pub use sim_machine::{Call, SimMachine, WrittenEvent};
