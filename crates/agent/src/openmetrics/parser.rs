//! A parser of OpenMetrics text that shares no code with the encoder. It refuses what the specification forbids and
//! the encoder could produce.

use std::collections::BTreeSet;

/// A family as the text has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) help: String,
    pub(super) unit: String,
    pub(super) samples: Vec<Sample>,
}

/// A sample: the name, the labels and the text of the value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: String,
}

/// Returns the families of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Parsed>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("no `# EOF` at the end")?;
    let mut families: Vec<Parsed> = Vec::new();
    // Not `lines`, which would also split at a carriage return.
    for line in body.split_terminator('\n') {
        if let Some(rest) = line.strip_prefix("# ") {
            describe(&mut families, rest)?;
            continue;
        }
        let sample = sample(line)?;
        let family = families.last_mut().ok_or("a sample before the first family")?;
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        if sample.name != format!("{}{suffix}", family.name) {
            return Err(format!("{} in the family {}", sample.name, family.name));
        }
        family.samples.push(sample);
    }
    check(&families)?;
    Ok(families)
}

fn describe(families: &mut Vec<Parsed>, line: &str) -> Result<(), String> {
    let mut words = line.splitn(3, ' ');
    let (Some(word), Some(name), Some(text)) = (words.next(), words.next(), words.next()) else {
        return Err(format!("malformed description `{line}`"));
    };
    if families.last().is_none_or(|family| family.name != name) {
        families.push(Parsed { name: name.to_owned(), ..Parsed::default() });
    }
    let family = families.last_mut().ok_or("no family")?;
    if !family.samples.is_empty() {
        return Err(format!("{name} is described after its samples"));
    }
    let place = match word {
        "TYPE" => &mut family.kind,
        "HELP" => &mut family.help,
        "UNIT" => &mut family.unit,
        _ => return Err(format!("unknown description `{word}`")),
    };
    if !place.is_empty() {
        return Err(format!("two {word} of {name}"));
    }
    *place = if word == "HELP" { unescape(text)? } else { text.to_owned() };
    Ok(())
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or_else(|| format!("malformed sample `{line}`"))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            let quote = end_of_quote(after).ok_or("a value without an end")?;
            labels.push((label.to_owned(), unescape(&after[..quote])?));
            rest = &after[quote + 1..];
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',').ok_or("no comma between labels")?;
        }
    }
    let value = rest.strip_prefix(' ').ok_or_else(|| format!("no value in `{line}`"))?;
    if value.is_empty() || value.contains(' ') {
        return Err(format!("malformed value in `{line}`"));
    }
    Ok(Sample { name: name.to_owned(), labels, value: value.to_owned() })
}

fn end_of_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some(index),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(match characters.next() {
                Some('n') => '\n',
                Some(same @ ('\\' | '"')) => same,
                other => return Err(format!("unknown escape {other:?}")),
            }),
            '"' => return Err("a quote without a backslash".to_owned()),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

fn check(families: &[Parsed]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for family in families {
        let name = &family.name;
        if !names.insert(name) {
            return Err(format!("{name} is there twice"));
        }
        if family.kind.is_empty() || family.samples.is_empty() {
            return Err(format!("{name} has no type or no sample"));
        }
        if !family.unit.is_empty() && !name.ends_with(&format!("_{}", family.unit)) {
            return Err(format!("{name} does not end with its unit {}", family.unit));
        }
    }
    Ok(())
}
