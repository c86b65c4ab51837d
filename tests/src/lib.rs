//! The bench for the end-to-end tests and the demo, which run client.exe and halprof.sys as they ship.
//!
//! On Linux they run under Wine, in a prefix that `cargo xtask` makes. The lab provides a model of the processor's
//! performance monitoring unit and the kernel functions that Wine lacks. On Windows the tests that do not need the
//! model run on the machine itself (see [`Machine`]).

mod lab;
mod machine;
mod pe;
mod probe;
mod program;
mod target;
mod walk;
mod wine;

pub use lab::Lab;
pub use machine::Machine;
pub use pe::{checksum, checksum_place};
pub use probe::{Probe, Reply, hex};
pub use program::Ran;
pub use target::{Description, Function, SHARES, Target};
pub use walk::{Image, Reach};
pub use wine::{Wine, artifacts, package};
