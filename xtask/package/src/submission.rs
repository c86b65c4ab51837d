//! The submission: what Microsoft gets to sign the driver (Microsoft Learn, "Attestation sign Windows drivers").
//!
//! The files are in a folder of the CAB file, because the Partner Center accepts none at its root. No file has the
//! signature for tests: Microsoft adds its own and would leave the other one in. The CAB file is not signed either;
//! that takes an EV certificate.

use std::{
    io::{Cursor, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use cab::{CabinetBuilder, CompressionType};

use super::{CATALOG, CERTIFICATE, DRIVER, DRIVER_SYMBOLS, INF, authenticode, copy_into};
use xtask::{files, workspace::Workspace};

/// The folder in the CAB file. The Partner Center accepts fewer than 40 characters, none of them special.
const FOLDER: &str = "halprof";

/// The CAB file.
const CABINET: &str = "halprof.cab";

/// Directives by which makecab makes the same CAB file on Windows.
const DIRECTIVES: &str = "halprof.ddf";

/// The files in the CAB file.
const FILES: [&str; 4] = [INF, DRIVER, DRIVER_SYMBOLS, CATALOG];

/// Makes the submission from the built files and the package, replacing an earlier one.
pub fn make(workspace: &Workspace) -> Result<PathBuf> {
    let (built, package, submission) = (workspace.artifacts(), workspace.package(), workspace.submission());
    let folder = submission.join(FOLDER);
    files::remove_folder(&submission)?;
    files::make_folder(&folder)?;
    for file in [built.join(DRIVER), built.join(DRIVER_SYMBOLS), package.join(INF)] {
        copy_into(&file, &folder)?;
    }
    list_files(&package, &folder)?;
    files::write(&submission.join(DIRECTIVES), directives())?;
    let cabinet = pack(&folder)?;
    ensure_packed(&cabinet, &folder)?;
    files::write(&submission.join(CABINET), cabinet)?;
    Ok(submission)
}

/// Puts driver and catalog of `signed`, the folder with what came back, into the package, instead of those that are
/// signed for tests.
pub fn adopt(workspace: &Workspace, signed: &Path) -> Result<()> {
    let (package, submitted) = (workspace.package(), workspace.submission().join(FOLDER));
    let built = workspace.artifacts().join(DRIVER);
    ensure!(
        files::read(&built)? == files::read(&submitted.join(DRIVER))?,
        "the driver has changed since the submission: {} is not what was submitted",
        built.display()
    );
    ensure_returned(&submitted, signed)?;
    for file in [DRIVER, INF, CATALOG] {
        copy_into(&signed.join(file), &package)?;
    }
    files::remove(&package.join(CERTIFICATE))
}

/// Checks that the driver in `signed` is the submitted one plus a signature, and the INF the submitted one.
fn ensure_returned(submitted: &Path, signed: &Path) -> Result<()> {
    let driver = signed.join(DRIVER);
    authenticode::ensure_only_signed(&files::read(&submitted.join(DRIVER))?, &files::read(&driver)?)
        .with_context(|| format!("{} is not the submitted driver with a signature", driver.display()))?;
    let inf = signed.join(INF);
    ensure!(files::read(&inf)? == files::read(&submitted.join(INF))?, "{} is not the submitted file", inf.display());
    Ok(())
}

/// Writes a catalog that is not signed to `folder`.
#[cfg(windows)]
fn list_files(_package: &Path, folder: &Path) -> Result<()> {
    super::windows_kit::list_files(folder)
}

/// Writes a catalog that is not signed to `folder`.
#[cfg(not(windows))]
fn list_files(package: &Path, folder: &Path) -> Result<()> {
    files::write(&folder.join(CATALOG), super::debian::list_files(package)?)
}

/// Returns the directives. Without the thresholds makecab would divide the files among several CAB files.
fn directives() -> String {
    let thresholds = [
        "CabinetFileCountThreshold",
        "FolderFileCountThreshold",
        "FolderSizeThreshold",
        "MaxCabinetSize",
        "MaxDiskFileCount",
        "MaxDiskSize",
    ];
    let mut lines = vec!["; Run `makecab /f halprof.ddf` in the folder of this file.".to_owned()];
    lines.push(".OPTION EXPLICIT".to_owned());
    lines.extend(thresholds.map(|threshold| format!(".Set {threshold}=0")));
    lines.extend(["Cabinet=on", "Compress=on", "CompressionType=MSZIP"].map(|setting| format!(".Set {setting}")));
    lines.push(".Set DiskDirectoryTemplate=.".to_owned());
    lines.push(format!(".Set CabinetNameTemplate={CABINET}"));
    lines.push(format!(".Set DestinationDir={FOLDER}"));
    lines.extend(FILES.map(|file| format!("{FOLDER}\\{file}")));
    lines.into_iter().map(|line| line + "\r\n").collect()
}

/// Returns a CAB file of the files in `folder`.
fn pack(folder: &Path) -> Result<Vec<u8>> {
    let mut builder = CabinetBuilder::new();
    let list = builder.add_folder(CompressionType::MsZip);
    for file in FILES {
        list.add_file(path_in_cabinet(file));
    }
    let mut writer = builder.build(Cursor::new(Vec::new())).context("cannot make the CAB file")?;
    for file in FILES {
        let content = files::read(&folder.join(file))?;
        let mut packed = writer.next_file()?.with_context(|| format!("the CAB file has no place for {file}"))?;
        packed.write_all(&content).with_context(|| format!("cannot pack {file}"))?;
    }
    Ok(writer.finish().context("cannot finish the CAB file")?.into_inner())
}

fn path_in_cabinet(file: &str) -> String {
    format!("{FOLDER}\\{file}")
}

/// Checks that the CAB file contains the files in `folder` and nothing else.
fn ensure_packed(cabinet: &[u8], folder: &Path) -> Result<()> {
    let mut cabinet = cab::Cabinet::new(Cursor::new(cabinet)).context("the CAB file is damaged")?;
    let entries = cabinet.folder_entries().flat_map(cab::FolderEntry::file_entries);
    let names: Vec<String> = entries.map(|entry| entry.name().to_owned()).collect();
    ensure!(names == FILES.map(path_in_cabinet), "the CAB file contains {names:?}");
    for (name, file) in names.iter().zip(FILES) {
        let mut content = Vec::new();
        let mut packed = cabinet.read_file(name).with_context(|| format!("cannot unpack {name}"))?;
        std::io::copy(&mut packed, &mut content).with_context(|| format!("cannot unpack {name}"))?;
        ensure!(content == files::read(&folder.join(file))?, "{name} in the CAB file differs from the file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a folder with these contents of the files.
    fn folder(contents: &[Vec<u8>; 4]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in FILES.iter().zip(contents) {
            files::write(&folder.path().join(name), content).unwrap();
        }
        folder
    }

    fn some_files() -> tempfile::TempDir {
        folder(&[b"[Version]".to_vec(), vec![0x90; 100_000], vec![], b"catalog".to_vec()])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Contents around 32 KiB, the size of a block of the CAB file, are among those that can be wrong.
        #[test]
        fn what_is_packed_is_unpacked(sizes in [0_usize..70_000, 0..70_000, 0..70_000, 32_760..32_780], seed: u8) {
            let bytes = |size: usize| (0..size).map(|at| (at * at / 7).to_le_bytes()[0] ^ seed).collect::<Vec<u8>>();
            let folder = folder(&sizes.map(bytes));
            ensure_packed(&pack(folder.path()).unwrap(), folder.path()).unwrap();
        }
    }

    #[test]
    fn a_cabinet_that_does_not_contain_the_files_is_refused() {
        type Change = fn(&Path, &mut Vec<u8>);
        let cases: [(Change, &str); 5] = [
            (|folder, _| files::write(&folder.join(INF), "[version]").unwrap(), "halprof\\halprof.inf in the CAB file"),
            (|folder, _| files::write(&folder.join(DRIVER), "").unwrap(), "halprof\\halprof.sys in the CAB file"),
            (|_, cabinet| cabinet.truncate(20), "the CAB file is damaged"),
            (|_, cabinet| *cabinet.last_mut().unwrap() ^= 1, "cannot unpack"),
            (
                |_, cabinet| {
                    let at = cabinet.windows(FOLDER.len()).position(|part| part == FOLDER.as_bytes()).unwrap();
                    cabinet[at] = b'H';
                },
                "the CAB file contains [\"Halprof\\\\halprof.inf\"",
            ),
        ];
        for (change, wanted) in cases {
            let folder = some_files();
            let mut cabinet = pack(folder.path()).unwrap();
            change(folder.path(), &mut cabinet);
            let error = format!("{:#}", ensure_packed(&cabinet, folder.path()).unwrap_err());
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = some_files();
        std::fs::remove_file(folder.path().join(DRIVER_SYMBOLS)).unwrap();
        let error = pack(folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains(DRIVER_SYMBOLS), "{error}");
    }

    #[test]
    fn only_the_submitted_files_with_a_signature_come_back() {
        let submitted = some_files();
        let (unsigned, signed) = (authenticode::unsigned_file(), authenticode::signed_file());
        files::write(&submitted.path().join(DRIVER), &unsigned).unwrap();
        let mut other = signed.clone();
        other[0x200] ^= 1;
        let cases: [(&[u8], &str, Option<&str>); 4] = [
            (&signed, "[Version]", None),
            (&unsigned, "[Version]", Some("the file is not signed")),
            (&other, "[Version]", Some("the byte at 0x200 has changed")),
            (&signed, "[version]", Some("halprof.inf is not the submitted file")),
        ];
        for (driver, inf, wanted) in cases {
            let returned = tempfile::tempdir().unwrap();
            files::write(&returned.path().join(DRIVER), driver).unwrap();
            files::write(&returned.path().join(INF), inf).unwrap();
            let found = ensure_returned(submitted.path(), returned.path()).map_err(|error| format!("{error:#}"));
            match wanted {
                None => found.unwrap(),
                Some(wanted) => assert!(found.as_ref().unwrap_err().contains(wanted), "{found:?}"),
            }
        }
    }

    #[test]
    fn the_package_gets_what_came_back_and_loses_the_certificate_for_tests() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(root.path().to_owned());
        let returned = root.path().join("returned");
        let submitted = workspace.submission().join(FOLDER);
        let (unsigned, signed) = (authenticode::unsigned_file(), authenticode::signed_file());
        for (folder, files) in [
            (workspace.artifacts(), vec![(DRIVER, &unsigned[..])]),
            (submitted, vec![(DRIVER, &unsigned[..]), (INF, b"[Version]")]),
            (workspace.package(), vec![(DRIVER, b"test"), (INF, b"today"), (CATALOG, b"test"), (CERTIFICATE, b"test")]),
            (returned.clone(), vec![(DRIVER, &signed[..]), (INF, b"[Version]"), (CATALOG, b"Microsoft")]),
        ] {
            files::make_folder(&folder).unwrap();
            for (name, content) in files {
                files::write(&folder.join(name), content).unwrap();
            }
        }
        adopt(&workspace, &returned).unwrap();
        for (name, wanted) in [(DRIVER, &signed[..]), (INF, b"[Version]"), (CATALOG, b"Microsoft")] {
            assert_eq!(files::read(&workspace.package().join(name)).unwrap(), wanted, "{name}");
        }
        assert!(!workspace.package().join(CERTIFICATE).exists());

        files::write(&workspace.artifacts().join(DRIVER), b"later").unwrap();
        let error = adopt(&workspace, &returned).unwrap_err().to_string();
        assert!(error.starts_with("the driver has changed since the submission"), "{error}");
    }

    /// The rules of "Attestation sign Windows drivers" and "Driver signing offerings".
    #[test]
    fn the_layout_obeys_the_rules_of_the_partner_center() {
        assert!(FOLDER.len() < 40 && FOLDER.chars().all(|character| character.is_ascii_alphanumeric()));
        for extension in ["sys", "inf", "pdb", "cat"] {
            let names = FILES.iter().map(Path::new);
            let found = names.filter(|name| name.extension().is_some_and(|found| found == extension));
            assert_eq!(found.count(), 1, "{extension}");
        }
    }

    #[test]
    fn makecab_makes_the_same_files_from_the_directives() {
        let text = directives();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        let packed: Vec<&str> = lines.iter().copied().filter(|line| !line.starts_with(['.', ';'])).collect();
        assert_eq!(packed, FILES.map(path_in_cabinet));
        for wanted in [".Set DestinationDir=halprof", ".Set CabinetNameTemplate=halprof.cab", ".Set MaxDiskSize=0"] {
            assert!(lines.contains(&wanted), "{wanted}");
        }
    }
}
