//! Audits halprof.sys, and client.exe where it runs elevated, as files: the requirements of
//! Windows, and properties of the code that hold without running it.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod file;
mod guarded;
mod header;
mod imports;
mod init;
mod levels;
mod libraries;
mod panics;
mod paths;
mod program_size;
mod requests;
mod resources;
