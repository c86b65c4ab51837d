//! The C ABI of halprof: `halprof.dll`, a static library, and `include/halprof.h`.
//!
//! The functions of [`functions`] check their arguments, find the group of a handle, and translate results. No panic
//! leaves them. A test generates the header from this crate with cbindgen and compares it.

mod calls;
mod failure;
mod functions;
mod group;
mod library;
mod open_groups;
mod outcome;
#[cfg(test)]
mod tests;
