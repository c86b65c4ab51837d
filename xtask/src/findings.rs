//! `cargo xtask findings`: reproduces surprises of outside programs, which work without halprof.

use std::{fmt::Write as _, fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use crate::{run, workspace::Workspace};

/// How long one script may take, with the installation of its packages.
const LIMIT: Duration = Duration::from_mins(10);

/// Runs the named scripts, or all, and prints for each whether the surprise is as it was.
///
/// # Errors
///
/// A name is unknown, or what a script sees has changed. A package that cannot be installed counts as a change.
pub fn run(workspace: &Workspace, names: &[String]) -> Result<()> {
    let folder = workspace.root().join("findings");
    let scripts = chosen(scripts(&folder)?, names)?;
    let mut results = Vec::new();
    for name in scripts {
        let mut command = Command::new("bash");
        command.arg(folder.join(&name).with_extension("sh"));
        let log = workspace.target().join("findings").join(&name).with_extension("log");
        let result = run::logged(&name, &mut command, &log, LIMIT);
        results.push((name, result.is_ok()));
    }
    print!("\n{}", table(&results));
    let changed = results.iter().filter(|(_, same)| !same).count();
    ensure!(changed == 0, "{changed} of {} findings changed", results.len());
    Ok(())
}

/// Returns the names of the scripts in the folder. Their helpers have no first line with an interpreter.
fn scripts(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let is_script = path.extension().is_some_and(|extension| extension == "sh")
            && fs::read_to_string(&path).is_ok_and(|text| text.starts_with("#!"));
        if let (true, Some(name)) = (is_script, path.file_stem()) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the scripts with these names, or all if there is no name.
fn chosen(scripts: Vec<String>, names: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = names.iter().find(|name| !scripts.contains(name)) {
        bail!("no finding has the name \"{unknown}\"; the names are {}", scripts.join(", "));
    }
    Ok(if names.is_empty() { scripts } else { names.to_vec() })
}

fn table(results: &[(String, bool)]) -> String {
    let width = results.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    results.iter().fold(String::new(), |mut text, (name, same)| {
        let verdict = if *same { "passed" } else { "changed" };
        let _ = writeln!(text, "{name:width$}  {verdict}"); // a String takes every text
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<String> {
        scripts(&Workspace::find().unwrap().root().join("findings")).unwrap()
    }

    #[test]
    fn the_index_has_a_line_for_each_script_and_no_other() {
        let index = include_str!("../../findings/README.md");
        let rows = index.lines().filter_map(|line| line.strip_prefix("| [")?.split_once("](")?.1.split_once(".sh)"));
        let named: Vec<&str> = rows.map(|(name, _)| name).collect();
        assert_eq!(named, all());
        assert!(named.len() > 20);
    }

    #[test]
    fn helpers_are_no_findings() {
        let names = all();
        assert!(["packages", "llvm", "crate", "README"].iter().all(|helper| !names.iter().any(|name| name == helper)));
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_there() {
        let scripts = ["a", "b"].map(str::to_owned).to_vec();
        let of =
            |names: &[&str]| chosen(scripts.clone(), &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]).unwrap(), scripts);
        assert_eq!(of(&["b"]).unwrap(), ["b"]);
        assert_eq!(of(&["c"]).unwrap_err().to_string(), "no finding has the name \"c\"; the names are a, b");
    }

    #[test]
    fn the_table_tells_which_findings_changed() {
        let results = [("short".to_owned(), true), ("much-longer".to_owned(), false)];
        assert_eq!(table(&results), "short        passed\nmuch-longer  changed\n");
    }
}
