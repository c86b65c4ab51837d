//! Names in numpy for Windows, whose images have exports and no symbols, and whose OpenBLAS has 19 MB of code without
//! unwind information. No name may be one that the file does not have, and none may stand for code before it.
//!
//! The samples are made up and cover the whole code. What a file exports is read by llvm-readobj.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::client::Client;
use xtask::{files, run, workspace::Workspace};

/// The release of numpy, and its wheel for Windows.
const NUMPY: &str = "numpy==2.1.3";
const PLATFORM: [&str; 5] = ["--only-binary=:all:", "--platform", "win_amd64", "--python-version", "312"];

/// Number of samples, and the least number of them that have a name.
const SAMPLES: &str = "20000";
const NAMED: usize = 4_000;

/// Address of the first module, and the distance between two.
const BASE: u64 = 0x7FF8_0000_0000;
const SPACING: u64 = 0x1000_0000;

/// Exported names and addresses relative to the base of the module.
type Exports = BTreeSet<(u64, String)>;

/// Records, and compares each name with the exports.
pub fn run(workspace: &Workspace, client: &Client) -> Result<()> {
    let images = images(&client.folder.with_file_name("numpy"))?;
    let mut addresses = workspace.cargo("run");
    addresses.args(["--quiet", "--locked", "-p", "report", "--example", "addresses", "--", SAMPLES]);
    run::quiet(addresses.arg(client.folder.join("images.rec")).args(&images))?;
    let mut exports = BTreeMap::new();
    for (path, base) in images.iter().zip((0..).map(|index| BASE + index * SPACING)) {
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).context("a name that is not UTF-8")?;
        exports.insert(name.to_owned(), (base, exports_of(path)?));
    }
    let named = check_script(&client.run(&["script", "images.rec"])?, &exports)?;
    ensure!(named >= NAMED, "only {named} samples have a name");
    let report: Value =
        serde_json::from_str(&client.run(&["report", "images.rec", "--sort", "module,symbol", "--json"])?)?;
    let rows = report.pointer("/sources/0/rows").and_then(Value::as_array).context("no rows in the report")?;
    for row in rows {
        check_row(row, &exports)?;
    }
    println!("{named} of {SAMPLES} addresses in {} images of {NUMPY} have a name, each from its file", images.len());
    Ok(())
}

/// Downloads the wheel, unless that is done, and returns the paths of its images. The C++ library is not among them:
/// its decorated names are shown demangled.
fn images(folder: &Path) -> Result<Vec<String>> {
    if !folder.join("numpy").is_dir() {
        files::make_folder(folder)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(folder);
        run::verbose(pip.args(PLATFORM).arg(NUMPY))?;
    }
    let find = ["-type", "f", "(", "-name", "*.dll", "-o", "-name", "*.pyd", ")", "!", "-name", "msvcp*"];
    let mut images: Vec<String> =
        run::output(Command::new("find").arg(folder).args(find))?.lines().map(str::to_owned).collect();
    images.sort();
    ensure!(images.iter().any(|path| path.contains("openblas")), "the wheel has only {images:?}");
    Ok(images)
}

/// Returns what llvm-readobj reads.
fn exports_of(path: &str) -> Result<Exports> {
    let text = run::output(Command::new("llvm-readobj").arg("--coff-exports").arg(path))?;
    let (mut exports, mut name) = (Exports::new(), "");
    for line in text.lines().map(str::trim) {
        if let Some(found) = line.strip_prefix("Name: ") {
            name = found;
        } else if let Some(address) = line.strip_prefix("RVA: 0x") {
            exports.insert((u64::from_str_radix(address, 16)?, name.to_owned()));
        }
    }
    Ok(exports)
}

/// Checks that each name of a script is exported where the function begins. Returns the number of names.
fn check_script(script: &str, modules: &BTreeMap<String, (u64, Exports)>) -> Result<usize> {
    let mut named = 0;
    for line in script.lines().filter(|line| line.starts_with('\t')) {
        let parts = line.trim().strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
        let (frame, module) = parts.with_context(|| line.to_owned())?;
        let (address, symbol) = frame.split_once(' ').with_context(|| line.to_owned())?;
        if symbol == "[unknown]" {
            continue;
        }
        let (name, offset) = symbol.rsplit_once("+0x").with_context(|| line.to_owned())?;
        let (base, exports) = modules.get(module).with_context(|| line.to_owned())?;
        let begin = u64::from_str_radix(address, 16)? - base - u64::from_str_radix(offset, 16)?;
        ensure!(exports.contains(&(begin, without_folded(name).to_owned())), "not in the exports: {line}");
        named += 1;
    }
    Ok(named)
}

/// Checks that a row of the report names an export of its module, or the module.
fn check_row(row: &Value, modules: &BTreeMap<String, (u64, Exports)>) -> Result<()> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).with_context(|| format!("no {name} in {row}"));
    let (module, symbol) = (text("module")?, text("symbol")?);
    let (_, exports) = modules.get(module).with_context(|| format!("no module {module:?}"))?;
    let offset = symbol.strip_prefix(module).and_then(|rest| rest.strip_prefix("+0x"));
    let is_offset = offset.is_some_and(|offset| u64::from_str_radix(offset, 16).is_ok());
    let is_export = || exports.iter().any(|(_, name)| name == without_folded(symbol));
    ensure!(is_offset || is_export(), "{module} has no {symbol:?}");
    Ok(())
}

/// Returns a name without the note that other functions have the same code.
fn without_folded(name: &str) -> &str {
    name.strip_suffix(" folded)").and_then(|name| name.rsplit_once(" (+")).map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_function_is_found() {
        let exports = Exports::from([(0x1000, "first".to_owned()), (0x1020, "second".to_owned())]);
        let modules = BTreeMap::from([("a.dll".to_owned(), (BASE, exports))]);
        let line =
            |address: u64, symbol: &str| format!("p 4/5 [000] 0.0: 1 c:\n\t{:16x} {symbol} (a.dll)\n", BASE + address);
        let check = |address, symbol| check_script(&line(address, symbol), &modules).ok();
        assert_eq!(check(0x1024, "second+0x4"), Some(1));
        assert_eq!(check(0x1024, "second (+2 folded)+0x4"), Some(1));
        assert_eq!(check(0x1024, "[unknown]"), Some(0));
        assert_eq!(check(0x1024, "first+0x4"), None, "begins elsewhere");
        assert_eq!(check(0x1004, "third+0x4"), None);
        let row = |symbol: &str| check_row(&serde_json::json!({"module": "a.dll", "symbol": symbol}), &modules).is_ok();
        assert!(row("first") && row("a.dll+0x1004") && !row("third") && !row("b.dll+0x1004"));
    }
}
