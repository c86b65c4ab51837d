//! The model as the machine under [`pmu`] and [`engine`], natively in one process: what the driver is to
//! the kernel, a [`Board`] is to tests.
//!
//! A #GP of the model is a panic here, with the access that raised it: on Windows it would be a bug check.

#![forbid(unsafe_code)]

mod board;
mod client;
mod cpu;

pub use board::{Board, Call};
pub use client::{Answer, Client};
pub use cpu::ModelCpu;
