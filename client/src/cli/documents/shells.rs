//! The arguments that a program gets for a command line in each shell of Windows, for the tests of documents.
//!
//! No PowerShell runs here, so these are its rules, written by hand from: about_Parsing, about_Quoting_Rules,
//! about_Special_Characters and about_Redirection of Microsoft; of PowerShell/PowerShell `tokenizer.cs`
//! (`ScanGenericToken`, `ScanParameter`), `CharTraits.cs`, `Parser.cs` (`GetCommandArgument`),
//! `NativeCommandParameterBinder.cs` and its test `NativeCommandArguments.Tests.ps1`; for cmd "Parsing C command-line
//! arguments" of Microsoft and the text of `cmd /?`. Constructs that no document should have are refused.

use std::iter::Peekable;
use std::str::Chars;

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Windows PowerShell 5.1.
    PowerShell5,
    /// PowerShell 7.3 and later.
    PowerShell7,
    /// cmd.exe, at its prompt.
    Cmd,
}

pub const SHELLS: [Shell; 3] = [Shell::PowerShell5, Shell::PowerShell7, Shell::Cmd];

/// Commands of Windows and of other programs that every shell finds by their names.
pub const PROGRAMS: [&str; 20] = [
    "bcdedit",
    "certutil",
    "cmd",
    "logman",
    "manage-bde",
    "more",
    "perl",
    "pnputil",
    "reg",
    "sc.exe",
    "shutdown",
    "signtool",
    "tracerpt",
    "type",
    "verifier",
    "where.exe",
    "windbg",
    "winget",
    "wpr",
    "xperf",
];

/// Names of programs that are aliases of other commands in Windows PowerShell.
const ALIASES: [&str; 6] = ["sc", "curl", "diff", "fc", "where", "wget"];

/// Returns the commands of a line with the arguments that each gets, the same in every shell.
pub fn commands(line: &str) -> Result<Vec<Vec<String>>, String> {
    let [first, others @ ..] = SHELLS.map(|shell| in_shell(shell, line).map_err(|why| format!("{shell:?}: {why}")));
    let first = first?;
    for (shell, other) in SHELLS.into_iter().skip(1).zip(others) {
        let other = other?;
        if other != first {
            return Err(format!("{:?} passes {first:?}, and {shell:?} {other:?}", SHELLS[0]));
        }
    }
    Ok(first)
}

/// Returns the commands of a line in one shell.
pub fn in_shell(shell: Shell, line: &str) -> Result<Vec<Vec<String>>, String> {
    match shell {
        Shell::Cmd => cmd(line),
        _ => PowerShell { is_7: shell == Shell::PowerShell7, letters: line.chars().peekable() }.commands(),
    }
}

/// Returns whether a program of this name is found and run.
fn checked_name(name: &str) -> Result<(), String> {
    if ALIASES.contains(&name) {
        return Err(format!("PowerShell has another command under the name {name}; write {name}.exe"));
    }
    if !name.contains('\\') && !PROGRAMS.contains(&name) {
        return Err(format!(r"PowerShell does not search the current folder; write .\{name}"));
    }
    Ok(())
}

/// An element of an argument: what stands between two commas.
#[derive(Default)]
struct Element {
    value: String,
    text: String,
    is_bare: bool,
    /// Whether a blank stands in front of it, or of the comma before it.
    blank: bool,
}

struct PowerShell<'a> {
    is_7: bool,
    letters: Peekable<Chars<'a>>,
}

impl PowerShell<'_> {
    fn commands(mut self) -> Result<Vec<Vec<String>>, String> {
        let (mut commands, mut arguments) = (Vec::new(), Vec::new());
        loop {
            self.blanks();
            match self.letters.peek() {
                None => break,
                Some('|') => {
                    self.letters.next();
                    commands.push(self.passed(&std::mem::take(&mut arguments))?);
                }
                Some(';') => return Err("; ends the command; write \";\"".to_owned()),
                Some('&') => return Err("& is an operator; write \"&\"".to_owned()),
                Some('<') => return Err("< is reserved".to_owned()),
                Some('#') => return Err("# begins a comment".to_owned()),
                Some('>') => {
                    self.letters.next();
                    self.blanks();
                    self.element()?;
                }
                Some(_) => {
                    let mut list = vec![self.element()?];
                    while let Some(blank) = self.comma() {
                        let behind = self.blanks();
                        let element = self.element()?;
                        list.push(Element { blank: blank || behind, ..element });
                    }
                    arguments.push(list);
                }
            }
        }
        commands.push(self.passed(&arguments)?);
        Ok(commands)
    }

    /// Skips blanks, and returns whether there were any.
    fn blanks(&mut self) -> bool {
        let mut any = false;
        while self.letters.next_if(|letter| letter.is_whitespace()).is_some() {
            any = true;
        }
        any
    }

    /// Skips a comma, which can stand behind blanks. Returns whether it did.
    fn comma(&mut self) -> Option<bool> {
        let mut ahead = self.letters.clone();
        let mut blank = false;
        while ahead.next_if(|letter| letter.is_whitespace()).is_some() {
            blank = true;
        }
        ahead.next_if_eq(&',')?;
        self.letters = ahead;
        Some(blank)
    }

    fn element(&mut self) -> Result<Element, String> {
        let mut ahead = self.letters.clone();
        match (ahead.next(), ahead.next()) {
            (Some('{'), _) => Err("braces are a script block; write \"{A,B}\"".to_owned()),
            (Some('('), _) => Err("parentheses are an expression".to_owned()),
            (Some('@'), _) => Err("@ at the begin of an argument is an array or a splatted variable".to_owned()),
            (Some('~'), _) => Err("~ is the home folder".to_owned()),
            (Some(quote @ ('"' | '\'')), _) => {
                self.letters.next();
                let mut element = Element::default();
                element.text.push(quote);
                self.string(quote, &mut element)?;
                let ends = |letter: &char| letter.is_whitespace() || ",;|".contains(*letter);
                if self.letters.peek().is_some_and(|letter| !ends(letter)) {
                    return Err("what follows a closing quotation mark is another argument".to_owned());
                }
                Ok(element)
            }
            (Some('-'), Some(second)) if second.is_alphabetic() || second == '_' || second == '?' => self.parameter(),
            (Some(_), _) => self.generic(Element::default()),
            (None, _) => Err("an argument is missing".to_owned()),
        }
    }

    /// Reads `-name`, which ends at a point or a bracket, and with a colon.
    fn parameter(&mut self) -> Result<Element, String> {
        let mut element = Element { is_bare: true, ..Element::default() };
        loop {
            match self.letters.peek() {
                Some('"' | '\'') => return self.generic(element),
                Some(letter) if !letter.is_whitespace() && !"{}();,|&.[".contains(*letter) => {
                    let letter = *letter;
                    element.value.push(letter);
                    element.text.push(letter);
                    self.letters.next();
                    if letter == ':' {
                        return Err("a colon ends the name of a parameter; write the argument in quotes".to_owned());
                    }
                }
                _ => return Ok(element),
            }
        }
    }

    /// Reads a word, which can have quotation marks inside.
    fn generic(&mut self, mut element: Element) -> Result<Element, String> {
        element.is_bare = true;
        while let Some(letter) = self.letters.peek().copied() {
            match letter {
                ' ' | '\t' | ',' | ';' | '|' | '&' => break,
                '(' | ')' | '{' | '}' => return Err(format!("{letter} ends the word; write it in quotation marks")),
                '<' | '>' => return Err(format!("cmd redirects at {letter}; write it in quotation marks")),
                '"' | '\'' => {
                    self.letters.next();
                    element.text.push(letter);
                    self.string(letter, &mut element)?;
                }
                _ => self.letter(&mut element)?,
            }
        }
        Ok(element)
    }

    /// Reads a letter that an escape or a variable can begin.
    fn letter(&mut self, element: &mut Element) -> Result<(), String> {
        let letter = self.letters.next().unwrap_or_default();
        let next = self.letters.peek().copied().unwrap_or(' ');
        if letter == '`' {
            return Err("` escapes the next letter".to_owned());
        }
        if letter == '$' && (next.is_alphanumeric() || "_{(^?$:".contains(next)) {
            return Err("$ begins a variable".to_owned());
        }
        element.value.push(letter);
        element.text.push(letter);
        Ok(())
    }

    /// Reads a string behind its opening quotation mark.
    fn string(&mut self, quote: char, element: &mut Element) -> Result<(), String> {
        loop {
            match self.letters.peek().copied() {
                None => return Err("a quotation mark is not closed".to_owned()),
                Some(letter) if letter == quote => {
                    self.letters.next();
                    element.text.push(quote);
                    if self.letters.next_if_eq(&quote).is_none() {
                        return Ok(());
                    }
                    element.text.push(quote);
                    element.value.push(quote);
                }
                Some(letter) if quote == '\'' => {
                    self.letters.next();
                    element.value.push(letter);
                    element.text.push(letter);
                }
                Some(_) => self.letter(element)?,
            }
        }
    }

    /// Returns the arguments as the program gets them.
    fn passed(&self, arguments: &[Vec<Element>]) -> Result<Vec<String>, String> {
        let name = arguments.first().and_then(|list| list.first()).ok_or("a command is missing")?;
        if !name.is_bare {
            return Err("a string in quotation marks is a value, not a command".to_owned());
        }
        checked_name(&name.value)?;
        let passed: Vec<String> = arguments.iter().flat_map(|list| self.argument(list)).collect();
        if self.is_7 {
            return Ok(passed);
        }
        // Windows PowerShell makes one text of the arguments, in which it escapes nothing, and leaves out empty ones.
        let quoted = |value: String| if value.contains(' ') { format!("\"{value}\"") } else { value };
        Ok(split(&passed.into_iter().map(quoted).collect::<Vec<_>>().join(" ")))
    }

    /// Returns the arguments that a list becomes.
    fn argument(&self, list: &[Element]) -> Vec<String> {
        let values = || list.iter().map(|element| element.value.clone());
        match list {
            [one] => vec![one.value.clone()],
            // The text of a list of bare words is passed as it stands, with its quotation marks.
            _ if self.is_7 => {
                let mut arguments = vec![String::new()];
                for (position, element) in list.iter().enumerate() {
                    if element.blank {
                        arguments.push(String::new());
                    }
                    if let Some(argument) = arguments.last_mut() {
                        argument.push_str(&element.text);
                        argument.push_str(if position + 1 < list.len() { "," } else { "" });
                    }
                }
                arguments
            }
            _ if list.iter().any(|element| element.blank) => values().collect(),
            _ => vec![list.iter().map(Element::in_list).collect::<Vec<_>>().join(",")],
        }
    }
}

impl Element {
    /// Returns the text of an element of a list in Windows PowerShell, where a number loses its notation.
    fn in_list(&self) -> String {
        let hexadecimal = self.value.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = self.is_bare.then(|| hexadecimal.or_else(|| self.value.parse().ok())).flatten();
        number.map_or_else(|| self.value.clone(), |number| number.to_string())
    }
}

/// Returns the commands of a line in cmd, which gives a program its part of the line as it stands.
fn cmd(line: &str) -> Result<Vec<Vec<String>>, String> {
    let parts: Vec<&str> = line.split('%').collect();
    let is_name =
        |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let inner = parts.get(1..parts.len().max(2) - 1).unwrap_or_default();
    if let Some(name) = inner.iter().find(|part| is_name(part)) {
        return Err(format!("%{name}% is a variable"));
    }
    let (mut commands, mut text, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                text.push(letter);
            }
            _ if is_quoted => text.push(letter),
            '^' | '&' | '<' => return Err(format!("{letter} is an operator; write it in quotation marks")),
            '|' => commands.push(std::mem::take(&mut text)),
            '>' => {
                while letters.next_if_eq(&' ').is_some() {}
                while letters.next_if(|letter| *letter != ' ').is_some() {}
            }
            _ => text.push(letter),
        }
    }
    commands.push(text);
    Ok(commands.iter().map(|command| split(command)).collect())
}

/// Splits a command line as the C runtime of a program does.
fn split(line: &str) -> Vec<String> {
    let (mut arguments, mut argument, mut is_quoted) = (Vec::new(), None::<String>, false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' if !is_quoted => arguments.extend(argument.take()),
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => argument.get_or_insert_default().push('"'),
            '"' => {
                is_quoted = !is_quoted;
                argument.get_or_insert_default();
            }
            '\\' => {
                let mut count = 1;
                while letters.next_if_eq(&'\\').is_some() {
                    count += 1;
                }
                let (kept, is_escape) =
                    if letters.peek() == Some(&'"') { (count / 2, count % 2 == 1) } else { (count, false) };
                argument.get_or_insert_default().extend(std::iter::repeat_n('\\', kept));
                if is_escape {
                    argument.get_or_insert_default().extend(letters.next());
                }
            }
            _ => argument.get_or_insert_default().push(letter),
        }
    }
    arguments.extend(argument);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(shell: Shell, line: &str) -> Vec<String> {
        in_shell(shell, line).unwrap().concat()
    }

    /// From PowerShell's own `NativeCommandArguments.Tests.ps1`, and from the source of 5.1.
    #[test]
    fn a_list_is_in_pieces_where_it_has_blanks() {
        for (list, in_5, in_7) in [
            ("1,2", &["1,2"][..], &["1,2"][..]),
            ("1,2,3", &["1,2,3"], &["1,2,3"]),
            ("1, 2", &["1", "2"], &["1,", "2"]),
            ("1, 2,3", &["1", "2", "3"], &["1,", "2,3"]),
            ("0x19,b", &["25,b"], &["0x19,b"]),
            ("\"a,b\"", &["a,b"], &["a,b"]),
            ("\"a\",\"b\"", &["a,b"], &["\"a\",\"b\""]),
            ("cpu/event=1,umask=2/", &["cpu/event=1,umask=2/"], &["cpu/event=1,umask=2/"]),
        ] {
            let line = format!(r".\client {list}");
            assert_eq!(passed(Shell::PowerShell5, &line)[1..], *in_5, "{list}");
            assert_eq!(passed(Shell::PowerShell7, &line)[1..], *in_7, "{list}");
        }
    }

    #[test]
    fn a_line_that_a_shell_changes_is_refused() {
        for (line, why) in [
            ("client info", r"write .\client"),
            ("sc stop halprof", "write sc.exe"),
            (r".\client stat -e {A,B}", "script block"),
            (r".\client stat -e {A,B}:u", "script block"),
            (r".\client stat -e A{B", "write it in quotation marks"),
            (r".\client stat -e A, B", "passes"),
            (r".\client stat -e 0x19,B", "passes"),
            (r#".\client stat -e "A","B""#, "passes"),
            (r#".\client stat -e "A"B"#, "another argument"),
            (r".\client stat -x ;", "write \";\""),
            (r".\client stat -x &", "write \"&\""),
            (r".\client stat -e 'A B'", "passes"),
            (r".\client stat -e @list", "splatted"),
            (r".\client stat -e $list", "variable"),
            (r#".\client stat -e "$list""#, "variable"),
            (r".\client stat -o %TEMP%\a", "passes"),
            (r".\client stat -o %TEMP%", "variable"),
            (r".\client stat -o.rec", "passes"),
            (r".\client stat -o a^b", "operator"),
            (r#".\client list "MEM"#, "not closed"),
            (r#".\client stat -x "" app"#, "passes"),
            (r#".\client stat -o "C:\a b\" -- x"#, "passes"),
            (r".\client stat # count", "comment"),
        ] {
            let refused = commands(line).unwrap_err();
            assert!(refused.contains(why) || why == "passes" && refused.contains("variable"), "{line}: {refused}");
        }
    }

    #[test]
    fn a_line_in_the_one_form_is_the_same_in_every_shell() {
        for (line, wanted) in [
            (r#".\client stat -e "{A,B}:u" -- app.exe"#, &["-e", "{A,B}:u", "--", "app.exe"][..]),
            (
                r#".\client stat -- cmd /c "for /L %i in (1,1,20) do @rem""#,
                &["--", "cmd", "/c", "for /L %i in (1,1,20) do @rem"],
            ),
            (r".\client record -e A@4M --fail-above 5% --sort=a", &["-e", "A@4M", "--fail-above", "5%", "--sort=a"]),
            (r#".\client stat -x ";" -C 0-3 --time -250ms"#, &["-x", ";", "-C", "0-3", "--time", "-250ms"]),
            (r#".\client annotate "ntdll!Rtl*" > app.txt"#, &["ntdll!Rtl*"]),
            (r".\client install --driver D:\build\halprof.sys", &["--driver", r"D:\build\halprof.sys"]),
        ] {
            let [command] = &commands(line).unwrap()[..] else { panic!("{line}") };
            let from = command.len() - wanted.len();
            assert_eq!(command[from..], *wanted, "{line}");
        }
        assert_eq!(commands(r".\client report | more").unwrap().len(), 2);
    }
}
