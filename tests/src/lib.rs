//! The bench for end-to-end tests and the demo: client.exe and halprof.sys as they ship.
//!
//! On Linux they run under Wine, in a prefix that `cargo xtask` made, with the lab behind the driver: a model of
//! the processor's performance monitoring unit and the kernel functions that Wine lacks. On Windows they run on the
//! machine itself: what asks nothing of the model ([`Machine`]).

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
pub use target::{Function, SHARES, Says, Target};
pub use walk::{Image, Reach};
pub use wine::{Wine, artifacts, package};
