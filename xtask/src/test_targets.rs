//! No test is in a file that is not run: packages leave out empty test programs, and name the files of the others.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{run, workspace::Workspace};

/// Returns the packages of the workspace, as cargo describes them.
pub fn packages() -> Vec<Value> {
    let mut metadata = Workspace::find().unwrap().cargo("metadata");
    let metadata = run::output(metadata.args(["--format-version", "1", "--no-deps", "--locked"])).unwrap();
    serde_json::from_str::<Value>(&metadata).unwrap()["packages"].as_array().unwrap().clone()
}

/// Returns the texts of the source files below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.push(fs::read_to_string(&path).unwrap());
        }
    }
    texts
}

/// Calls `check` with the folder, the manifest and the targets of each package.
fn each(mut check: impl FnMut(&Path, &str, &[Value])) {
    let packages = packages();
    assert!(packages.len() > 40, "{}", packages.len());
    for package in packages {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let text = fs::read_to_string(manifest).unwrap();
        check(manifest.parent().unwrap(), &text, package["targets"].as_array().unwrap());
    }
}

fn is_library(target: &Value) -> bool {
    target["src_path"].as_str().unwrap().ends_with("/lib.rs")
}

#[test]
fn a_library_whose_tests_are_not_built_has_none() {
    let mut without = 0;
    each(|folder, _, targets| {
        for target in targets.iter().filter(|target| is_library(target)) {
            let texts = sources(&folder.join("src"));
            if target["test"] == false && !folder.starts_with(Workspace::find().unwrap().root().join("driver")) {
                without += 1;
                assert!(!texts.iter().any(|text| text.contains("#[test]")), "{}: test = false", folder.display());
            }
            if target["doctest"] == false && target["kind"][0] == "lib" {
                let has_example = |text: &String| {
                    let lines = text.lines().map(str::trim_start);
                    lines.clone().any(|line| ["/// ```", "//! ```"].contains(&line.trim_end()))
                };
                assert!(!texts.iter().any(has_example), "{}: doctest = false", folder.display());
            }
        }
    });
    assert!(without > 5, "{without}");
}

#[test]
fn every_file_of_a_package_that_names_its_test_programs_is_in_one() {
    let mut files = 0;
    each(|folder, manifest, _| {
        if !manifest.contains("autotests = false") {
            return;
        }
        let main = fs::read_to_string(folder.join("tests/main.rs")).unwrap_or_default();
        for entry in fs::read_dir(folder.join("tests")).into_iter().flatten() {
            let path = entry.unwrap().path();
            let (Some("rs"), Some(name)) = (
                path.extension().and_then(|extension| extension.to_str()),
                path.file_stem().and_then(|stem| stem.to_str()),
            ) else {
                continue;
            };
            files += 1;
            let named = main.contains(&format!("mod {name};")) || manifest.contains(&format!("name = \"{name}\""));
            assert!(name == "main" || named, "{} is in no test program", path.display());
        }
    });
    assert!(files > 50, "{files}");
}
