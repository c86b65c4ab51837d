//! Scripts for Windows PowerShell: how a program runs in the guest, and how its result comes back.
//!
//! Both transports send a script as one word in base64 (`-EncodedCommand`), so that no shell between them changes it.
//! The script starts the program itself, without a shell, and prints one line with the exit code and both outputs.

use std::time::Duration;

use anyhow::{Context, Result};
use base64ct::{Base64, Encoding};
use serde::Deserialize;

use super::guest::{Call, Failure, Ran, windows_argument};

/// Begins the line with the result.
const MARK: &str = "halprof-vm ";

/// Longest command line of cmd, the shell of Windows' SSH server.
const MAX_LINE: usize = 8191;

/// Returns the arguments of powershell.exe that run a script.
pub fn arguments(script: &str) -> Result<[String; 4]> {
    let bytes: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoded = Base64::encode_string(&bytes);
    anyhow::ensure!(encoded.len() + 200 < MAX_LINE, "a script for the guest is too long: {script}");
    Ok(["-NoProfile".into(), "-NonInteractive".into(), "-EncodedCommand".into(), encoded])
}

/// Returns a text as a literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a pipeline that writes its strings as they are. PowerShell itself may break long lines.
pub fn printed(pipeline: &str) -> String {
    format!("{pipeline}|ForEach-Object{{[Console]::Out.WriteLine($_)}}")
}

/// Returns the script that runs a program, ends it after `limit`, and returns the line with its result.
pub fn script(call: &Call, limit: Duration) -> String {
    let words: Vec<String> = call.arguments.iter().map(|word| windows_argument(word)).collect();
    let variable =
        |(name, value): &(String, String)| format!("$i.EnvironmentVariables[{}]={}", literal(name), literal(value));
    let variables = call.environment.iter().map(variable).collect::<Vec<_>>().join(";");
    format!(
        "$ErrorActionPreference='Stop';$ProgressPreference='SilentlyContinue'\n\
         function answer($r){{Write-Output ({mark}+($r|ConvertTo-Json -Compress))}}\n\
         $u=New-Object Text.UTF8Encoding $false\n\
         function text($t){{if($t.Wait(10000)){{[Convert]::ToBase64String($u.GetBytes($t.Result))}}else{{''}}}}\n\
         $i=New-Object Diagnostics.ProcessStartInfo\n\
         $i.FileName={program};$i.Arguments={line};$i.WorkingDirectory={folder}\n\
         $i.UseShellExecute=$false;$i.RedirectStandardInput=$true\n\
         $i.RedirectStandardOutput=$true;$i.RedirectStandardError=$true\n\
         $i.StandardOutputEncoding=$u;$i.StandardErrorEncoding=$u\n\
         {variables}\n\
         try{{$p=[Diagnostics.Process]::Start($i)}}catch{{answer @{{error=$_.Exception.Message}};return}}\n\
         $p.StandardInput.Close()\n\
         $o=$p.StandardOutput.ReadToEndAsync();$e=$p.StandardError.ReadToEndAsync()\n\
         $late=-not $p.WaitForExit({limit})\n\
         if($late){{taskkill.exe /T /F /PID $p.Id|Out-Null;[void]$p.WaitForExit(10000)}}\n\
         answer @{{code=$p.ExitCode;late=$late;out=(text $o);err=(text $e)}}\n",
        mark = literal(MARK),
        program = literal(&call.program),
        line = literal(&words.join(" ")),
        folder = literal(call.folder),
        limit = limit.as_millis(),
    )
}

/// The line with the result.
#[derive(Deserialize)]
struct Answer {
    /// The exit code, if the program started.
    code: Option<i32>,
    /// Whether it was ended after its limit.
    #[serde(default)]
    late: bool,
    /// Standard output in base64.
    #[serde(default)]
    out: String,
    /// Standard error in base64.
    #[serde(default)]
    err: String,
    /// Why the program did not start.
    error: Option<String>,
}

/// Returns the result in the output of the script; `None` if the script did not come to its end.
pub fn answer(output: &str) -> Option<Result<Ran, Failure>> {
    let line = output.lines().rev().find_map(|line| line.trim().strip_prefix(MARK))?;
    Some(parse(line).map_err(Failure::Host).and_then(|answer| match answer {
        Answer { late: true, .. } => Err(Failure::TimedOut),
        Answer { code: Some(code), out, err, .. } => {
            Ok(Ran { code, out: decoded(&out).map_err(Failure::Host)?, err: decoded(&err).map_err(Failure::Host)? })
        }
        Answer { error, .. } => Ok(Ran { code: -1, out: String::new(), err: error.unwrap_or_default() }),
    }))
}

fn parse(line: &str) -> Result<Answer> {
    serde_json::from_str(line).with_context(|| format!("the guest did not answer with a result: {line}"))
}

fn decoded(text: &str) -> Result<String> {
    let bytes = Base64::decode_vec(text).map_err(|error| anyhow::anyhow!("output of the guest: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a command line as CommandLineToArgvW does, except the name of the program.
    fn split(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' => {
                    let mut count = 1;
                    while characters.next_if_eq(&'\\').is_some() {
                        count += 1;
                    }
                    let escapes = characters.peek() == Some(&'"');
                    word.extend(std::iter::repeat_n('\\', if escapes { count / 2 } else { count }));
                    if escapes && count % 2 == 1 {
                        word.push(characters.next().unwrap());
                    }
                    begun = true;
                }
                '"' => (quoted, begun) = (!quoted, true),
                ' ' | '\t' if !quoted => {
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    begun = false;
                }
                other => {
                    word.push(other);
                    begun = true;
                }
            }
        }
        if begun {
            words.push(word);
        }
        words
    }

    /// Returns all words of up to `length` of the characters that quoting has to do with.
    fn words(length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..length {
            last = last.iter().flat_map(|word| ["a", " ", "\"", "\\"].map(|end| format!("{word}{end}"))).collect();
            all.extend(last.clone());
        }
        all
    }

    #[test]
    fn every_argument_arrives_as_it_was_given() {
        let all = words(6);
        assert_eq!(all.len(), 5461);
        for word in &all {
            let line = ["first", word, "last"].map(windows_argument).join(" ");
            assert_eq!(split(&line), ["first", word, "last"], "{line}");
        }
    }

    #[test]
    fn a_quote_does_not_end_a_literal() {
        assert_eq!(literal("it's"), "'it''s'");
        let call = Call::new("a'b.exe", &["c d", "e'f"]);
        let text = script(&call, Duration::from_secs(2));
        assert!(text.contains("$i.FileName='a''b.exe';$i.Arguments='\"c d\" e''f';"), "{text}");
        assert!(text.contains("WaitForExit(2000)"), "{text}");
    }

    #[test]
    fn answers_have_their_meaning() {
        let line = |text: &str| format!("a banner\r\n{MARK}{text}\r\n");
        let ran = |text: &str| answer(&line(text)).unwrap();
        let done = ran(r#"{"code":-1073741819,"late":false,"out":"YQ0KYg==","err":""}"#).unwrap();
        assert_eq!(done, Ran { code: -1_073_741_819, out: "a\nb".into(), err: String::new() });
        assert!(matches!(ran(r#"{"code":1,"late":true,"out":"","err":""}"#), Err(Failure::TimedOut)));
        let missing = ran(r#"{"error":"The system cannot find the file specified"}"#).unwrap();
        assert_eq!((missing.code, missing.err.as_str()), (-1, "The system cannot find the file specified"));
        assert!(matches!(ran("{"), Err(Failure::Host(_))));
        assert!(answer("Connection reset by peer").is_none());
    }
}
