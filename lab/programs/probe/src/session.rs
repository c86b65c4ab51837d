//! Reads the commands of a test and answers them.

use crate::{
    device::{Buffer, Device, OpenOptions, Win32Error},
    service,
    storm::Storm,
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write as _},
    thread::{self, JoinHandle},
};

const DEVICE: &str = "\\\\.\\halprof";

/// The error of a command.
enum Error {
    Windows(Win32Error),
    Bad(&'static str),
}

impl From<Win32Error> for Error {
    fn from(error: Win32Error) -> Self {
        Self::Windows(error)
    }
}

/// The devices that earlier commands opened, and the threads of the requests that they spawned.
#[derive(Default)]
struct Session {
    devices: BTreeMap<u32, Device>,
    requests: BTreeMap<u32, JoinHandle<Result<Vec<u8>, Win32Error>>>,
    storm: Option<Storm>,
}

/// Executes commands and prints their results until the input ends.
pub fn run() -> io::Result<()> {
    let mut session = Session::default();
    for line in io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match session.execute(&words) {
            Ok(answer) => answer,
            Err(Error::Windows(Win32Error(code))) => format!("error {code}"),
            Err(Error::Bad(why)) => format!("bad {why}"),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

impl Session {
    fn execute(&mut self, words: &[&str]) -> Result<String, Error> {
        match *words {
            ["open", ref rest @ ..] => {
                let (writable, rest) = rest.strip_prefix(&["ro"]).map_or((true, rest), |rest| (false, rest));
                let (overlapped, rest) = rest.strip_prefix(&["overlapped"]).map_or((false, rest), |rest| (true, rest));
                let device =
                    Device::open(rest.first().copied().unwrap_or(DEVICE), OpenOptions { writable, overlapped })?;
                Ok(format!("handle {}", add(&mut self.devices, device)))
            }
            ["ioctl", ref request @ ..] => answered(self.request(request)?()),
            ["spawn", ref request @ ..] => {
                let thread = thread::spawn(self.request(request)?);
                Ok(format!("spawned {}", add(&mut self.requests, thread)))
            }
            ["join", thread] => {
                let thread =
                    number(thread).and_then(|thread| self.requests.remove(&thread)).ok_or(Error::Bad("thread"))?;
                answered(thread.join().map_err(|_| Error::Bad("thread, which failed"))?)
            }
            ["cancel", handle] => {
                self.device(handle)?.cancel()?;
                Ok("ok".to_owned())
            }
            ["close", handle] => {
                number(handle).and_then(|handle| self.devices.remove(&handle)).ok_or(Error::Bad("handle"))?;
                Ok("ok".to_owned())
            }
            ["create", name, image, ref group @ ..] => {
                Ok(service::create(name, image, &group.join(" ")).map(|()| "ok".to_owned())?)
            }
            ["delete", name] => Ok(service::delete(name).map(|()| "ok".to_owned())?),
            ["load", name] => Ok(service::start(name).map(|()| "ok".to_owned())?),
            ["unload", name] => Ok(service::stop(name).map(|()| "ok".to_owned())?),
            ["storm", plan] => {
                let plan = serde_json::from_str(plan).map_err(|_| Error::Bad("plan"))?;
                self.storm = Some(Storm::begin(DEVICE, plan)?);
                Ok("ok".to_owned())
            }
            ["storming"] => {
                let storm = self.storm.as_ref().ok_or(Error::Bad("storm: none has begun"))?;
                serde_json::to_string(&storm.report()).map_err(|_| Error::Bad("report"))
            }
            ["pid"] => Ok(format!("pid {}", std::process::id())),
            _ => Err(Error::Bad("command")),
        }
    }

    fn device(&self, handle: &str) -> Result<&Device, Error> {
        number(handle).and_then(|handle| self.devices.get(&handle)).ok_or(Error::Bad("handle"))
    }

    /// Returns a function that sends a request and waits for its completion. It can run on any thread.
    fn request(&self, words: &[&str]) -> Result<impl FnOnce() -> Result<Vec<u8>, Win32Error> + Send + use<>, Error> {
        let [handle, code, input, output] = *words else { return Err(Error::Bad("request")) };
        let handle = self.device(handle)?.handle();
        let code = number(code).ok_or(Error::Bad("code"))?;
        let input = buffer(input, bytes).ok_or(Error::Bad("input"))?;
        let zeros = |length: &str| Some(vec![0; usize::try_from(number(length)?).ok()?]);
        let output = buffer(output, zeros).ok_or(Error::Bad("output"))?;
        Ok(move || handle.control(code, input, output))
    }
}

/// Adds a value under the next number and returns the number.
fn add<T>(values: &mut BTreeMap<u32, T>, value: T) -> u32 {
    let number = values.last_key_value().map_or(1, |(last, _)| last + 1);
    values.insert(number, value);
    number
}

fn answered(answer: Result<Vec<u8>, Win32Error>) -> Result<String, Error> {
    let bytes = answer?;
    Ok(format!("ok {} {}", bytes.len(), hexadecimal(&bytes)))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses a buffer. `content` parses everything except `null`.
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
