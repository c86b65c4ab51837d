//! The library for C in the package: DLL, import library, static library and header.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{copy_into, symbols};
use xtask::{artifacts, files, import_library, run, workspace::Workspace};

/// The DLL, and the import library for every linker.
pub const DLL: &str = "halprof.dll";
pub const IMPORT_LIBRARY: &str = "halprof.lib";

/// The static library: for mingw-w64's linker, or for Microsoft's.
pub const STATIC_LIBRARY: &str = if cfg!(windows) { "halprof_static.lib" } else { "libhalprof.a" };

/// The header, in the repository.
pub const HEADER: &str = "crates/halprof-c/include/halprof.h";

/// Copies the built files and the header to `folder`, as they are shipped. Returns the names of the built ones.
pub fn copy(workspace: &Workspace, folder: &Path) -> Result<[&'static str; 3]> {
    let built = workspace.artifacts();
    copy_into(&workspace.root().join(HEADER), folder)?;
    if cfg!(windows) {
        for name in [DLL, IMPORT_LIBRARY, STATIC_LIBRARY] {
            copy_into(&built.join(name), folder)?;
        }
    } else {
        symbols::strip(&built.join(DLL), &folder.join(DLL))?;
        // mingw-w64's own format of import libraries is not for Microsoft's linker, and this one is for both.
        let made = import_library::of_dll(DLL, &built.join(artifacts::GNU_IMPORT_LIBRARY), &built.join("import"))?;
        files::copy(&made, &folder.join(IMPORT_LIBRARY))?;
        // GNU's objcopy refuses members without sections, which rustc makes.
        let mut strip = Command::new("llvm-objcopy");
        strip.args(["--strip-debug", "--enable-deterministic-archives"]);
        run::quiet(strip.args([built.join(STATIC_LIBRARY), folder.join(STATIC_LIBRARY)]))?;
    }
    Ok([DLL, IMPORT_LIBRARY, STATIC_LIBRARY])
}
