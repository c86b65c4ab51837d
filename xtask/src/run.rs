//! Runs other programs and reports what runs, how long it takes and why it failed.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::files;

/// Number of lines of the log that are shown if the command failed.
const TAIL: usize = 25;

/// Runs a command and shows its output.
pub fn verbose(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| cannot_start(command))?;
    ensure!(status.success(), "`{}` failed ({status})", line(command));
    Ok(())
}

/// Runs a command with long output: shows `what` and the elapsed time, and writes the output to `log`. If the command
/// fails, shows the end of the output. Stops the command after `limit`.
pub fn logged(what: &str, command: &mut Command, log: &Path, limit: Duration) -> Result<()> {
    let output = create(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);

    let result = timed(what, command, limit);
    if result.is_err() {
        let text = fs::read(log).unwrap_or_default();
        eprintln!("{}", tail(&String::from_utf8_lossy(&text)));
    }
    result.with_context(|| format!("the full output is in {}", log.display()))
}

fn timed(what: &str, command: &mut Command, limit: Duration) -> Result<()> {
    let live = io::stdout().is_terminal();
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("`{}` was stopped: it took longer than {}", line(command), duration(limit));
        }
        if live {
            print!("\r  {what} ... {} s ", started.elapsed().as_secs());
            io::stdout().flush()?;
        }
        thread::sleep(Duration::from_millis(100));
    };
    let start = if live { "\r" } else { "" };
    println!("{start}  {what}: {}    ", duration(started.elapsed()));
    ensure!(status.success(), "`{}` failed ({status})", line(command));
    Ok(())
}

/// Returns the standard output of a command. The command inherits standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| cannot_start(command))?;
    ensure!(output.status.success(), "`{}` failed ({})", line(command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{}` did not print UTF-8", line(command)))
}

/// Runs a command and shows its command line, and its output only if it fails.
pub fn quiet(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        eprintln!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    ensure!(output.status.success(), "`{}` failed ({})", line(command), output.status);
    Ok(())
}

/// Like [`quiet`], with the output in `log`: it ends with the command, even if that leaves programs behind. A pipe ends
/// with the last program that has it.
pub fn quiet_in(log: &Path, command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let output = create(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        eprintln!("{}", String::from_utf8_lossy(&fs::read(log).unwrap_or_default()));
    }
    ensure!(status.success(), "`{}` failed ({status})", line(command));
    Ok(())
}

fn create(log: &Path) -> Result<File> {
    if let Some(folder) = log.parent() {
        files::make_folder(folder)?;
    }
    File::create(log).with_context(|| format!("cannot write {}", log.display()))
}

/// Formats a duration: `1.2 s`, `1 min 1 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns the command line, quoted as in a shell.
pub fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        if word.contains('\'') {
            format!("\"{word}\"")
        } else if word.is_empty() || word.contains([' ', '"']) {
            format!("'{word}'")
        } else {
            word.into_owned()
        }
    };
    let words: Vec<String> = std::iter::once(program).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start {}", command.get_program().display())
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_as_in_a_shell() {
        let mut command = Command::new("/opt/bin/cargo");
        command.args(["build", "--config", "paths=['a']", "a b"]);
        assert_eq!(line(&command), "cargo build --config \"paths=['a']\" 'a b'");
    }

    #[test]
    fn a_duration_of_a_minute_or_more_shows_minutes() {
        assert_eq!(duration(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(duration(Duration::from_secs(59)), "59.0 s");
        assert_eq!(duration(Duration::from_secs(61)), "1 min 1 s");
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_a_command_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (log, fifo) = (folder.path().join("logs").join("log"), folder.path().join("fifo"));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // The program that is left behind ends when the pipe is opened, which is after the command.
        let script = r#"echo first; (read line <"$0"; echo last) & exit 3"#;
        let result = quiet_in(&log, Command::new("sh").arg("-c").arg(script).arg(&fifo));
        assert!(result.unwrap_err().to_string().contains("exit status: 3"));
        assert_eq!(fs::read_to_string(&log).unwrap(), "first\n");
        fs::write(&fifo, "\n").unwrap();
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        let text = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let tail = tail(&text);
        assert_eq!(tail.lines().count(), TAIL);
        assert!(tail.ends_with("99"));
    }
}
