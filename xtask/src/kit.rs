//! A stand-in for the Windows Driver Kit, for building the driver on Linux with the original `wdk` crates.
//!
//! It consists of the content root that wdk-build looks for (headers and import libraries of mingw-w64, corrected by
//! the files in xtask/kit), ported copies of two crates that do not compile on Linux, and a linker for reproducible
//! builds. Cargo's `paths` substitutes the copies for the registry's crates; unlike `[patch]` it does not change
//! Cargo.lock.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt::Write,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::UNIX_EPOCH,
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::{
    files,
    import_library::{IMPORT_LIBRARIES, ImportLibrary},
    run,
    wdk_port::{self, EDITS},
    workspace::Workspace,
};

/// Increased when the code here makes a different kit of the same inputs.
const KIT_VERSION: u32 = 1;

/// Name of the version folder. wdk-build uses the newest one that begins with `10.`.
const CONTENT_VERSION: &str = "10.0.26100.0";

/// The header folder of Debian's mingw-w64.
const MINGW_HEADERS: &str = "/usr/share/mingw-w64/include";

/// Headers that override or extend mingw-w64's, with their paths below `Include/VERSION`.
const OVERLAY: &[(&str, &str)] = &[
    ("km/crt/intrin.h", include_str!("../kit/km/crt/intrin.h")),
    ("km/ntdef.h", include_str!("../kit/km/ntdef.h")),
    ("km/ntifs.h", include_str!("../kit/km/ntifs.h")),
    ("km/wdk_declarations.h", include_str!("../kit/km/wdk_declarations.h")),
];

/// File name and text of the linker. rustc chooses the linker flavor by the name.
const LINKER: (&str, &str) = ("lld-link", include_str!("../kit/lld-link"));

/// Headers of the compiler that take precedence over mingw-w64's of the same name, as those in the WDK's `km/crt` do.
const COMPILER_HEADERS: &[&str] = &["float.h", "limits.h", "stdarg.h", "stddef.h", "stdint.h"];

/// The crates that ported copies replace.
const PORTED: [&str; 2] = ["wdk-build", "windows-future"];

/// A complete kit.
pub struct Kit {
    folder: PathBuf,
    libclang: PathBuf,
}

/// A crate in cargo's registry.
struct CrateSource {
    name: &'static str,
    version: String,
    folder: PathBuf,
}

/// An installed LLVM with libclang and clang's own headers.
pub struct Clang {
    /// The folder of libclang.
    pub library: PathBuf,
    headers: PathBuf,
}

impl Kit {
    /// Returns the kit in target/kit. Makes it again if any of its inputs has changed.
    pub fn ensure(workspace: &Workspace) -> Result<Self> {
        let clang = Clang::find().context("no LLVM with libclang under /usr/lib")?;
        let sources = ported_sources(workspace)?;
        let kit = Self { folder: workspace.kit(), libclang: clang.library.clone() };

        let wanted = stamp(&sources, &clang)?;
        let stamp_file = kit.folder.join("stamp");
        if fs::read_to_string(&stamp_file).is_ok_and(|found| found == wanted) {
            return Ok(kit);
        }
        println!("Preparing the stand-in for the Windows Driver Kit in {}", kit.folder.display());
        files::remove_folder(&kit.folder)?;
        for source in &sources {
            kit.port(source)?;
        }
        kit.lay_out_headers(&clang)?;
        kit.make_libraries()?;
        make_program(&kit.folder.join(LINKER.0), LINKER.1)?;
        files::write(&stamp_file, wanted)?;
        Ok(kit)
    }

    /// Makes `command` use the kit. `command` is a cargo command that already has its subcommand.
    pub fn apply(&self, command: &mut Command) {
        let paths = PORTED.map(|name| format!("'{}'", self.folder.join(name).display()));
        command
            .arg("--config")
            .arg(format!("paths=[{}]", paths.join(",")))
            .env("WDKContentRoot", &self.folder)
            .env("LIBCLANG_PATH", &self.libclang)
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_MSVC_LINKER", self.folder.join(LINKER.0));
    }

    fn port(&self, source: &CrateSource) -> Result<()> {
        let copy = self.folder.join(source.name);
        copy_folder(&source.folder, &copy)?;
        if source.name == "wdk-build" {
            return wdk_port::port(&copy).with_context(|| format!("cannot port {} {}", source.name, source.version));
        }
        // Only the crate `windows` uses windows-future, and on Linux it is empty, so an empty library suffices.
        let library = copy.join("src/lib.rs");
        files::write(&library, "#![no_std]\n")
    }

    fn lay_out_headers(&self, clang: &Clang) -> Result<()> {
        let include = self.folder.join("Include").join(CONTENT_VERSION);
        let (crt, shared) = (include.join("km/crt"), include.join("shared"));
        files::make_folder(&crt)?;
        files::make_folder(&shared)?;

        for (path, text) in OVERLAY {
            files::write(&include.join(path), text)?;
        }
        for header in files_in(&clang.headers)? {
            let name = header.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Newer versions of clang split stddef.h and stdarg.h into files with this prefix.
            if COMPILER_HEADERS.contains(&name.as_str()) || name.starts_with("__std") {
                link(&header, &crt.join(name))?;
            }
        }
        // The kernel's headers are in `ddk` and take precedence. The overlay replaces intrin.h.
        let mut taken = BTreeSet::from([OsString::from("intrin.h")]);
        for folder in [Path::new(MINGW_HEADERS).join("ddk"), PathBuf::from(MINGW_HEADERS)] {
            for header in files_in(&folder)? {
                let name = header.file_name().unwrap_or_default().to_owned();
                if taken.insert(name.clone()) {
                    link(&header, &shared.join(name))?;
                }
            }
        }
        Ok(())
    }

    fn make_libraries(&self) -> Result<()> {
        let folder = self.folder.join("Lib").join(CONTENT_VERSION).join("km/x64");
        files::make_folder(&folder)?;
        for library in IMPORT_LIBRARIES {
            library.make(&folder)?;
        }
        // wdk-build links this library for the stack cookies of C code. Rust code does not use it, so an empty archive
        // suffices.
        files::write(&folder.join("BufferOverflowFastFailK.lib"), "!<arch>\n")
    }
}

impl Clang {
    /// Finds the newest installed version.
    pub fn find() -> Option<Self> {
        let versions = fs::read_dir("/usr/lib").ok()?.filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.strip_prefix("llvm-")?.parse().ok()?;
            Some((version, Self::within(&path)?))
        });
        versions.max_by_key(|(version, _)| *version).map(|(_, clang)| clang)
    }

    fn within(llvm: &Path) -> Option<Self> {
        let library = llvm.join("lib");
        let resources = files_in(&library.join("clang")).ok()?;
        let folders = resources.into_iter().map(|version| version.join("include"));
        let headers = folders.rev().find(|headers| headers.join("stddef.h").is_file())?;
        library.join("libclang.so").exists().then_some(Self { library, headers })
    }
}

/// Returns the sources of the crates in [`PORTED`] in cargo's registry.
fn ported_sources(workspace: &Workspace) -> Result<Vec<CrateSource>> {
    let metadata = run::output(workspace.cargo("metadata").args(["--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("cargo metadata has no packages")?;
    PORTED.into_iter().map(|name| source(packages, name)).collect()
}

/// Returns the source of the only package called `name`.
fn source(packages: &[Value], name: &'static str) -> Result<CrateSource> {
    fn text<'a>(package: &'a Value, key: &str) -> Option<&'a str> {
        package.get(key)?.as_str()
    }
    let found: Vec<_> = packages.iter().filter(|package| text(package, "name") == Some(name)).collect();
    let [package] = found[..] else {
        return Err(anyhow!("Cargo.lock has {} versions of {name}; the kit needs exactly one", found.len()));
    };
    let manifest = text(package, "manifest_path").context("a package without manifest_path")?;
    let folder = Path::new(manifest).parent().context("a manifest without a folder")?.to_path_buf();
    let version = text(package, "version").unwrap_or_default().to_owned();
    Ok(CrateSource { name, version, folder })
}

/// Returns a description of all inputs of the kit. A kit is outdated if its stamp differs.
fn stamp(sources: &[CrateSource], clang: &Clang) -> Result<String> {
    let mut stamp = description(sources, clang);
    // A new version of a Debian package changes the time or size of its files.
    let kernel_header = Path::new(MINGW_HEADERS).join("ddk/ntifs.h");
    let libraries = IMPORT_LIBRARIES.iter().map(ImportLibrary::source);
    for path in std::iter::once(kernel_header).chain(libraries) {
        let file = fs::metadata(&path).with_context(|| format!("{} is missing", path.display()))?;
        let time = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        writeln!(stamp, "{} {} {}", path.display(), file.len(), time.as_secs())?;
    }
    Ok(stamp)
}

/// Returns the part of the stamp that does not depend on mingw-w64's files.
fn description(sources: &[CrateSource], clang: &Clang) -> String {
    let edits: Vec<_> = EDITS.iter().map(|edit| (edit.file, edit.anchor, edit.replacement)).collect();
    let libraries: Vec<_> = IMPORT_LIBRARIES.iter().map(|it| (it.module, it.additional, it.elsewhere)).collect();
    let mut lines = vec![
        format!("kit {KIT_VERSION}"),
        format!("overlay {:016x} edits {:016x} libraries {:016x}", digest(OVERLAY), digest(&edits), digest(&libraries)),
        format!("linker {:016x}", digest(&LINKER)),
        format!("headers {}", clang.headers.display()),
    ];
    lines
        .extend(sources.iter().map(|source| format!("{} {} {}", source.name, source.version, source.folder.display())));
    lines.join("\n") + "\n"
}

fn digest<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the entries of a folder, sorted by name. An empty folder is an error.
fn files_in(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let context = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(context)?;
    let paths: std::io::Result<BTreeSet<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let paths = paths.with_context(context)?;
    ensure!(!paths.is_empty(), "{} is empty", folder.display());
    Ok(paths)
}

/// Copies a package without the marker files of cargo's registry, which begin with a dot.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    files::make_folder(to)?;
    for path in files_in(from)? {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            copy_folder(&path, &to.join(name))?;
        } else if !name.to_string_lossy().starts_with('.') {
            files::copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Writes an executable script.
#[cfg(unix)]
fn make_program(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    files::write(path, text)?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, executable).with_context(|| format!("cannot make {} executable", path.display()))
}

/// Never called: on Windows the WDK is used.
#[cfg(not(unix))]
fn make_program(path: &Path, text: &str) -> Result<()> {
    files::write(path, text)
}

#[cfg(unix)]
fn link(original: &Path, link: &Path) -> Result<()> {
    std::os::unix::fs::symlink(original, link).with_context(|| format!("cannot make {}", link.display()))
}

/// Never called: on Windows the WDK is used.
#[cfg(not(unix))]
fn link(original: &Path, link: &Path) -> Result<()> {
    fs::hard_link(original, link).with_context(|| format!("cannot make {}", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn packages() -> Vec<Value> {
        vec![
            json!({"name": "wdk-build", "version": "0.6.0", "manifest_path": "/r/wdk-build-0.6.0/Cargo.toml"}),
            json!({"name": "twice", "version": "1.0.0", "manifest_path": "/r/twice-1.0.0/Cargo.toml"}),
            json!({"name": "twice", "version": "2.0.0", "manifest_path": "/r/twice-2.0.0/Cargo.toml"}),
        ]
    }

    #[test]
    fn the_source_of_a_crate_is_found_by_its_manifest() {
        let source = source(&packages(), "wdk-build").unwrap();
        assert_eq!((source.version.as_str(), source.folder.as_path()), ("0.6.0", Path::new("/r/wdk-build-0.6.0")));
    }

    #[test]
    fn a_missing_or_ambiguous_package_is_an_error_with_the_number_of_matches() {
        assert!(source(&packages(), "absent").err().unwrap().to_string().contains("0 versions of absent"));
        assert!(source(&packages(), "twice").err().unwrap().to_string().contains("2 versions of twice"));
    }

    #[test]
    fn the_digest_depends_on_every_header() {
        let changed: Vec<_> = OVERLAY.iter().map(|(path, _)| (*path, "other")).collect();
        assert_ne!(digest(OVERLAY), digest(changed.as_slice()));
        assert_eq!(digest(OVERLAY), digest(OVERLAY.to_vec().as_slice()));
    }

    #[test]
    fn the_stamp_depends_on_crate_versions_and_on_the_compiler() {
        let source = |version: &str| [CrateSource { name: "a", version: version.to_owned(), folder: "/r/a".into() }];
        let clang = |headers: &str| Clang { library: "/l".into(), headers: headers.into() };
        let stamp = description(&source("1.0.0"), &clang("/h/14"));
        assert_eq!(stamp, description(&source("1.0.0"), &clang("/h/14")));
        assert_ne!(stamp, description(&source("1.0.1"), &clang("/h/14")));
        assert_ne!(stamp, description(&source("1.0.0"), &clang("/h/15")));
    }
}
