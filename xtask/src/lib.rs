//! What every program of `cargo xtask` uses: the command line, the build, the test bench, and calls of other programs.

#![forbid(unsafe_code)]
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate, reason = "only the programs of xtask use it")]

pub mod artifacts;
pub mod bench;
pub mod checks;
#[cfg(test)]
mod circles;
pub mod command_line;
pub mod demo;
#[cfg(test)]
mod documents;
pub mod elevated;
pub mod files;
pub mod findings;
pub mod import_library;
pub mod installed;
pub mod interrupts;
mod kit;
pub mod lab;
mod load_configuration;
pub mod package;
pub mod prefix;
pub mod prerequisites;
pub mod program;
pub mod run;
#[cfg(test)]
mod test_targets;
pub mod tools;
#[cfg(test)]
mod walks;
mod wdk_port;
pub mod workspace;
