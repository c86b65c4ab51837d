//! Whether a file is of the recorded build of its module.
//!
//! An image is known by its TimeDateStamp and SizeOfImage, and by the ID of the PDB that it names. A toolchain that
//! writes the same time stamp into every image and no ID leaves the size alone, which counts in pages: successive
//! releases of a program can agree in it. The file is then used, because it mostly is the right one, and reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use debugid::DebugId;
use recording::Module;

use crate::found_symbol::{Reason, unreadable};
use crate::pe::PeHeaders;

/// Time stamps that say nothing about the build: zero of Go and of reproducible builds with GNU ld and LLD for MinGW,
/// and the constant of Delphi until version 2009.
const SAME_IN_ALL_BUILDS: [u32; 2] = [0, 0x2A42_5E19];

/// Checks that the file `path` is the recorded build of `module`, as far as the recording identifies it.
pub fn check_image(path: &Path, module: &Module) -> Result<(), Reason> {
    if !path.is_file() {
        return Err(Reason::NotFound);
    }
    let headers = PeHeaders::read(path).map_err(|error| unreadable(path, error.to_string()))?;
    let headers = headers.map_err(|error| unreadable(path, error.to_string()))?;
    let is_same_image = (headers.timestamp, headers.image_size) == (module.timestamp, module.image_size);
    // A recording can have the ID from elsewhere than the image, so one without an ID says nothing.
    let is_same_pdb =
        module.debug.as_ref().is_none_or(|recorded| headers.debug.is_some_and(|debug| debug.id == recorded.id));
    if is_same_image && is_same_pdb { Ok(()) } else { Err(Reason::OtherBuild(path.to_owned())) }
}

/// Returns the path of a module's PDB and its build ID.
pub fn debug_file(module: &Module) -> Option<(&str, DebugId)> {
    let debug = module.debug.as_ref()?;
    Some((&debug.name, DebugId::from_breakpad(&debug.id).ok()?))
}

/// A file that is used although it can be of another build than the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedFile {
    pub path: PathBuf,
    /// Size and last change when it was read.
    version: Option<(u64, SystemTime)>,
}

impl UnverifiedFile {
    /// Creates one for the file `path` that is about to be read; `None` if the recording tells the builds of `module`
    /// apart.
    pub fn of(path: &Path, module: &Module) -> Option<Self> {
        let names_pdb = debug_file(module).is_some_and(|(_, id)| !id.uuid().is_nil());
        let is_verified = names_pdb || !SAME_IN_ALL_BUILDS.contains(&module.timestamp);
        (!is_verified).then(|| Self { path: path.to_owned(), version: version(path) })
    }

    /// Returns whether the file is the one that was read.
    pub fn is_unchanged(&self) -> bool {
        self.version.is_some() && self.version == version(&self.path)
    }
}

fn version(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
