//! The model as the machine under [`pmu`] and [`engine`], natively in one process: what the driver is to
//! the kernel, a [`SimMachine`] is to tests.
//!
//! A #GP of the model is a panic here, with the access that raised it: on Windows it would be a bug check.

#![forbid(unsafe_code)]

mod client;
mod cpu;
mod sim_machine;

pub use client::{Answer, Client};
pub use cpu::{ModelCpu, boot, current};
pub use sim_machine::{Call, SimMachine};
