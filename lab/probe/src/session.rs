//! The lines of a test, and the answers.

use crate::device::{Buffer, Device, Win32Error};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
    thread,
    time::Duration,
};

const DEVICE: &str = "\\\\.\\halprof";

/// Why there is nothing to answer.
enum Trouble {
    Windows(Win32Error),
    Bad(&'static str),
}

impl From<Win32Error> for Trouble {
    fn from(error: Win32Error) -> Self {
        Self::Windows(error)
    }
}

/// Answers lines until there are no more, or one says `exit`.
pub fn run() -> io::Result<ExitCode> {
    let mut devices = BTreeMap::new();
    for line in io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["exit", code] = *words {
            return Ok(code.parse::<u8>().map_or(ExitCode::FAILURE, ExitCode::from));
        }
        let answer = match obey(&words, &mut devices) {
            Ok(answer) => answer,
            Err(Trouble::Windows(Win32Error(code))) => format!("error {code}"),
            Err(Trouble::Bad(why)) => format!("bad {why}"),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
        drop(out);
        if *words == ["hang"] {
            hang();
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn hang() -> ! {
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

fn obey(words: &[&str], devices: &mut BTreeMap<u32, Device>) -> Result<String, Trouble> {
    match *words {
        ["open", ref rest @ ..] => {
            let (writable, rest) = rest.strip_prefix(&["ro"]).map_or((true, rest), |rest| (false, rest));
            let device = Device::open(rest.first().copied().unwrap_or(DEVICE), writable)?;
            let handle = devices.last_key_value().map_or(1, |(last, _)| last + 1);
            devices.insert(handle, device);
            Ok(format!("handle {handle}"))
        }
        ["ioctl", handle, code, input, output] => {
            let device = number(handle).and_then(|handle| devices.get(&handle)).ok_or(Trouble::Bad("handle"))?;
            let code = number(code).ok_or(Trouble::Bad("code"))?;
            let input = buffer(input, bytes).ok_or(Trouble::Bad("input"))?;
            let zeros = |length: &str| Some(vec![0; usize::try_from(number(length)?).ok()?]);
            let output = buffer(output, zeros).ok_or(Trouble::Bad("output"))?;
            let answer = device.control(code, input, output)?;
            Ok(format!("ok {} {}", answer.len(), hexadecimal(&answer)))
        }
        ["close", handle] => {
            number(handle).and_then(|handle| devices.remove(&handle)).ok_or(Trouble::Bad("handle"))?;
            Ok("ok".to_owned())
        }
        ["pid"] => Ok(format!("pid {}", std::process::id())),
        ["hang"] => Ok("hanging".to_owned()),
        _ => Err(Trouble::Bad("command")),
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A buffer; `content` reads what is no `null`.
fn buffer(text: &str, content: impl FnOnce(&str) -> Option<Vec<u8>>) -> Option<Buffer> {
    match text.split_once(':') {
        Some(("null", length)) => number(length).map(Buffer::Null),
        None if text == "null" => Some(Buffer::Null(0)),
        _ => content(text).map(Buffer::Bytes),
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = if text == "-" { "" } else { text };
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    if text.is_empty() { "-".to_owned() } else { text }
}
