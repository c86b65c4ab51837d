//! The library for C in the package: DLL, import library, static library and header.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, process::Command};

use anyhow::{Result, ensure};

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
        let library = built.join(STATIC_LIBRARY);
        let names = built.join("import").join("neutral-names");
        files::write(&names, neutral_names(&files::read(&library)?, &workspace.target())?)?;
        let mut strip = Command::new("llvm-objcopy");
        strip.args(["--strip-debug", "--enable-deterministic-archives", "--redefine-syms"]).arg(names);
        run::quiet(strip.args([library, folder.join(STATIC_LIBRARY)]))?;
    }
    Ok([DLL, IMPORT_LIBRARY, STATIC_LIBRARY])
}

/// Returns the symbols of a static library that rustc named by a temporary folder in `target`, each with a name that is
/// the same in every build: what describes the imports from a DLL.
fn neutral_names(library: &[u8], target: &Path) -> Result<String> {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let folder: String = target.to_string_lossy().chars().map(letter).collect();
    let mut neutral: BTreeMap<String, &str> = BTreeMap::new();
    // Names are between zeros, in the symbol tables.
    for name in library.split(|byte| *byte == 0).filter_map(|bytes| str::from_utf8(bytes).ok()) {
        let is_name = name.chars().all(|one| letter(one) == one);
        let Some((start, rest)) = name.split_once(&folder).filter(|_| is_name) else { continue };
        // A random part of six characters.
        let Some(end) = rest.split_once("_rustc").and_then(|(_, end)| end.get(6..)) else { continue };
        let other = neutral.insert(format!("{start}halprof{end}"), name);
        ensure!(other.is_none_or(|other| other == name), "{name} and {other:?} are the imports of one DLL");
    }
    let mut lines = String::new();
    for (neutral, name) in neutral {
        writeln!(lines, "{name} {neutral}")?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_have_names_without_the_folder_of_the_build() {
        let library =
            b"\x12\0\0\0___a_b_target_x_rustcXBn8L0_pdh_dll_imports_lib_iname\0___a_b_target_x_rustcXBn8L0_tdh_dll\0\
            __D__a_rust_rustcCZpsZ3_pdh_dll\0main\0___a_b_target_x_rustcXBn8L0_tdh_dll\0";
        let names = neutral_names(library, Path::new("/a/b/target")).unwrap();
        assert_eq!(
            names,
            "___a_b_target_x_rustcXBn8L0_pdh_dll_imports_lib_iname __halprof_pdh_dll_imports_lib_iname\n\
             ___a_b_target_x_rustcXBn8L0_tdh_dll __halprof_tdh_dll\n"
        );
        let twice = b"___a_b_target_x_rustc000000_pdh_dll\0___a_b_target_x_rustc111111_pdh_dll\0";
        assert!(neutral_names(twice, Path::new("/a/b/target")).is_err());
    }
}
