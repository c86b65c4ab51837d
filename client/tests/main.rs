//! The client as a program. One program, because each is linked anew.

mod closed_pipe;
#[cfg(target_os = "linux")]
mod colors;
mod without_driver;
