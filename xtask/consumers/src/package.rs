//! Opens what `cargo xtask package` makes with programs that share no code with it.
//!
//! cabextract unpacks the CAB file of the submission, before and after osslsigncode has signed it, and unzip the zip
//! file of the distribution; both must give the files that were packed. llvm-readobj shows the headers, resources and
//! exports of the shipped programs.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use xtask::{command_line::Extras, files, package, prerequisites, run, workspace::Workspace};

/// The repository of the manifests. It is not contacted.
const REPOSITORY: &str = "owner/halprof";

/// What llvm-readobj shows of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Program {
    subsystem: String,
    /// Types of the resources.
    resources: Vec<String>,
    exports: Vec<String>,
    /// Whether the program is marked as compatible with shadow stacks (CET).
    has_cet_mark: bool,
}

/// Makes the package with everything beside it, and opens it.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_packages(workspace)?;
    let release = REPOSITORY.parse().map(Some)?;
    package::run(workspace, &Extras { submission: true, release, ..Extras::default() })?;
    let folder = workspace.tools().join("package");
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    cabinet(workspace, &folder)?;
    archive(workspace, &folder)?;
    for (name, wanted) in wanted() {
        let found = inspect(&workspace.package().join(name))?;
        ensure!(found == wanted, "llvm-readobj shows {found:?} of {name} instead of {wanted:?}");
    }
    Ok(())
}

/// Returns what is expected of each program. mingw-w64 writes no mark for shadow stacks.
fn wanted() -> [(&'static str, Program); 3] {
    let program = |subsystem: &str, resources: &[&str], has_cet_mark| Program {
        subsystem: subsystem.to_owned(),
        resources: resources.iter().map(|&resource| resource.to_owned()).collect(),
        exports: Vec::new(),
        has_cet_mark,
    };
    let client = || program("IMAGE_SUBSYSTEM_WINDOWS_CUI", &["VERSIONINFO", "MANIFEST"], false);
    [
        ("halprof.sys", program("IMAGE_SUBSYSTEM_NATIVE", &["VERSIONINFO"], true)),
        ("client.exe", client()),
        ("halprof.exe", client()),
    ]
}

/// Unpacks the CAB file of the submission, and checks that a damaged one is noticed.
fn cabinet(workspace: &Workspace, folder: &Path) -> Result<()> {
    let submission = workspace.submission();
    let cabinet = submission.join("halprof.cab");
    let signed = folder.join("signed.cab");
    xtask_package::sign_for_tests(workspace, &cabinet, &signed)?;
    for (cabinet, to) in [(&cabinet, "cab"), (&signed, "signed-cab")] {
        let to = folder.join(to);
        run::quiet(Command::new("cabextract").args(["--quiet", "--directory"]).arg(&to).arg(cabinet))?;
        ensure!(files::names(&to)? == ["halprof"], "{} is not the folder halprof alone", to.display());
        ensure_same_files(&submission.join("halprof"), &to.join("halprof"))?;
    }
    let damaged = folder.join("damaged.cab");
    let mut bytes = files::read(&cabinet)?;
    let middle = bytes.len() / 2;
    *bytes.get_mut(middle).context("the CAB file is empty")? ^= 1;
    files::write(&damaged, bytes)?;
    let mut test = Command::new("cabextract");
    let test = test.args(["--quiet", "--test"]).arg(&damaged).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(!test.success(), "cabextract does not notice a damaged CAB file, so that its success shows nothing");
    Ok(())
}

/// Unpacks the zip file of the distribution.
fn archive(workspace: &Workspace, folder: &Path) -> Result<()> {
    let distribution = workspace.distribution();
    let mut archives = files::names(&distribution)?;
    archives.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "zip"));
    let [archive] = archives.as_slice() else { anyhow::bail!("the zip files are {archives:?}") };
    let to = folder.join("zip");
    run::quiet(Command::new("unzip").arg("-q").arg(distribution.join(archive)).arg("-d").arg(&to))?;
    let roots = files::names(&to)?;
    let [root] = roots.as_slice() else { anyhow::bail!("{archive} has {roots:?} at its root") };
    ensure_same_files(&workspace.package(), &to.join(root))
}

/// Checks that two folders have the same files with the same contents.
fn ensure_same_files(wanted: &Path, found: &Path) -> Result<()> {
    let names = (files::names(wanted)?, files::names(found)?);
    ensure!(names.0 == names.1, "{} has {:?}, {} has {:?}", wanted.display(), names.0, found.display(), names.1);
    for name in names.0 {
        let same = files::read(&wanted.join(&name))? == files::read(&found.join(&name))?;
        ensure!(same, "{name} differs in {} and {}", wanted.display(), found.display());
    }
    Ok(())
}

/// Returns what llvm-readobj shows of a program.
fn inspect(file: &Path) -> Result<Program> {
    let mut command = Command::new("llvm-readobj");
    command.args(["--file-headers", "--coff-debug-directory", "--coff-resources", "--coff-exports"]).arg(file);
    Ok(parse(&run::output(&mut command)?))
}

fn parse(text: &str) -> Program {
    let mut program = Program::default();
    let mut in_export = false;
    for line in text.lines() {
        // The parts of a file begin at the left margin.
        in_export = if line.starts_with(' ') { in_export } else { line.starts_with("Export {") };
        let first = |text: &str| text.split(" (").next().unwrap_or_default().to_owned();
        match line.trim().split_once(": ") {
            Some(("Subsystem", name)) => program.subsystem = first(name),
            Some(("Type", name)) if name.contains(" (ID ") => program.resources.push(first(name)),
            Some(("Name", name)) if in_export => program.exports.push(name.to_owned()),
            _ => program.has_cet_mark |= line.trim().starts_with("IMAGE_DLL_CHARACTERISTICS_EX_CET_COMPAT"),
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of llvm-readobj 14 for a driver.
    const DRIVER: &str = "\
ImageOptionalHeader {
  Subsystem: IMAGE_SUBSYSTEM_NATIVE (0x1)
}
DebugDirectory [
  DebugEntry {
    Type: ExtendedDLLCharacteristics (0x14)
    ExtendedCharacteristics [ (0x1)
      IMAGE_DLL_CHARACTERISTICS_EX_CET_COMPAT (0x1)
    ]
  }
]
Resources [
  Type: VERSIONINFO (ID 16) [
    Name: (ID 1) [
    ]
  ]
]
";

    #[test]
    fn the_lines_of_llvm_readobj_are_understood() {
        let [(_, wanted), ..] = wanted();
        assert_eq!(parse(DRIVER), wanted);
    }

    #[test]
    fn every_difference_is_found() {
        let [(_, wanted), ..] = wanted();
        for (from, to) in [
            ("SUBSYSTEM_NATIVE", "SUBSYSTEM_WINDOWS_CUI"),
            ("EX_CET_COMPAT", "EX_OTHER"),
            ("VERSIONINFO (ID 16)", "MANIFEST (ID 24)"),
            ("DebugDirectory [", "Export {\n  Ordinal: 1\n  Name: DriverEntry\n}\nDebugDirectory ["),
        ] {
            assert!(DRIVER.contains(from), "{from}");
            assert_ne!(parse(&DRIVER.replace(from, to)), wanted, "{from} -> {to}");
        }
    }

    #[test]
    fn folders_with_other_names_or_contents_differ() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let write = |index: usize, name: &str, content: &str| {
            files::write(&folders[index].path().join(name), content).unwrap();
        };
        let same = || ensure_same_files(folders[0].path(), folders[1].path()).is_ok();
        assert!(same());
        write(0, "a", "1");
        assert!(!same());
        write(1, "a", "2");
        assert!(!same());
        write(1, "a", "1");
        assert!(same());
        write(1, "b", "1");
        assert!(!same());
    }
}
