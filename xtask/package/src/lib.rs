//! The package: a folder to copy to a Windows machine, with a test-signed driver.

#![forbid(unsafe_code)]
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate, reason = "only the programs of xtask use it")]

pub mod archive;
mod authenticode;
mod c_library;
mod catalog;
mod certificate;
mod debian;
mod distribution;
mod inf;
pub mod proof;
#[cfg(test)]
mod recording_profile;
mod release;
mod reproducible;
mod submission;
mod symbols;
mod windows_kit;
mod winget;

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};

use xtask::{command_line::Extras, files, package::BASH_COMPLETION, run, workspace::Workspace};

use self::certificate::Certificate;

/// The file that is signed.
const DRIVER: &str = "halprof.sys";

/// The certificate that verifies the signature, without its private key.
const CERTIFICATE: &str = "halprof.cer";

/// The signed catalog with the hashes of the package's files.
const CATALOG: &str = "halprof.cat";

/// How Windows installs the driver.
const INF: &str = "halprof.inf";

/// Debug information of the driver.
const DRIVER_SYMBOLS: &str = "halprof.pdb";

/// The client, and the same under the name of the product, so that both names work.
const CLIENT: &str = "client.exe";
const SECOND_NAME: &str = "halprof.exe";

/// The agent, which the client finds beside itself.
const AGENT: &str = "halprof-agent.exe";

/// Debug information of both: Microsoft's linker and that of mingw-w64 write different formats.
const CLIENT_SYMBOLS: &str = if cfg!(windows) { "client.pdb" } else { "client.debug" };
const AGENT_SYMBOLS: &str = if cfg!(windows) { "halprof-agent.pdb" } else { "halprof-agent.debug" };

/// Files of the repository that are copied into the package.
const WRITTEN: &[&str] = &[
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "THIRD-PARTY.md",
    "docs/claims.md",
    "docs/windows.md",
    "wpr/halprof.wprp",
    "integrations/grafana/halprof.json",
    "integrations/prometheus/halprof.rules.yml",
];

/// Files that are made from the client's command line.
const OF_COMMAND_LINE: [&str; 4] = [BASH_COMPLETION, "client-completion.lua", "client-completion.ps1", "client.1"];

/// The test of the client that writes these files, and the variable with their folder. It is a test because the
/// client that is shipped has no code for them.
const COMMAND_LINE_TEST: &str = "cli::generated::write_the_files_of_the_package";
const COMMAND_LINE_FOLDER: &str = "HALPROF_COMMAND_LINE_FILES";

/// Makes the package from the built files, and what belongs to it.
pub fn run(workspace: &Workspace, extras: &Extras) -> Result<()> {
    if extras.runnable {
        return make(workspace).map(drop);
    }
    let package = make_whole(workspace)?;
    if let Some(signed) = &extras.signed {
        submission::adopt(workspace, signed)?;
    }
    show("The package is", &package)?;
    println!("The next steps are in windows.md.");
    if extras.submission {
        show("The submission is", &submission::make(workspace)?)?;
    }
    if let Some(repository) = &extras.release {
        show("The distribution is", &distribution::make(workspace, repository)?)?;
    }
    if extras.submission || extras.release.is_some() {
        println!("The next steps are in docs/release.md.");
    }
    if extras.reproducible { reproducible::check(workspace) } else { Ok(()) }
}

/// Prints a folder and its files.
fn show(what: &str, folder: &Path) -> Result<()> {
    println!("\n{what} {}", folder.display());
    for name in files::names(folder)? {
        println!("  {name}");
    }
    Ok(())
}

/// Makes the package from the built files, replacing an earlier one, with the files for the command line.
fn make_whole(workspace: &Workspace) -> Result<PathBuf> {
    let folder = make(workspace)?;
    let mut writer = workspace.cargo("test");
    writer.args(["--quiet", "--locked", "--bin", "client", "--", "--ignored", "--exact", COMMAND_LINE_TEST]);
    run::verbose(writer.env(COMMAND_LINE_FOLDER, &folder))?;
    for name in OF_COMMAND_LINE {
        ensure!(folder.join(name).is_file(), "the test {COMMAND_LINE_TEST} of the client wrote no {name}");
    }
    proof::adopt(workspace, &folder)?;
    Ok(folder)
}

/// Makes what runs of the package from the built files, replacing an earlier one. The files for the command line are
/// missing, because they need the client's tests, which take minutes to build.
fn make(workspace: &Workspace) -> Result<PathBuf> {
    let (built, folder) = (workspace.artifacts(), workspace.package());
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    copy_into(&built.join(DRIVER_SYMBOLS), &folder)?;
    copy_programs(&built, &folder)?;
    copy_c_library(workspace, &folder)?;
    files::copy(&folder.join(CLIENT), &folder.join(SECOND_NAME))?;
    for name in WRITTEN {
        copy_into(&workspace.root().join(name), &folder)?;
    }
    let stamped = inf::stamp(inf::TEMPLATE, SystemTime::now(), env!("CARGO_PKG_VERSION"))?;
    files::write(&folder.join(INF), stamped)?;

    let (unsigned, signed) = (built.join(DRIVER), folder.join(DRIVER));
    if cfg!(windows) {
        windows_kit::sign(&unsigned, &folder)?;
    } else {
        debian::sign(workspace, &unsigned, &folder)?;
    }
    authenticode::ensure_only_signed(&files::read(&unsigned)?, &files::read(&signed)?)
        .with_context(|| format!("signing changed the content of {}", unsigned.display()))?;
    Ok(folder)
}

/// Writes `file` with a signature for tests to `signed` and verifies it, with osslsigncode.
pub fn sign_for_tests(workspace: &Workspace, file: &Path, signed: &Path) -> Result<()> {
    debian::sign_file(&Certificate::ensure(workspace)?, file, signed)
}

/// Copies the programs and their debug information, as they are shipped, and returns their names.
fn copy_programs(built: &Path, folder: &Path) -> Result<[&'static str; 4]> {
    for (program, of_program) in [(CLIENT, CLIENT_SYMBOLS), (AGENT, AGENT_SYMBOLS)] {
        if cfg!(windows) {
            copy_into(&built.join(program), folder)?;
            copy_into(&built.join(of_program), folder)?;
        } else {
            symbols::split(&built.join(program), &folder.join(program), &folder.join(of_program))?;
        }
    }
    Ok([CLIENT, CLIENT_SYMBOLS, AGENT, AGENT_SYMBOLS])
}

/// Copies the library for C, as it is shipped, and returns the names of the built files.
fn copy_c_library(workspace: &Workspace, folder: &Path) -> Result<[&'static str; 3]> {
    c_library::copy(workspace, folder)
}

fn copy_into(from: &Path, folder: &Path) -> Result<()> {
    let name = from.file_name().with_context(|| format!("{} is not a file", from.display()))?;
    files::copy(from, &folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_contains_every_license_and_notice_of_the_repository() {
        let workspace = Workspace::find().unwrap();
        let names = files::names(workspace.root()).unwrap();
        let legal = |name: &&String| ["LICENSE", "NOTICE", "THIRD-PARTY"].iter().any(|word| name.starts_with(word));
        let legal: Vec<&String> = names.iter().filter(legal).collect();
        assert!(legal.len() >= 3, "{legal:?}");
        let absent: Vec<_> = legal.into_iter().filter(|name| !WRITTEN.contains(&name.as_str())).collect();
        assert!(absent.is_empty(), "not in the package: {absent:?}");
    }

    #[test]
    fn the_table_of_the_package_in_the_document_names_every_file() {
        let document = include_str!("../../../docs/windows.md");
        let table = document.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let listed: Vec<&str> = table.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        let client = [CLIENT, SECOND_NAME, "client.debug", "client.pdb"];
        let agent = [AGENT, "halprof-agent.debug", "halprof-agent.pdb"];
        let library = [c_library::DLL, c_library::IMPORT_LIBRARY, "libhalprof.a", "halprof_static.lib", "halprof.h"];
        let files =
            [DRIVER, DRIVER_SYMBOLS, CERTIFICATE, CATALOG, INF].into_iter().chain(client).chain(agent).chain(library);
        let written = WRITTEN.iter().map(|path| path.rsplit('/').next().unwrap_or_default());
        let files = files.chain(["proof.json", "proof.cat", "proof.schema.json"]);
        for name in files.chain(written).chain(OF_COMMAND_LINE) {
            assert!(listed.contains(&name), "docs/windows.md does not name {name}, only {listed:?}");
        }
    }
}
