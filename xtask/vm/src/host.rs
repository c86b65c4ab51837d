//! Programs of the host: where they are, and how they run with a time limit.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read, Seek},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use wait_timeout::ChildExt;

/// Time that a host's program has beyond the limit of what it runs in the guest: to connect and to end it.
pub const MARGIN: Duration = Duration::from_secs(90);

/// What a program of the host did.
pub struct Output {
    /// Exit code; `None` if it ran longer than its limit, or a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Returns the program with this name in the folders of `path`, a value of PATH.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path).map(|folder| folder.join(&file)).find(|file| file.is_file())
}

/// Runs a program to its end, or ends it after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<Output> {
    // Files instead of pipes: a program that the ended one has started would keep a pipe open.
    let (out, err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let program = command.get_program().display().to_string();
    let cannot = || format!("cannot run {program}");
    let mut child = command.spawn().with_context(cannot)?;
    let status = child.wait_timeout(limit).with_context(cannot)?;
    if status.is_none() {
        child.kill().with_context(cannot)?;
        child.wait().with_context(cannot)?;
    }
    Ok(Output { code: status.and_then(|status| status.code()), out: content(out)?, err: content(err)? })
}

fn content(mut file: File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
