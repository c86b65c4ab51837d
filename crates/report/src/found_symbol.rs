//! What is found of an address in a file with symbols, and why nothing is found.

use std::path::{Path, PathBuf};

use recording::printable;
use rustc_hash::FxHashSet;

use crate::dwarf::CodeFrame;
use crate::modules::ModuleId;
use crate::processes::UNKNOWN_NAME;

/// What the symbols of a module lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The module.
    pub module: ModuleId,
    /// The reason.
    pub reason: Reason,
}

/// Why no symbols were found, or why the found ones can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// No symbol file exists.
    #[error("no file with symbols was found")]
    NotFound,
    /// The recording does not identify the build, so no file can be verified.
    #[error("the recording does not say which build of the module was loaded")]
    UnknownBuild,
    /// The file is from another build than the recorded one.
    #[error("{} is from another build", .0.display())]
    OtherBuild(PathBuf),
    /// The file is used, but nothing tells it from another build.
    #[error("{} cannot be verified: it has no time stamp of its own and names no PDB, so another build can look the same", .0.display())]
    Unverified(PathBuf),
    /// The image has names of exported functions only.
    #[error("the image names exported functions only; other code is shown as module+offset")]
    OnlyExports,
    /// The file cannot be read.
    #[error("{} cannot be read: {cause}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        cause: String,
    },
}

/// Returns that a file cannot be read.
pub(crate) fn unreadable(path: &Path, cause: String) -> Reason {
    Reason::Unreadable { path: path.to_owned(), cause }
}

/// A function with its address relative to the base of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSymbol {
    pub address: u32,
    pub size: Option<u32>,
    /// The name, if the file has one.
    pub name: Option<FoundName>,
    /// Functions that the compiler inlined at the address, each of them into the one before it.
    pub inlined: Vec<String>,
}

/// The name of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundName {
    /// The demangled name.
    pub text: String,
    /// Number of other functions with the same address: the linker folded them into one, because their code is equal.
    pub folded: u32,
}

impl FoundName {
    /// Creates a name that is one of `all` names of its address. Names that differ in their decoration only are one.
    pub fn of(text: &str, all: impl Iterator<Item = String>) -> Self {
        let others: FxHashSet<String> = all.filter(|name| name != text).collect();
        let text = printable(text).into_owned();
        Self { text, folded: u32::try_from(others.len()).unwrap_or(u32::MAX) }
    }
}

/// A line of source code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// Path of the file, as the compiler recorded it.
    pub file: String,
    /// Number of the line.
    pub line: u32,
    /// Function of the line, if it is inlined.
    pub inlined: Option<String>,
}

/// Returns the names of the inlined functions among `frames`. These begin with the innermost function, and end with the
/// one that has the code.
pub(crate) fn inlined(mut frames: Vec<CodeFrame>) -> Vec<String> {
    frames.pop();
    frames.into_iter().rev().map(|frame| frame.function.unwrap_or_else(|| UNKNOWN_NAME.to_owned())).collect()
}
