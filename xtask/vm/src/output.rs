//! The outputs of the steps: the whole of each in files of the run's folder, and the end of it in the report.

use std::{fs, path::Path};

use anyhow::Result;

use super::guest::Ran;
use xtask::files;

/// Most characters of an output that the report has.
const MAX_SHOWN: usize = 20_000;

/// Names of the files of a step, without its own. Standard output is in one of the first two.
const JSON: &str = "json";
const TEXT: &str = "txt";
const ERRORS: &str = "stderr.txt";

/// Writes the output of a step.
pub fn write(run: &Path, step: &str, ran: &Ran) -> Result<()> {
    let folder = run.join("output");
    files::make_folder(&folder)?;
    let kind = if ran.out.trim_start().starts_with('{') { JSON } else { TEXT };
    for (kind, text) in [(kind, &ran.out), (ERRORS, &ran.err)] {
        if !text.is_empty() {
            files::write(&folder.join(format!("{step}.{kind}")), text)?;
        }
    }
    Ok(())
}

/// Returns the ends of standard output and standard error of a step.
pub fn shown(run: &Path, step: &str) -> (String, String) {
    let text = |kind: &str| fs::read_to_string(run.join("output").join(format!("{step}.{kind}"))).ok();
    let shown = |text: Option<String>| text.map(|text| end(&text)).unwrap_or_default();
    (shown(text(JSON).or_else(|| text(TEXT))), shown(text(ERRORS)))
}

/// Returns the end of a long text, which has the error or the sums.
fn end(text: &str) -> String {
    let left_out = text.chars().count().saturating_sub(MAX_SHOWN);
    let end: String = text.chars().skip(left_out).collect();
    if left_out == 0 { end } else { format!("[{left_out} characters left out]\n{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_everything_and_the_report_the_end() {
        let run = tempfile::tempdir().unwrap();
        let long = "\u{fc}".repeat(MAX_SHOWN + 5);
        let ran = Ran { code: 0, out: format!("{{{long}"), err: "e".to_owned() };
        write(run.path(), "info", &ran).unwrap();
        assert_eq!(fs::read_to_string(run.path().join("output/info.json")).unwrap(), ran.out);
        let (out, err) = shown(run.path(), "info");
        assert_eq!(err, "e");
        assert_eq!(out.strip_prefix("[6 characters left out]\n"), Some(&long[10..]));
        assert_eq!(shown(run.path(), "stat"), (String::new(), String::new()));
    }
}
