//! The package, which the program [`PACKAGE`] makes.

use std::ffi::OsString;

use anyhow::Result;

use crate::{
    artifacts,
    command_line::Extras,
    prerequisites,
    program::{self, PACKAGE},
    workspace::Workspace,
};

/// The completion for bash. `vm` reads the verbs and options of the client in it.
pub const BASH_COMPLETION: &str = "client-completion.bash";

/// Builds everything and makes the package, with extras.
pub fn run(workspace: &Workspace, extras: &Extras) -> Result<()> {
    prerequisites::for_building(workspace)?;
    artifacts::build_beside(workspace, || program::build(workspace, PACKAGE))?;
    make_with(workspace, extras)
}

/// Makes the package from the built files, replacing an earlier one.
pub fn make_whole(workspace: &Workspace) -> Result<()> {
    make_with(workspace, &Extras::default())
}

/// Makes what runs of the package from the built files, replacing an earlier one. The files for the command line are
/// missing, because they need the client's tests, which take minutes to build.
pub fn make(workspace: &Workspace) -> Result<()> {
    make_with(workspace, &Extras { runnable: true, ..Extras::default() })
}

/// Makes the package from the built files, with extras.
pub fn make_with(workspace: &Workspace, extras: &Extras) -> Result<()> {
    program::call(workspace, PACKAGE, [OsString::from("package")].into_iter().chain(extras.words()))
}
