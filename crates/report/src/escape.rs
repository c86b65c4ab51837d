//! Names in formats of text that have no escapes of their own.
//!
//! Programs that read these formats take words of digits for numbers, and some marks for the kind of a function. Where
//! a name has such a word, an invisible character (U+2060) is beside it, so that the name looks the same.

use std::borrow::Cow;

/// WORD JOINER: no white space, and of no width.
const INVISIBLE: char = '\u{2060}';

/// Marks of functions in kernel mode, of inlined ones, and those that the readers of folded stacks know beside them.
const MARKS: [&str; 4] = ["_[k]", "_[i]", "_[j]", "_[w]"];

/// Returns a name as a frame of folded stacks. A semicolon ends a frame, and a mark is the end of one. Names have no
/// line breaks, which end a stack, because they are [printable](recording::printable).
pub(crate) fn frame(name: &str) -> String {
    let mut frame = name.trim().replace(';', ":");
    if MARKS.iter().any(|mark| frame.ends_with(mark)) {
        frame.push(INVISIBLE);
    }
    frame
}

/// Returns the frames of a stack as one text, which a number can follow. Readers take a second number at the end for
/// the one of another run, and draw the difference.
pub(crate) fn stack(frames: &[String]) -> String {
    let mut stack = frames.join(";");
    let last = stack.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_number = last.starts_with(char::is_numeric) && last.chars().all(|one| one.is_numeric() || one == '.');
    if is_number && last.len() < stack.len() {
        stack.push(INVISIBLE);
    }
    stack
}

/// Returns a text of folded stacks, or of what was made of them, without what was added to names.
pub(crate) fn plain(text: &str) -> String {
    text.replace(INVISIBLE, "")
}

/// Returns the name of a process in the format of perf script. Readers take the first number behind a space for the
/// process.
pub(crate) fn command(name: &str) -> Cow<'_, str> {
    let is_number = |word: &str| word.starts_with(char::is_numeric);
    if !name.split(char::is_whitespace).skip(1).any(is_number) {
        return name.into();
    }
    let words =
        name.split(' ').map(|word| if is_number(word) { format!("{INVISIBLE}{word}") } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ").into()
}

/// Returns a name that is one word in the format of perf script: readers end events and modules at a space.
pub(crate) fn word(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_whitespace) { name.replace(char::is_whitespace, "_").into() } else { name.into() }
}

/// Returns the name of a module in the format of perf script, where it is in round brackets: Firefox's profiler ends
/// it at the first one that closes, and takes it from the last one that opens.
pub(crate) fn module(name: &str) -> Cow<'_, str> {
    let name = word(name);
    if name.contains(['(', ')']) { name.replace('(', "[").replace(')', "]").into() } else { name }
}
