//! Prerequisites of the commands.
//!
//! On Debian and its derivatives everything missing is installed: packages with apt-get, targets and components with
//! rustup. If nothing is missing this takes a few milliseconds, because it looks for files and does not call the
//! package manager. On Windows, wdk-build finds the WDK or explains what is missing; only parts of the Rust toolchain
//! are installed.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    artifacts::{GNU, MSVC},
    import_library::IMPORT_LIBRARIES,
    kit::Clang,
    run,
    workspace::Workspace,
};

/// Time limit for an installation, which downloads packages.
const INSTALL_LIMIT: Duration = Duration::from_mins(45);

/// A Debian package.
struct Package {
    name: &'static str,
    reason: &'static str,
    present: fn() -> bool,
}

/// What the comparison with libpfm4 needs.
const LIBPFM4: &[Package] = &[
    Package {
        name: "libpfm4-dev",
        reason: "encodes events independently",
        present: || Path::new("/usr/include/perfmon/pfmlib.h").is_file(),
    },
    Package { name: "gcc", reason: "compiles the program that asks it", present: || on_path("cc") },
];

/// What opens the files that `package` makes.
const ARCHIVES: &[Package] = &[
    Package { name: "cabextract", reason: "unpacks CAB files", present: || on_path("cabextract") },
    Package { name: "unzip", reason: "unpacks zip files", present: || on_path("unzip") },
    Package { name: "llvm", reason: "has llvm-readobj", present: || on_path("llvm-readobj") },
];

/// What compiles and runs the programs that count inside themselves.
const COUNTERS: &[Package] = &[
    Package {
        name: "g++-mingw-w64-x86-64-posix",
        reason: "compiles google/benchmark",
        present: || on_path("x86_64-w64-mingw32-g++-posix"),
    },
    Package { name: "dpkg-dev", reason: "unpacks its source package", present: || on_path("dpkg-source") },
    Package { name: "gcc", reason: "compiles a stand-in for the library", present: || on_path("cc") },
    Package { name: "python3", reason: "runs the example in Python", present: || on_path("python3") },
    Package { name: "mono-mcs", reason: "compiles the example in C#", present: || on_path("mcs") },
    Package { name: "mono-runtime", reason: "runs it", present: || on_path("mono") },
    Package {
        name: "libmono-system-core4.0-cil",
        reason: "is a part of its runtime",
        present: || Path::new("/usr/lib/mono/4.5/System.Core.dll").exists(),
    },
];

/// What opens the exports of recordings.
const EXPORTS: &[Package] = &[
    GO,
    Package {
        name: "chromium",
        reason: "opens pages and speedscope",
        present: || Path::new("/usr/bin/chromium").is_file(),
    },
    Package { name: "nodejs", reason: "controls Chromium", present: || on_path("node") },
    Package { name: "npm", reason: "installs speedscope", present: || on_path("npm") },
    Package { name: "python3-pip", reason: "installs flameshow and gprof2dot", present: || on_path("pip3") },
];

/// What makes profiles for compilers.
const PROFILES: &[Package] = &[
    Package {
        name: "llvm-19",
        reason: "makes a profile for compilers of last branches, and reads types of PDBs",
        present: || on_path("llvm-profgen-19") && on_path("llvm-objcopy-19") && on_path("llvm-pdbutil-19"),
    },
    Package { name: "clang-19", reason: "compiles with that profile", present: || on_path("clang-19") },
    Package { name: "lld-19", reason: "links what it compiles", present: || on_path("ld.lld-19") },
];

/// Decodes profiles.
const GO: Package = Package { name: "golang-go", reason: "has pprof", present: || on_path("go") };

/// What checks the dashboard and what the agent sends. promtool is not among them: it is unpacked only, because the
/// installation of its package would start a server.
const MONITORING: &[Package] = &[
    Package { name: "nodejs", reason: "runs the compiler of TypeScript", present: || on_path("node") },
    Package { name: "npm", reason: "installs it and Grafana's types", present: || on_path("npm") },
    GO,
    Package { name: "python3-pip", reason: "installs a collector of OpenTelemetry", present: || on_path("pip3") },
];

const PACKAGES: &[Package] = &[
    Package { name: "wine64", reason: "runs the driver and the client", present: wine_prefix::is_installed },
    Package {
        name: "libclang-dev",
        reason: "bindgen reads the kernel's headers with it",
        present: || Clang::find().is_some(),
    },
    Package {
        name: "llvm",
        reason: "llvm-nm and llvm-dlltool make import libraries",
        present: || on_path("llvm-nm") && on_path("llvm-dlltool"),
    },
    Package {
        name: "mingw-w64-x86-64-dev",
        reason: "provides the kernel's headers and the names of its exports",
        present: || IMPORT_LIBRARIES.iter().all(|library| library.source().is_file()),
    },
    Package {
        name: "gcc-mingw-w64-x86-64-win32",
        reason: "links the programs that run under Wine",
        present: || on_path("x86_64-w64-mingw32-gcc"),
    },
    Package { name: "openssl", reason: "makes the certificate for test signing", present: || on_path("openssl") },
    Package {
        name: "osslsigncode",
        reason: "signs the driver for tests and verifies the signature",
        present: || on_path("osslsigncode"),
    },
];

/// A target or component of the Rust toolchain. If `file` exists below the toolchain's root, it is installed.
struct ToolchainPart {
    kind: &'static str,
    name: &'static str,
    reason: &'static str,
    file: &'static str,
}

const DRIVER_TARGET: ToolchainPart =
    ToolchainPart { kind: "target", name: MSVC, reason: "the driver", file: "lib/rustlib/x86_64-pc-windows-msvc/lib" };

const PROGRAM_TARGET: ToolchainPart = ToolchainPart {
    kind: "target",
    name: GNU,
    reason: "the client and the test bench",
    file: "lib/rustlib/x86_64-pc-windows-gnu/lib",
};

const CLIPPY: ToolchainPart =
    ToolchainPart { kind: "component", name: "clippy", reason: "the lints", file: "bin/cargo-clippy" };
const RUSTFMT: ToolchainPart =
    ToolchainPart { kind: "component", name: "rustfmt", reason: "the format check", file: "bin/cargo-fmt" };

/// Installs what `build`, `package` and `demo` need.
pub fn for_building(workspace: &Workspace) -> Result<()> {
    system_packages(workspace)?;
    toolchain_parts(if cfg!(windows) { &[DRIVER_TARGET] } else { &[DRIVER_TARGET, PROGRAM_TARGET] })
}

/// Installs what `test` needs.
pub fn for_testing(workspace: &Workspace) -> Result<()> {
    for_building(workspace)?;
    toolchain_parts(&[CLIPPY, RUSTFMT])
}

/// Installs libpfm4 with its headers, and a C compiler, if they are missing.
pub fn for_libpfm4(workspace: &Workspace) -> Result<()> {
    packages(workspace, LIBPFM4)
}

/// Installs the programs that open CAB files, zip files and programs of Windows, if they are missing.
pub fn for_packages(workspace: &Workspace) -> Result<()> {
    packages(workspace, ARCHIVES)
}

/// Installs the compilers and runtimes of programs that count inside themselves, if they are missing.
pub fn for_counters(workspace: &Workspace) -> Result<()> {
    packages(workspace, COUNTERS)
}

/// Installs the programs that open exports of recordings, if they are missing.
pub fn for_exports(workspace: &Workspace) -> Result<()> {
    packages(workspace, EXPORTS)
}

/// Installs what makes profiles for compilers, if it is missing.
pub fn for_profiles(workspace: &Workspace) -> Result<()> {
    packages(workspace, PROFILES)
}

/// Installs what checks the dashboard against Grafana's types, if it is missing.
pub fn for_monitoring(workspace: &Workspace) -> Result<()> {
    packages(workspace, MONITORING)
}

fn system_packages(workspace: &Workspace) -> Result<()> {
    if cfg!(windows) { Ok(()) } else { packages(workspace, PACKAGES) }
}

/// Installs those of these packages that are missing.
fn packages(workspace: &Workspace, wanted: &[Package]) -> Result<()> {
    let missing: Vec<&Package> = wanted.iter().filter(|package| !(package.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("Missing on this system:");
    for package in &missing {
        println!("  {:28} {}", package.name, package.reason);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    ensure!(
        on_path("apt-get"),
        "this system has no apt-get: install the packages above another way (the names are Debian's), then run the \
         command again"
    );
    if run::output(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!(
            "only root can install packages. Run this line, then repeat the command:\n\n    {}\n",
            apt_command_line(&names)
        );
    }
    install(workspace, &names)?;
    match missing.iter().find(|package| !(package.present)()) {
        None => Ok(()),
        Some(package) => bail!("{} is installed, but its files are not where Debian 12 puts them", package.name),
    }
}

fn install(workspace: &Workspace, names: &[&str]) -> Result<()> {
    println!("Installing them with apt-get:");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // Another apt-get may hold the lock, for example on a machine that has just booted.
        command.args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run::logged("package lists", &mut apt(&["update"]), &workspace.log("apt-update"), INSTALL_LIMIT)?;
    let mut command = apt(&["install", "-y", "--no-install-recommends"]);
    run::logged("packages", command.args(names), &workspace.log("apt-install"), INSTALL_LIMIT)
}

/// Returns the command line that installs the packages, for users without root.
fn apt_command_line(names: &[&str]) -> String {
    format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {}", names.join(" "))
}

fn toolchain_parts(parts: &[ToolchainPart]) -> Result<()> {
    let root =
        run::output(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).args(["--print", "sysroot"]))?;
    let root = PathBuf::from(root.trim());
    for part in parts.iter().filter(|part| !is_installed(&root, part)) {
        println!("The Rust {} {} is missing ({}); rustup adds it:", part.kind, part.name, part.reason);
        run::verbose(Command::new("rustup").args([part.kind, "add", part.name])).with_context(|| {
            format!("this Rust toolchain lacks the {} {}, and rustup cannot add it", part.kind, part.name)
        })?;
        ensure!(
            is_installed(&root, part),
            "rustup added {}, but not to the toolchain in {}",
            part.name,
            root.display()
        );
    }
    Ok(())
}

fn is_installed(root: &Path, part: &ToolchainPart) -> bool {
    let path = root.join(part.file);
    path.exists() || path.with_extension(env::consts::EXE_EXTENSION).exists()
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_without_root_get_one_line_that_installs_everything() {
        assert_eq!(
            apt_command_line(&["wine64", "llvm"]),
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends wine64 llvm"
        );
    }

    #[test]
    fn an_unknown_program_is_not_on_the_path() {
        assert!(!on_path("no-program-has-this-name"));
    }
}
