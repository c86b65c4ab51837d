//! The functions of a just-in-time compiler: those that were recorded, and perf maps, which it writes to
//! `perf-PID.map`.
//!
//! A line has the start and the size of a function in hexadecimal and its name, which extends to the end of the line
//! (tools/perf/Documentation/jit-interface.txt of Linux). .NET, V8 and agents for Java write them.

use std::collections::BTreeMap;
use std::ops::Range;

use recording::printable;

/// A function with code in memory that belongs to no module.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CompiledFunction {
    end: u64,
    /// The name in the text of the map.
    name: Range<usize>,
}

/// The functions of a perf map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PerfMap {
    text: String,
    /// Functions by start address; they do not overlap.
    functions: BTreeMap<u64, CompiledFunction>,
    bad_lines: u64,
}

impl PerfMap {
    /// Reads a map. Where functions overlap, the later line has the addresses: the compiler reused the memory. Bytes
    /// that are not UTF-8 are replaced.
    pub fn parse(bytes: Vec<u8>) -> Self {
        let given =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut text = String::with_capacity(given.len());
        let mut map = Self::default();
        for line in given.lines() {
            let (offset, line) = (text.len(), printable(line));
            text.push_str(&line);
            match function(&line, offset) {
                Some((start, function)) => map.insert(start, function),
                None if line.trim().is_empty() => {}
                None => map.bad_lines += 1,
            }
        }
        Self { text, ..map }
    }

    /// Adds a function, which has the addresses of those that it overlaps. One without size is left out.
    pub fn add(&mut self, start: u64, size: u64, name: &str) {
        let Some(end) = start.checked_add(size).filter(|end| *end > start) else { return };
        let offset = self.text.len();
        self.text.push_str(name);
        self.insert(start, CompiledFunction { end, name: offset..self.text.len() });
    }

    /// Inserts a function, and takes its addresses from the functions that it overlaps.
    fn insert(&mut self, start: u64, function: CompiledFunction) {
        let end = function.end;
        let before = self.functions.range(..start).next_back().filter(|(_, other)| other.end > start);
        if let Some((other_start, other)) = before.map(|(start, other)| (*start, other.clone())) {
            self.functions.insert(other_start, CompiledFunction { end: start, ..other.clone() });
            self.insert_rest(end, other);
        }
        while let Some((other_start, _)) = self.functions.range(start..end).next() {
            let other_start = *other_start;
            if let Some(other) = self.functions.remove(&other_start) {
                self.insert_rest(end, other);
            }
        }
        self.functions.insert(start, function);
    }

    /// Inserts the part of `other` from `start` on, if it has one.
    fn insert_rest(&mut self, start: u64, other: CompiledFunction) {
        if other.end > start {
            self.functions.insert(start, other);
        }
    }

    /// Returns the name of the function at `address`.
    pub fn at(&self, address: u64) -> Option<&str> {
        let (_, function) = self.functions.range(..=address).next_back()?;
        self.text.get(function.name.clone()).filter(|_| address < function.end)
    }

    /// Returns the number of lines that are not empty and not functions.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }
}

/// Returns the start of the function in a line, and the function. `offset` is that of the line in the text.
fn function(line: &str, offset: usize) -> Option<(u64, CompiledFunction)> {
    let (start, rest) = line.trim_start().split_once(' ')?;
    let (size, name) = rest.trim_start().split_once(' ')?;
    let (start, size, name) = (number(start)?, number(size)?, name.trim());
    let end = start.checked_add(size).filter(|end| *end > start && !name.is_empty())?;
    let name_offset = offset + (line.trim_end().len() - name.len());
    Some((start, CompiledFunction { end, name: name_offset..name_offset + name.len() }))
}

fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` accepts a sign.
    digits.starts_with(|c: char| c.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(text: &str) -> PerfMap {
        PerfMap::parse(text.as_bytes().to_vec())
    }

    #[test]
    fn names_extend_to_the_end_of_the_line() {
        let map = map("7f0010 20 void [App] App.Program::Main(string[])[Tier0]\r\n  0x7F0040  0x10 last one");
        for (address, wanted) in [
            (0x7F_000F, None),
            (0x7F_0010, Some("void [App] App.Program::Main(string[])[Tier0]")),
            (0x7F_002F, Some("void [App] App.Program::Main(string[])[Tier0]")),
            (0x7F_0030, None),
            (0x7F_004F, Some("last one")),
            (0x7F_0050, None),
            (u64::MAX, None),
        ] {
            assert_eq!(map.at(address), wanted, "{address:#x}");
        }
        assert_eq!(map.bad_lines(), 0);
    }

    #[test]
    fn lines_that_are_no_functions_are_counted_and_the_others_used() {
        let bad = [
            "hello",
            "1000",
            "1000 10",
            "1000 10 ",
            "1000 0 empty",
            "xyz 10 name",
            "1000 -10 name",
            "+1000 10 name",
            "ffffffffffffffff 2 beyond",
            "10000000000000000 2 large",
        ];
        let map = map(&format!("2000 10 good\n\n{}\n3000 10 better\n", bad.join("\n")));
        assert_eq!((map.at(0x2000), map.at(0x3000), map.at(0x1000)), (Some("good"), Some("better"), None));
        assert_eq!(map.bad_lines(), bad.len() as u64);
    }

    #[test]
    fn names_that_are_not_utf_8_are_readable() {
        let map = PerfMap::parse(b"10 10 a\xFFb\n20 10 c\n30 10 \x1b]0;d\x07\n40 10 e".to_vec());
        let names = [0x10, 0x20, 0x30, 0x40].map(|address| map.at(address));
        assert_eq!(names, [Some("a\u{FFFD}b"), Some("c"), Some("]0;d"), Some("e")]);
    }

    proptest! {
        /// Compares with a search for the last line that has the address.
        #[test]
        fn last_of_overlapping_functions_has_the_address(
            ranges in prop::collection::vec((0_u64..64, 1_u64..32), 1..16)
        ) {
            let lines = ranges.iter().enumerate().map(|(index, (start, size))| format!("{start:x} {size:x} {index}\n"));
            let map = map(&lines.collect::<String>());
            for address in 0..100 {
                let wanted = ranges.iter().rposition(|(start, size)| (*start..start + size).contains(&address));
                let wanted = wanted.map(|index| index.to_string());
                prop_assert_eq!(map.at(address), wanted.as_deref());
            }
        }
    }
}
