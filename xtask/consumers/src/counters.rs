//! Programs that count inside themselves: google/benchmark with our adapter, the header in the shape of
//! lemire/counters, criterion with our measurement, and the examples in Python and C#.
//!
//! google/benchmark is Debian's source package, unpacked and not changed. The programs for Windows run on the bench
//! (`tests/tests/consumers`). The examples run on this system, against the library without a driver, and against a
//! stand-in for it that has fixed counts.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::bench;
use xtask::{
    artifacts::{self, GNU},
    demo, files, package, prerequisites, run,
    workspace::Workspace,
};

/// Compiler of C++ with threads of the standard library, which google/benchmark needs.
const CXX: &str = "x86_64-w64-mingw32-g++-posix";

/// What every compilation of google/benchmark gets: the macros of its own build, and our adapter.
const GOOGLE: [&str; 5] =
    ["-DBENCHMARK_STATIC_DEFINE", "-DHAVE_STD_REGEX", "-DHAVE_LIBPFM", "-include", "halprof_benchmark.h"];

/// What the static library needs of Windows.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lntdll", "-luserenv", "-lws2_32", "-ldbghelp"];

/// The library with fixed counts.
const STAND_IN: &str = include_str!("stand_in.c");

/// Builds the programs and runs them.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_counters(workspace)?;
    artifacts::build(workspace)?;
    package::make(workspace)?;
    let folder = workspace.tools().join("counters");
    files::make_folder(&folder)?;
    files::copy(&workspace.package().join("halprof.dll"), &folder.join("halprof.dll"))?;
    let compiler = Compiler { workspace, folder: &folder };
    compiler.google_benchmark()?;
    compiler.event_counters()?;
    criterion_benchmark(workspace, &folder)?;
    let others = ["--skip", "agent::", "--skip", "layout::", "--skip", "recording::"];
    demo::on_bench(workspace, bench::tests(workspace, &others)?.env("HALPROF_CONSUMERS", &folder))?;
    examples(workspace, &folder)?;
    println!("google/benchmark, criterion and the header of event counters count what the model executes");
    Ok(())
}

/// Compiles programs in C++ for Windows.
struct Compiler<'a> {
    workspace: &'a Workspace,
    /// The folder of the programs.
    folder: &'a Path,
}

impl Compiler<'_> {
    /// Returns the compiler with every warning of ours as an error.
    fn strict(&self, standard: &str) -> Command {
        let root = self.workspace.root();
        let mut command = Command::new(CXX);
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]).arg(format!("-std={standard}"));
        command.arg("-I").arg(self.workspace.package()).arg("-I").arg(root.join("crates/halprof-c/tests/c"));
        command
    }

    /// Links a program. The runtime of C++ is linked into it.
    fn link(&self, mut compile: Command, name: &str, is_static: bool) -> Result<()> {
        let package = self.workspace.package();
        compile.arg("-static").arg("-o").arg(self.folder.join(name));
        if is_static {
            compile.arg(package.join("libhalprof.a")).args(SYSTEM_LIBRARIES);
        } else {
            compile.arg(package.join("halprof.lib"));
        }
        run::quiet(compile.arg("-lshlwapi"))
    }

    /// Compiles google/benchmark once, and its programs with both libraries.
    fn google_benchmark(&self) -> Result<()> {
        let source = source_package(self.folder, "benchmark")?;
        let adapter = self.workspace.root().join("integrations/google-benchmark");
        let objects = self.folder.join("objects");
        files::remove_folder(&objects)?;
        files::make_folder(&objects)?;
        let include = |command: &mut Command| {
            command.args(GOOGLE).arg("-I").arg(adapter.join("include")).arg("-I").arg(self.workspace.package());
            command.arg("-I").arg(source.join("include")).arg("-I").arg(source.join("src"));
        };
        let mut sources = of_type(&source.join("src"), "cc")?;
        sources.retain(|path| path.file_stem() != Some(OsStr::new("benchmark_main")));
        ensure!(sources.len() > 10, "google/benchmark has only {sources:?}");
        let mut library = Command::new(CXX);
        include(library.args(["-std=c++11", "-O2", "-DNDEBUG", "-c"]).current_dir(&objects));
        run::quiet(library.args(sources))?;
        let mut ours = self.strict("c++11");
        include(ours.arg("-c").current_dir(&objects));
        run::quiet(ours.arg(adapter.join("halprof_perf_counters.cc")))?;

        let programs = [
            ("google-benchmark", self.workspace.root().join("tests/programs/google_benchmark.cc")),
            ("google-benchmark-example", adapter.join("example.cc")),
        ];
        for (name, main) in programs {
            for (suffix, is_static) in [("dll", false), ("static", true)] {
                let mut program = self.strict("c++11");
                program.args(["-DBENCHMARK_STATIC_DEFINE", "-I"]).arg(source.join("include")).arg(&main);
                program.args(of_type(&objects, "o")?);
                self.link(program, &format!("{name}-{suffix}.exe"), is_static)?;
            }
        }
        Ok(())
    }

    /// Compiles the programs with the header of event counters, and the header as the newest C++ too.
    fn event_counters(&self) -> Result<()> {
        let folder = self.workspace.root().join("integrations/event-counters");
        let programs = [
            ("event-counters.exe", self.workspace.root().join("tests/programs/event_counters.cc"), "c++11"),
            ("event-counters-example.exe", folder.join("example.cc"), "c++20"),
        ];
        for (name, main, standard) in programs {
            let mut program = self.strict(standard);
            program.arg("-I").arg(&folder).arg(main);
            self.link(program, name, false)?;
        }
        Ok(())
    }
}

/// Builds the benchmarks of criterion for Windows.
fn criterion_benchmark(workspace: &Workspace, folder: &Path) -> Result<()> {
    let mut command = workspace.cargo("build");
    run::verbose(command.args(["--locked", "--release", "--target", GNU, "--package", "criterion-benchmark"]))?;
    let built = workspace.target().join(GNU).join("release/criterion-benchmark.exe");
    files::copy(&built, &folder.join("criterion-benchmark.exe"))
}

/// Runs the examples in Python and C# on this system.
fn examples(workspace: &Workspace, folder: &Path) -> Result<()> {
    let folder = folder.join("examples");
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    run::verbose(workspace.cargo("build").args(["--locked", "--package", "halprof-c"]))?;
    let library = workspace.target().join("debug/libhalprof.so");
    let source = folder.join("stand_in.c");
    files::write(&source, STAND_IN)?;
    let stand_in = folder.join("stand-in.so");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]).arg(workspace.package());
    run::quiet(compile.arg(&source).arg("-o").arg(&stand_in))?;
    let program = folder.join("Halprof.exe");
    let mut compile = Command::new("mcs");
    compile.args(["-langversion:7.2", "-warnaserror"]).arg(format!("-out:{}", program.display()));
    run::quiet(compile.arg(workspace.root().join("examples/dotnet/Halprof.cs")))?;
    let python = workspace.root().join("examples/python/halprof.py");
    let missing = folder.join("missing.so");
    check("Python", Command::new("python3").arg(&python).env("HALPROF_DLL", &missing), 1, "copy halprof.dll")?;
    let no_driver = (&library, 1, "error 6: this program was not built");
    for (library, code, wanted) in [no_driver, (&stand_in, 0, "12345 instructions, 678 cycles")] {
        // Mono finds a DLL by the name of a library beside the program.
        files::copy(library, &folder.join("libhalprof.so"))?;
        check("Python", Command::new("python3").arg(&python).env("HALPROF_DLL", library), code, wanted)?;
        let mut mono = Command::new("mono");
        mono.arg(&program).current_dir(&folder).env("LD_LIBRARY_PATH", &folder);
        check("C#", &mut mono, code, wanted)?;
    }
    Ok(())
}

/// Checks that an example ends with this code and prints a text; a disturbed count with its reason.
fn check(language: &str, command: &mut Command, code: i32, wanted: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start the example in {language}"))?;
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).to_lowercase());
    ensure!(
        output.status.code() == Some(code) && (out.contains(wanted) || err.contains(wanted)),
        "the example in {language} printed\n{out}{err}instead of \"{wanted}\""
    );
    ensure!(code != 0 || out.contains("disturbed the thread was switched out once"), "{language} printed\n{out}");
    println!("the example in {language} prints \"{wanted}\"");
    Ok(())
}

/// Unpacks a source package of Debian and returns its folder. Sources are listed for this call only.
fn source_package(folder: &Path, name: &str) -> Result<PathBuf> {
    let unpacked = folder.join(name);
    if unpacked.join("src").is_dir() {
        return Ok(unpacked);
    }
    let (lists, parts) = (folder.join("apt-lists"), folder.join("apt-sources"));
    files::make_folder(&lists.join("partial"))?;
    files::make_folder(&parts)?;
    let system = files::read_text(Path::new("/etc/apt/sources.list.d/debian.sources"))
        .context("the sources of Debian 12's packages are listed elsewhere on this system")?;
    files::write(&parts.join("sources.sources"), system.replace("Types: deb\n", "Types: deb-src\n"))?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-o").arg(format!("Dir::State::Lists={}", lists.display()));
        command.arg("-o").arg(format!("Dir::Etc::SourceParts={}", parts.display()));
        command.args(["-o", "Dir::Etc::SourceList=/dev/null"]).args(arguments).current_dir(folder);
        command
    };
    run::quiet(&mut apt(&["update"]))?;
    run::quiet(&mut apt(&["source", "--download-only", name]))?;
    let description = of_type(folder, "dsc")?.pop().with_context(|| format!("apt-get brought no source of {name}"))?;
    run::quiet(Command::new("dpkg-source").arg("--extract").args([&description, &unpacked]))?;
    Ok(unpacked)
}

/// Returns the files of a folder with this extension, sorted.
fn of_type(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension() == Some(OsStr::new(extension)));
    paths.sort();
    Ok(paths)
}
