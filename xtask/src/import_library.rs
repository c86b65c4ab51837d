//! Import libraries in Microsoft's format, made from the names in mingw-w64's import libraries.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{files, run};

/// The library folder of Debian's mingw-w64.
const MINGW_LIBRARIES: &str = "/usr/x86_64-w64-mingw32/lib";

/// One import library of the kit.
pub struct ImportLibrary {
    /// File name without extension, the same in mingw-w64 and in the WDK.
    pub name: &'static str,
    /// The module that exports the names.
    pub module: &'static str,
    /// Functions of the module that mingw-w64's library lacks.
    pub additional: &'static [&'static str],
    /// Names that another library of the kit provides.
    pub elsewhere: &'static [&'static str],
}

/// The libraries that wdk-build links WDM drivers with. Each name is in one of them only.
///
/// `KeQueryPerformanceCounter` is imported from hal.dll: Windows exports it from both modules, Wine only from hal.dll.
pub const IMPORT_LIBRARIES: &[ImportLibrary] = &[
    ImportLibrary {
        name: "ntoskrnl",
        module: "ntoskrnl.exe",
        additional: &[
            "ExAllocatePool2",
            "MmMapIoSpaceEx",
            "__C_specific_handler",
            "__chkstk",
            "memcmp",
            "memcpy",
            "memmove",
            "memset",
        ],
        elsewhere: &["KeQueryPerformanceCounter"],
    },
    ImportLibrary { name: "hal", module: "hal.dll", additional: &["KeQueryPerformanceCounter"], elsewhere: &[] },
    ImportLibrary { name: "wmilib", module: "wmilib.sys", additional: &[], elsewhere: &[] },
];

impl ImportLibrary {
    /// Returns the path of mingw-w64's library of this name.
    pub fn source(&self) -> PathBuf {
        Path::new(MINGW_LIBRARIES).join(format!("lib{}.a", self.name))
    }

    /// Creates NAME.lib in `folder`, and the NAME.def that it is made from.
    pub fn make(&self, folder: &Path) -> Result<()> {
        self.make_from(&self.source(), folder)
    }

    /// Does this with the names in the library `source`, which mingw-w64's tools made.
    fn make_from(&self, source: &Path, folder: &Path) -> Result<()> {
        let symbols = run::output(Command::new("llvm-nm").arg("--quiet").arg(source))?;
        let exports = self.exports(&symbols);
        ensure!(exports.len() > self.additional.len(), "{} contains no imports", source.display());

        let definition = folder.join(self.name).with_extension("def");
        files::write(&definition, self.definition(&exports))?;
        run::output(
            Command::new("llvm-dlltool")
                .args(["-m", "i386:x86-64", "-d"])
                .arg(&definition)
                .arg("-l")
                .arg(definition.with_extension("lib")),
        )?;
        Ok(())
    }

    /// Returns the exported names in the output of `llvm-nm`, each with whether it is code.
    ///
    /// An import is a symbol `__imp_NAME`. A function also has a thunk `NAME`; data has none.
    fn exports<'a>(&self, symbols: &'a str) -> BTreeMap<&'a str, bool> {
        let mut imports = BTreeSet::new();
        let mut thunks = BTreeSet::new();
        for line in symbols.lines() {
            let [_, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
            match name.strip_prefix("__imp_") {
                Some(name) => imports.insert(name),
                None => kind == "T" && thunks.insert(name),
            };
        }
        let found = imports.into_iter().filter(|name| !self.elsewhere.contains(name));
        let mut exports: BTreeMap<_, _> = found.map(|name| (name, thunks.contains(name))).collect();
        exports.extend(self.additional.iter().map(|name| (*name, true)));
        exports
    }

    fn definition(&self, exports: &BTreeMap<&str, bool>) -> String {
        let lines =
            exports.iter().map(|(name, code)| if *code { format!("{name}\n") } else { format!("{name} CONSTANT\n") });
        format!("LIBRARY {}\nEXPORTS\n{}", self.module, lines.collect::<String>())
    }
}

/// Creates an import library of a DLL of ours in `folder`, given the one in mingw-w64's format, and returns its path.
pub fn of_dll(module: &'static str, source: &Path, folder: &Path) -> Result<PathBuf> {
    let name = module.strip_suffix(".dll").unwrap_or(module);
    files::make_folder(folder)?;
    ImportLibrary { name, module, additional: &[], elsewhere: &[] }.make_from(source, folder)?;
    Ok(folder.join(name).with_extension("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "
a.o:
00000000 I __imp_KeQueryPerformanceCounter
00000000 T KeQueryPerformanceCounter

b.o:
00000000 b .bss
         U _head_lib
00000000 I __imp_IoCreateDevice
00000000 T IoCreateDevice

c.o:
00000000 I __imp_SeExports
";

    #[test]
    fn an_import_without_a_thunk_is_data() {
        let library = ImportLibrary { name: "n", module: "n.exe", additional: &["memset"], elsewhere: &[] };
        assert_eq!(
            library.definition(&library.exports(SYMBOLS)),
            "LIBRARY n.exe\nEXPORTS\nIoCreateDevice\nKeQueryPerformanceCounter\nSeExports CONSTANT\nmemset\n"
        );
    }

    #[test]
    fn a_name_that_another_library_provides_is_left_out() {
        let [kernel, hal, ..] = IMPORT_LIBRARIES else { panic!("two libraries at least") };
        assert!(!kernel.exports(SYMBOLS).contains_key("KeQueryPerformanceCounter"));
        assert!(hal.exports("").contains_key("KeQueryPerformanceCounter"));
    }
}
