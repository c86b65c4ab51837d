//! A parser for INF files: sections and their lines (WDK, "General Syntax Rules for INF Files").

use std::collections::BTreeMap;

/// A line of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text before the equals sign, in lower case. `None` if the line has values only.
    pub key: Option<String>,
    /// The values, which commas separate. Quotes are removed; `%tokens%` are not expanded.
    pub values: Vec<String>,
}

/// A parsed file. Section names are in lower case, because Windows ignores their case.
#[derive(Debug, Default)]
pub struct Inf(pub BTreeMap<String, Vec<Line>>);

impl Inf {
    pub fn parse(text: &str) -> Self {
        let mut inf = Self::default();
        let mut section = String::new();
        for line in text.lines().map(|line| without_comment(line).trim()).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.trim().to_lowercase();
                assert!(inf.0.insert(section.clone(), Vec::new()).is_none(), "[{section}] occurs twice");
                continue;
            }
            let (key, values) = match line.split_once('=') {
                Some((key, values)) => (Some(key.trim().to_lowercase()), values),
                None => (None, line),
            };
            let values = values.split(',').map(|value| value.trim().trim_matches('"').to_owned()).collect();
            inf.0.get_mut(&section).expect("a section before the first line").push(Line { key, values });
        }
        inf
    }

    /// Returns the lines of a section, or none if there is no such section.
    pub fn section(&self, name: &str) -> &[Line] {
        self.0.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }

    /// Returns the values of all lines with `key` in a section.
    pub fn values(&self, section: &str, key: &str) -> Vec<String> {
        let lines = self.section(section).iter().filter(|line| line.key.as_deref() == Some(key));
        lines.flat_map(|line| line.values.clone()).collect()
    }
}

/// Removes a comment. It begins at a semicolon that is not in quotes.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|character| {
        quoted ^= character == '"';
        character == ';' && !quoted
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or_default()
}

#[test]
fn lines_are_parsed_as_windows_parses_them() {
    let inf = Inf::parse("; all\r\n[A.B] ; here\r\nKey = 1, \"x; y\" ; there\r\nfile.sys\r\n\r\n[c]\r\nd=\r\n");
    let line = |key: Option<&str>, values: &[&str]| Line {
        key: key.map(str::to_owned),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    assert_eq!(inf.section("a.b"), [line(Some("key"), &["1", "x; y"]), line(None, &["file.sys"])]);
    assert_eq!(inf.section("C"), [line(Some("d"), &[""])]);
    assert_eq!(inf.values("a.B", "key"), ["1", "x; y"]);
}
