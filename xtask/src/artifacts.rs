//! Builds the files that run on Windows and collects them in one folder.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{files, kit::Kit, load_configuration, run, workspace::Workspace};

/// The target of the driver and of the test bench's no_std binaries, and of the client on Windows.
pub const MSVC: &str = "x86_64-pc-windows-msvc";
/// The target of the programs with std that run under Wine; mingw-w64 links them.
pub const GNU: &str = "x86_64-pc-windows-gnu";

/// The DLL that std takes random numbers from; Wine 8 lacks it.
pub const PRNG: &str = "bcryptprimitives.dll";

/// Packages that one call of cargo builds, for one target and with one profile.
pub struct Group {
    /// Cargo's name of the target.
    pub target: &'static str,
    /// Cargo's name of the profile, which is also the name of its folder.
    pub profile: &'static str,
    /// Package, file name in cargo's output, file name in the artifacts folder.
    pub files: &'static [(&'static str, &'static str, &'static str)],
    /// Whether the packages need the Windows Driver Kit.
    kit: bool,
    /// Name of the test stage that runs clippy on the packages.
    pub lints: &'static str,
}

const DRIVER: (&str, &str, &str) = ("driver", "halprof.dll", "halprof.sys");
/// The driver's debug information, for the tests that inspect the file and for reading crash dumps.
const DRIVER_SYMBOLS: (&str, &str, &str) = ("driver", "halprof.pdb", "halprof.pdb");
const CLIENT: (&str, &str, &str) = ("client", "client.exe", "client.exe");
/// The client's debug information, where the linker writes it to a file of its own.
const CLIENT_SYMBOLS: (&str, &str, &str) = ("client", "client.pdb", "client.pdb");
const AGENT: (&str, &str, &str) = ("halprof-agent", "halprof-agent.exe", "halprof-agent.exe");
/// The same of the agent. The linker names it by the crate.
const AGENT_SYMBOLS: (&str, &str, &str) = ("halprof-agent", "halprof_agent.pdb", "halprof-agent.pdb");

/// mingw-w64's import library of halprof.dll, under a name that says so.
pub const GNU_IMPORT_LIBRARY: &str = "libhalprof.dll.a";

/// The driver, before it is signed, and its debug information.
pub const DRIVER_FILES: [&str; 2] = [DRIVER.2, DRIVER_SYMBOLS.2];

/// The profile of the programs that are shipped.
const PROGRAM: &str = "program";

/// Strategies of Zstandard that are left out: recordings are compressed with level 1, which has the fastest. A level
/// that has one of these takes the next faster one.
const UNUSED_STRATEGIES: [&str; 7] = ["DFAST", "GREEDY", "LAZY", "LAZY2", "BTLAZY2", "BTOPT", "BTULTRA"];

/// The groups on Linux: the driver, the programs and the test bench, all of which run under Wine.
const ON_LINUX: &[Group] = &[
    Group {
        target: MSVC,
        profile: "driver",
        files: &[
            DRIVER,
            DRIVER_SYMBOLS,
            ("shim", "shim.dll", "shim.sys"),
            ("faulty-driver", "faulty_driver.dll", "faulty-driver.sys"),
            ("bcryptprimitives", PRNG, PRNG),
            ("workload", "workload.exe", "workload.exe"),
            ("workload", "workload.pdb", "workload.pdb"),
        ],
        kit: true,
        lints: "lints, driver",
    },
    Group { target: GNU, profile: PROGRAM, files: &[CLIENT, AGENT], kit: false, lints: "lints, programs" },
    Group {
        target: GNU,
        profile: "release",
        files: &[
            ("halprof-c", "halprof.dll", "halprof.dll"),
            ("halprof-c", "libhalprof.a", "libhalprof.a"),
            ("halprof-c", GNU_IMPORT_LIBRARY, GNU_IMPORT_LIBRARY),
            ("wine-host", "lab.dll", "lab.dll"),
            ("probe", "probe.exe", "probe.exe"),
            ("etw", "etw.dll", "etw.dll"),
            ("launcher", "launcher.exe", "launcher.exe"),
            ("processor-identity", "processor_identity.dll", "processor-identity.dll"),
            ("thread-counts", "thread-counts.exe", "thread-counts.exe"),
            ("thread-profiling", "thread_profiling.dll", "thread-profiling.dll"),
        ],
        kit: false,
        lints: "lints, library and bench",
    },
];

/// The groups on Windows: the driver, the programs and the library.
const ON_WINDOWS: &[Group] = &[
    Group { target: MSVC, profile: "driver", files: &[DRIVER, DRIVER_SYMBOLS], kit: true, lints: "lints, driver" },
    Group {
        target: MSVC,
        profile: PROGRAM,
        files: &[CLIENT, CLIENT_SYMBOLS, AGENT, AGENT_SYMBOLS],
        kit: false,
        lints: "lints, programs",
    },
    Group {
        target: MSVC,
        profile: "release",
        files: &[
            // The import library has the DLL's whole name, because `halprof.lib` is the static library.
            ("halprof-c", "halprof.dll", "halprof.dll"),
            ("halprof-c", "halprof.dll.lib", "halprof.lib"),
            ("halprof-c", "halprof.lib", "halprof_static.lib"),
        ],
        kit: false,
        lints: "lints, library",
    },
];

/// Returns the groups for this system.
pub fn groups() -> &'static [Group] {
    if cfg!(windows) { ON_WINDOWS } else { ON_LINUX }
}

impl Group {
    /// Returns the command `cargo SUBCOMMAND` for the packages of the group.
    pub fn cargo(&self, workspace: &Workspace, subcommand: &str) -> Result<Command> {
        let mut command = workspace.cargo(subcommand);
        if self.kit && cfg!(not(windows)) {
            Kit::ensure(workspace)?.apply(&mut command);
        }
        command.args(["--locked", "--profile", self.profile, "--target", self.target]);
        let mut packages: Vec<_> = self.files.iter().map(|(package, ..)| *package).collect();
        packages.dedup(); // the files of one package are adjacent
        for package in packages {
            command.args(["--package", package]);
        }
        if self.kit {
            // Parts of the driver, with lints and documents of their own.
            command.args(["--package", "interrupt-path", "--package", "processor"]);
        }
        let folders = workspace.neutral_folders()?;
        let options = |option: &str| folders.each_ref().map(|(folder, name)| format!("{option}={folder}={name}"));
        // An array of JSON is one of TOML as well. Cargo appends it to the flags of .cargo/config.toml.
        let flags = serde_json::to_string(&options("--remap-path-prefix"))?;
        command.arg("--config").arg(format!("target.{}.rustflags={flags}", self.target));
        if self.target == GNU {
            let strategies = UNUSED_STRATEGIES.map(|name| format!("-DZSTD_EXCLUDE_{name}_BLOCK_COMPRESSOR"));
            let flags = [&options("-ffile-prefix-map")[..], &strategies].concat();
            command.env("CFLAGS_x86_64_pc_windows_gnu", flags.join(" "));
        }
        // These would override the flags in .cargo/config.toml, which the driver needs.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        Ok(command)
    }
}

/// Builds everything and returns the folder with the files. The groups have folders of their own below `target`, and
/// are built at the same time: the driver and each program are optimized as a whole, which occupies one processor.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    build_beside(workspace, || Ok(()))
}

/// Like [`build`], with other work at the same time.
pub fn build_beside(workspace: &Workspace, work: impl FnOnce() -> Result<()> + Send) -> Result<PathBuf> {
    let folder = workspace.artifacts();
    files::make_folder(&folder)?;
    thread::scope(|threads| {
        // The output of two cargos at a time would be unreadable.
        let (shown, beside): (Vec<_>, Vec<_>) = groups().iter().partition(|group| group.profile == PROGRAM);
        let build = |group: &'static Group, run: fn(&mut Command) -> Result<()>| {
            let folder = &folder;
            threads.spawn(move || build_group(workspace, group, folder, run))
        };
        let beside: Vec<_> = beside.into_iter().map(|group| build(group, run::quiet)).collect();
        let shown: Vec<_> = shown.into_iter().map(|group| build(group, run::verbose)).collect();
        let work = threads.spawn(work);
        let results = beside
            .into_iter()
            .chain(shown)
            .chain([work])
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("the thread of a build panicked")));
        // All have ended before one of them is reported.
        results.collect::<Vec<_>>().into_iter().collect::<Result<()>>()
    })?;
    Ok(folder)
}

fn build_group(
    workspace: &Workspace,
    group: &Group,
    folder: &Path,
    run: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    run(&mut group.cargo(workspace, "build")?)?;
    if group.kit {
        copy_bindings(group.cargo(workspace, "build")?, &folder.join("bindings"))?;
    }
    let built = workspace.target().join(group.target).join(group.profile);
    for (_, made, name) in group.files {
        if group.target == GNU && group.profile == PROGRAM {
            let program = load_configuration::enter(files::read(&built.join(made))?)?;
            files::write_if_different(&folder.join(name), &program)?;
        } else {
            files::copy_if_different(&built.join(made), &folder.join(name))?;
        }
    }
    Ok(())
}

/// Copies the bindings that bindgen generated from the kernel's headers, for the test that compares them with
/// Microsoft's. Only cargo knows which of its output folders this build used.
fn copy_bindings(mut build: Command, folder: &Path) -> Result<()> {
    let messages = run::output(build.args(["--quiet", "--message-format", "json"]))?;
    let made = messages.lines().find_map(bindings).context("cargo did not report the build script of wdk-sys")?;
    files::make_folder(folder)?;
    ["constants.rs", "ntddk.rs", "types.rs"]
        .iter()
        .try_for_each(|name| files::copy_if_different(&made.join(name), &folder.join(name)))
}

/// Returns the output folder of the build script of wdk-sys if `message`, a line of cargo's output, reports it.
fn bindings(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let text = |name| message.get(name).and_then(Value::as_str);
    let ours = text("reason") == Some("build-script-executed") && text("package_id")?.contains("wdk-sys@");
    ours.then(|| text("out_dir").map(PathBuf::from))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_found_through_the_build_script_of_wdk_sys() {
        let message = |reason, package| {
            format!(r#"{{"reason":"{reason}","package_id":"registry+https://example.org#{package}","out_dir":"/o"}}"#)
        };
        assert_eq!(bindings(&message("build-script-executed", "wdk-sys@0.5.2")), Some("/o".into()));
        assert_eq!(bindings(&message("build-script-executed", "wdk@0.5.0")), None);
        assert_eq!(bindings(&message("compiler-artifact", "wdk-sys@0.5.2")), None);
        assert_eq!(bindings("no JSON"), None);
    }
}
