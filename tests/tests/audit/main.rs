//! halprof.sys as a file: what Windows asks of it, and what can be shown of its code without running it.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod file;
mod header;
mod imports;
mod init;
mod levels;
mod panics;
