//! What is copied to the guest: the package, the end-to-end tests as a program, and the schemas that they read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{facts::Facts, steps};
use xtask::{
    artifacts::{GNU, MSVC},
    command_line::Extras,
    files,
    package::{self, BASH_COMPLETION},
    run,
    workspace::Workspace,
};

/// The target of the end-to-end tests: that of the host's other programs for Windows.
const TARGET: &str = if cfg!(windows) { MSVC } else { GNU };

/// Makes the folder `to` with everything, and returns the SHA-256 of the driver and what is known about the package.
/// Builds the package first if `package` names none.
pub fn make(workspace: &Workspace, package: Option<&Path>, to: &Path) -> Result<(String, Facts)> {
    let source = if let Some(folder) = package {
        folder.to_owned()
    } else {
        package::run(workspace, &Extras::default())?;
        workspace.package()
    };
    check(&source)?;
    files::remove_folder(to)?;
    copy_folder(&source, &to.join("package"))?;
    copy_folder(&workspace.root().join("docs/schemas"), &to.join("schemas"))?;
    let built = build_tests(workspace).and_then(|program| {
        files::make_folder(&to.join("tests"))?;
        files::copy(&program, &to.join("tests/end_to_end.exe"))
    });
    let tests = built.err().map(|error| format!("the end-to-end tests could not be built for Windows: {error:#}"));
    if let Some(reason) = &tests {
        println!("{reason}");
    }
    let hash = format!("{:x}", Sha256::digest(files::read(&source.join("halprof.sys"))?));
    Ok((hash, Facts { linux_package: source.join("client.debug").is_file(), tests, ..Facts::default() }))
}

/// Checks that a folder is a package, whose client has every verb and option of the plan.
pub fn check(folder: &Path) -> Result<()> {
    for name in
        ["halprof.sys", "client.exe", "halprof-agent.exe", "halprof.cer", "halprof.inf", "halprof.cat", BASH_COMPLETION]
    {
        ensure!(
            folder.join(name).is_file(),
            "{} is no package: {name} is missing\n  try: cargo xtask package, which makes target/package",
            folder.display()
        );
    }
    steps::check_client(&files::read_text(&folder.join(BASH_COMPLETION))?)
}

/// Copies the files of a folder, without folders in it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    files::make_folder(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        if path.is_file() {
            files::copy(&path, &to.join(path.file_name().context("a file has a name")?))?;
        }
    }
    Ok(())
}

/// Builds the end-to-end tests for Windows, and returns the program.
fn build_tests(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo("test");
    command.args([
        "--no-run",
        "--locked",
        "--release",
        "--target",
        TARGET,
        "--package",
        "tests",
        "--test",
        "end_to_end",
    ]);
    command.args(["--message-format", "json-render-diagnostics"]);
    // These would override the flags in .cargo/config.toml.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let messages = run::output(&mut command)?;
    messages.lines().find_map(program).context("cargo did not report the program of the end-to-end tests")
}

/// Returns the program of the end-to-end tests if `message`, a line of cargo's output, reports it.
fn program(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let name = message.pointer("/target/name")?.as_str()?;
    (name == "end_to_end").then(|| message.get("executable")?.as_str().map(PathBuf::from))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_is_found_in_the_messages_of_cargo() {
        let message = |name, executable| format!(r#"{{"target":{{"name":"{name}"}},"executable":{executable}}}"#);
        assert_eq!(program(&message("end_to_end", r#""/t/e.exe""#)), Some("/t/e.exe".into()));
        assert_eq!(program(&message("layout", r#""/t/l.exe""#)), None);
        assert_eq!(program(&message("end_to_end", "null")), None);
        assert_eq!(program("Compiling"), None);
    }

    #[test]
    fn a_folder_without_a_driver_is_no_package() {
        let folder = tempfile::tempdir().unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is no package: halprof.sys is missing\n  try: cargo xtask package"), "{error}");
    }
}
