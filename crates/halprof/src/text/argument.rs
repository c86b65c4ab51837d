//! Arguments of commands that messages show.

use std::borrow::Cow;

/// Returns an argument as it can be typed in Windows PowerShell, PowerShell 7 and cmd: in quotation marks, if one of
/// them would change it or split it without. PowerShell takes `{A,B}` for a script block, and a list with blanks for
/// several arguments.
#[must_use]
pub fn argument(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || r"-_./\:=%+@".contains(letter);
    if !text.is_empty() && !text.starts_with('@') && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::argument;

    #[test]
    fn only_what_a_shell_changes_is_in_quotation_marks() {
        for plain in ["TotalIssues:u@4M", "cpu/event=0xC0/", r".\app.exe", "2%", "-C", "0-3"] {
            assert_eq!(argument(plain), plain);
        }
        for changed in ["A,B", "{A}", "cpu/event=1,umask=2/", "a b", ";", "", "@list", "$a", "MEM*", "a!b", "x&y"] {
            assert_eq!(argument(changed), format!("\"{changed}\""));
        }
    }
}
