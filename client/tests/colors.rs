//! Tests of the program with and without a terminal, which `script` of util-linux makes.

use std::process::{Command, Stdio};

use crate::closed_pipe::record;

#[test]
fn colors_follow_the_terminal_no_color_and_the_option() {
    let file = tempfile::NamedTempFile::new().unwrap();
    record(file.path());
    for (on_terminal, option, no_color, wanted) in [
        (false, "auto", false, false),
        (false, "always", false, true),
        (false, "always", true, true),
        (false, "never", false, false),
        (true, "auto", false, true),
        (true, "auto", true, false),
        (true, "always", true, true),
        (true, "never", false, false),
    ] {
        let line = format!("{} --color {option} report {}", env!("CARGO_BIN_EXE_client"), file.path().display());
        let words = if on_terminal { ["script", "-qec", &line, "/dev/null"] } else { ["sh", "-c", &line, "sh"] };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).env("TERM", "xterm").env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        for unset in ["CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(unset);
        }
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(out.contains("Overhead"), "{out}");
        let is_colored = out.contains("\u{1b}[2mOverhead");
        assert_eq!((is_colored, out.contains('\u{1b}')), (wanted, wanted), "{on_terminal} {option} {no_color}: {out}");
    }
}
