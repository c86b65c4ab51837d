//! INF files taken apart: sections with their lines (WDK, "General Syntax Rules for INF Files").

use std::collections::BTreeMap;

/// A line of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Before the equals sign, in lower case; where there is none, the line is all values.
    pub key: Option<String>,
    /// Separated by commas, without quotes, tokens as they are written.
    pub values: Vec<String>,
}

/// A whole file. The names of sections are in lower case: Windows does not tell the cases apart.
#[derive(Debug, Default)]
pub struct Inf(pub BTreeMap<String, Vec<Line>>);

impl Inf {
    pub fn parse(text: &str) -> Self {
        let mut inf = Self::default();
        let mut section = String::new();
        for line in text.lines().map(|line| without_comment(line).trim()).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.trim().to_lowercase();
                assert!(inf.0.insert(section.clone(), Vec::new()).is_none(), "[{section}] is there twice");
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

    /// The lines of a section; none where there is no such section.
    pub fn section(&self, name: &str) -> &[Line] {
        self.0.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }

    /// The values of all lines with this key in a section.
    pub fn values(&self, section: &str, key: &str) -> Vec<String> {
        let lines = self.section(section).iter().filter(|line| line.key.as_deref() == Some(key));
        lines.flat_map(|line| line.values.clone()).collect()
    }
}

/// A semicolon begins a comment, but not between quotes.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|character| {
        quoted ^= character == '"';
        character == ';' && !quoted
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or_default()
}

#[test]
fn lines_come_apart_as_windows_reads_them() {
    let inf = Inf::parse("; all\r\n[A.B] ; here\r\nKey = 1, \"x; y\" ; there\r\nfile.sys\r\n\r\n[c]\r\nd=\r\n");
    let line = |key: Option<&str>, values: &[&str]| Line {
        key: key.map(str::to_owned),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    assert_eq!(inf.section("a.b"), [line(Some("key"), &["1", "x; y"]), line(None, &["file.sys"])]);
    assert_eq!(inf.section("C"), [line(Some("d"), &[""])]);
    assert_eq!(inf.values("a.B", "key"), ["1", "x; y"]);
}
