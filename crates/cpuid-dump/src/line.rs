//! Grammar of one line.

use crate::LineError;

/// A parsed line.
pub enum Line {
    /// One leaf.
    Leaf {
        /// EAX input.
        leaf: u32,
        /// ECX input.
        subleaf: u32,
        /// EAX, EBX, ECX, EDX output.
        registers: [u32; 4],
    },
    /// The header of a processor's block, as `cpuid -r` writes it.
    Processor,
    /// Anything else.
    Other,
}

/// Parses one line.
///
/// # Errors
/// If a CPUID line is malformed.
pub fn read(line: &str) -> Result<Line, LineError> {
    let line = line.trim();
    if is_header(line) {
        return Ok(Line::Processor);
    }
    if line.starts_with("0x") && line.contains("eax=") {
        return read_equals(line);
    }
    match line.split_at_checked(5) {
        Some((word, rest)) if word.eq_ignore_ascii_case("CPUID") && rest.starts_with([' ', '\t']) => {
            read_dashes(rest.trim_start())
        }
        _ => Ok(Line::Other),
    }
}

/// Returns whether the line is `CPU:` or `CPU 12:` and nothing else.
fn is_header(line: &str) -> bool {
    line.strip_prefix("CPU")
        .and_then(|rest| rest.strip_suffix(':'))
        .is_some_and(|number| number.trim_start().bytes().all(|b| b.is_ascii_digit()))
}

/// Parses `0000000A [SL 01]: 07300403-00000000-00000000-00000603 [SL 01] [anything]`; each subleaf is optional.
fn read_dashes(line: &str) -> Result<Line, LineError> {
    let (word, after_leaf) = split_word(line);
    // Older versions of AIDA64 have a tab or spaces after the leaf instead of a colon.
    let is_older = !after_leaf.is_empty() && !line.contains(':');
    let (head, tail) = if is_older { (word, after_leaf) } else { line.split_once(':').unwrap_or((line, "")) };
    let (word, after_word) = split_word(head);
    let (joined, note) = split_word(tail);
    if !is_eight_digits(word) && joined.matches('-').count() != 3 {
        return Ok(Line::Other);
    }
    let leaf = eight_digits(word).ok_or(LineError::Leaf)?;
    if head.len() == line.len() {
        return Err(LineError::Colon);
    }
    let found = registers(tail);
    let subleaf = match (subleaf(after_word)?, subleaf(found.map_or(note, |(_, note)| note))?) {
        (Some(one), Some(other)) if one != other => return Err(LineError::Subleaf),
        (one, other) => one.or(other).unwrap_or(0),
    };
    let (registers, _) = found.ok_or(LineError::Registers)?;
    Ok(Line::Leaf { leaf, subleaf, registers })
}

/// Returns the registers of a line, and the note behind them. They are joined by dashes, or have spaces between them,
/// around the dashes or instead of them.
fn registers(tail: &str) -> Option<([u32; 4], &str)> {
    let (word, note) = split_word(tail);
    let is_spaced = is_eight_digits(word) || word.ends_with('-');
    if !is_spaced {
        return Some((exactly_four(word.split('-').map(eight_digits))?, note));
    }
    let (mut values, mut rest) = ([0; 4], tail);
    for value in &mut values {
        rest = rest.trim_start_matches([' ', '\t', '-']);
        let (digits, after) = rest.split_at_checked(8)?;
        *value = eight_digits(digits)?;
        rest = after;
    }
    rest.chars().next().is_none_or(|next| next.is_whitespace() || next == '[').then_some((values, rest))
}

/// Parses `0x00000004 0x01: eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000`; the subleaf is optional.
fn read_equals(line: &str) -> Result<Line, LineError> {
    let (head, tail) = line.split_once(':').ok_or(LineError::Colon)?;
    let (leaf, subleaf) = split_word(head);
    let leaf = leaf.strip_prefix("0x").and_then(eight_digits).ok_or(LineError::Leaf)?;
    let subleaf = match subleaf.trim() {
        "" => 0,
        text => text.strip_prefix("0x").and_then(digits).ok_or(LineError::Subleaf)?,
    };
    let values = tail
        .split_whitespace()
        .zip(["eax=0x", "ebx=0x", "ecx=0x", "edx=0x"])
        .map(|(word, name)| word.strip_prefix(name).and_then(eight_digits));
    let registers = exactly_four(values).ok_or(LineError::Registers)?;
    Ok(Line::Leaf { leaf, subleaf, registers })
}

/// Returns the value of `[SL 01]` in `text`. Other remarks in brackets, such as AIDA64's vendor name, are ignored.
fn subleaf(text: &str) -> Result<Option<u32>, LineError> {
    let Some((_, after)) = text.split_once("[SL ") else { return Ok(None) };
    let number = after.split_once(']').and_then(|(number, _)| digits(number.trim()));
    number.map(Some).ok_or(LineError::Subleaf)
}

/// Splits off the first word, which ends before whitespace or a bracket.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at_checked(text.find([' ', '\t', '[']).unwrap_or(text.len())).unwrap_or((text, ""))
}

fn is_eight_digits(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn eight_digits(text: &str) -> Option<u32> {
    if is_eight_digits(text) { digits(text) } else { None }
}

/// Parses hexadecimal digits and nothing else; `from_str_radix` alone accepts a sign.
fn digits(text: &str) -> Option<u32> {
    let valid = text.bytes().all(|b| b.is_ascii_hexdigit());
    if valid { u32::from_str_radix(text, 16).ok() } else { None }
}

/// Returns the four values, if there are exactly four and all are present.
fn exactly_four(mut values: impl Iterator<Item = Option<u32>>) -> Option<[u32; 4]> {
    let four = [values.next()??, values.next()??, values.next()??, values.next()??];
    values.next().is_none().then_some(four)
}
