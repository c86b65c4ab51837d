//! Tables of comma-separated values: those of the makers' events, and the facts that are made from them.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};

/// The columns of a table of Intel's events.
pub const INTEL: &str =
    "name,event,umask,cmask,inv,edge,any,counters,pebs,pebs_counters,msr,msr_value,alone,deprecated,period";
/// The columns of a table of AMD's events.
pub const AMD: &str = "name,sub,event,umask";

/// Reads a file.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Parses the lines of a table with this header.
pub fn lines<T>(text: &str, header: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let mut lines = text.lines();
    ensure!(lines.next() == Some(header), "line 1 is not \"{header}\"");
    let line = |(number, line): (u32, &str)| parse(line).with_context(|| format!("line {number}: {line}"));
    (2..).zip(lines).map(line).collect()
}

/// Parses the lines of a table with this header, each split into its columns.
pub fn rows<const COLUMNS: usize, T>(
    text: &str,
    header: &str,
    parse: impl Fn([&str; COLUMNS]) -> Result<T>,
) -> Result<Vec<T>> {
    lines(text, header, |line| {
        let fields: Vec<&str> = line.split(',').collect();
        let columns = fields.len();
        let Ok(fields) = fields.try_into() else { bail!("{columns} columns instead of {COLUMNS}") };
        parse(fields)
    })
}

/// Parses a hexadecimal number, with or without `0x`.
pub fn hexadecimal(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).with_context(|| format!("\"{text}\" is no hexadecimal number"))
}

/// Parses hexadecimal numbers with bars between them.
pub fn list(text: &str) -> Result<Vec<u16>> {
    let parts = text.split('|').filter(|number| !number.is_empty());
    parts.map(|part| u16::try_from(hexadecimal(part)?).context("more than 16 bits")).collect()
}

/// Parses 0 or 1.
pub fn flag(text: &str) -> Result<bool> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        other => bail!("a flag is \"{other}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_line_has_a_position() {
        let of = |text| format!("{:#}", rows(text, "a,b", |[a, b]| Ok((flag(a)?, list(b)?))).unwrap_err());
        for (text, wanted) in [
            ("a,c\n0,1\n", "line 1 is not \"a,b\""),
            ("a,b\n0,1\n0\n", "line 3: 0: 1 columns instead of 2"),
            ("a,b\n2,1\n", "line 2: 2,1: a flag is \"2\""),
            ("a,b\n1,0x1|XY\n", "line 2: 1,0x1|XY: \"XY\" is no hexadecimal number"),
            ("a,b\n1,10000\n", "line 2: 1,10000: more than 16 bits"),
        ] {
            assert!(of(text).starts_with(wanted), "{text}: {}", of(text));
        }
        assert_eq!(
            rows("a,b\n1,0x1a6|0X1A7\n0,\n", "a,b", |[a, b]| Ok((flag(a)?, list(b)?))).unwrap(),
            [(true, vec![0x1A6, 0x1A7]), (false, vec![])]
        );
    }
}
