//! Tests that need the bench: those of `tests/tests/consumers`.

use std::process::Command;

use anyhow::Result;
use xtask::{artifacts, package, workspace::Workspace};

/// Builds what the bench runs, and returns the command of the tests that these arguments of the test program choose.
pub fn tests(workspace: &Workspace, words: &[&str]) -> Result<Command> {
    artifacts::build(workspace)?;
    package::make(workspace)?; // `client install` refuses an unsigned driver
    let mut tests = workspace.cargo("test");
    tests.args(["--locked", "--package", "tests", "--test", "consumers", "--", "--test-threads=1"]).args(words);
    Ok(tests)
}
