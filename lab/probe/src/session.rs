//! The lines of a test, and the answers.

use crate::{
    device::{Buffer, Device, How, Win32Error},
    service,
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
    thread::{self, JoinHandle},
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

/// What the lines before have left.
#[derive(Default)]
struct Session {
    devices: BTreeMap<u32, Device>,
    aside: BTreeMap<u32, JoinHandle<Result<Vec<u8>, Win32Error>>>,
}

/// Answers lines until there are no more, or one says `exit`.
pub fn run() -> io::Result<ExitCode> {
    let mut session = Session::default();
    for line in io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["exit", code] = *words {
            return Ok(code.parse::<u8>().map_or(ExitCode::FAILURE, ExitCode::from));
        }
        let answer = match session.obey(&words) {
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

impl Session {
    fn obey(&mut self, words: &[&str]) -> Result<String, Trouble> {
        match *words {
            ["open", ref rest @ ..] => {
                let (writable, rest) = rest.strip_prefix(&["ro"]).map_or((true, rest), |rest| (false, rest));
                let (overlapped, rest) = rest.strip_prefix(&["overlapped"]).map_or((false, rest), |rest| (true, rest));
                let device = Device::open(rest.first().copied().unwrap_or(DEVICE), How { writable, overlapped })?;
                Ok(format!("handle {}", add(&mut self.devices, device)))
            }
            ["ioctl", ref request @ ..] => answered(self.request(request)?()),
            ["aside", ref request @ ..] => {
                let thread = thread::spawn(self.request(request)?);
                Ok(format!("aside {}", add(&mut self.aside, thread)))
            }
            ["join", thread] => {
                let thread =
                    number(thread).and_then(|thread| self.aside.remove(&thread)).ok_or(Trouble::Bad("thread"))?;
                answered(thread.join().map_err(|_| Trouble::Bad("thread, which failed"))?)
            }
            ["cancel", handle] => {
                self.device(handle)?.cancel()?;
                Ok("ok".to_owned())
            }
            ["close", handle] => {
                number(handle).and_then(|handle| self.devices.remove(&handle)).ok_or(Trouble::Bad("handle"))?;
                Ok("ok".to_owned())
            }
            ["create", name, image, ref group @ ..] => {
                Ok(service::create(name, image, &group.join(" ")).map(|()| "ok".to_owned())?)
            }
            ["delete", name] => Ok(service::delete(name).map(|()| "ok".to_owned())?),
            ["load", name] => Ok(service::start(name).map(|()| "ok".to_owned())?),
            ["unload", name] => Ok(service::stop(name).map(|()| "ok".to_owned())?),
            ["pid"] => Ok(format!("pid {}", std::process::id())),
            ["hang"] => Ok("hanging".to_owned()),
            _ => Err(Trouble::Bad("command")),
        }
    }

    fn device(&self, handle: &str) -> Result<&Device, Trouble> {
        number(handle).and_then(|handle| self.devices.get(&handle)).ok_or(Trouble::Bad("handle"))
    }

    /// What sends a request and waits for its end, on any thread.
    fn request(&self, words: &[&str]) -> Result<impl FnOnce() -> Result<Vec<u8>, Win32Error> + Send + use<>, Trouble> {
        let [handle, code, input, output] = *words else { return Err(Trouble::Bad("request")) };
        let handle = self.device(handle)?.handle();
        let code = number(code).ok_or(Trouble::Bad("code"))?;
        let input = buffer(input, bytes).ok_or(Trouble::Bad("input"))?;
        let zeros = |length: &str| Some(vec![0; usize::try_from(number(length)?).ok()?]);
        let output = buffer(output, zeros).ok_or(Trouble::Bad("output"))?;
        Ok(move || handle.control(code, input, output))
    }
}

/// Adds a value under the next number.
fn add<T>(values: &mut BTreeMap<u32, T>, value: T) -> u32 {
    let number = values.last_key_value().map_or(1, |(last, _)| last + 1);
    values.insert(number, value);
    number
}

fn answered(answer: Result<Vec<u8>, Win32Error>) -> Result<String, Trouble> {
    let bytes = answer?;
    Ok(format!("ok {} {}", bytes.len(), hexadecimal(&bytes)))
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
        Some(("null", length)) => number(length).map(|_| Buffer::Null),
        None if text == "null" => Some(Buffer::Null),
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
