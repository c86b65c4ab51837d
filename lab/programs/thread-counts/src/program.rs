//! What the program does.

#![expect(unsafe_code, reason = "foreign functions")]

use crate::functions::{Functions, Profile};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, Read},
    os::windows::io::AsRawHandle,
    ptr, thread,
};
use windows_sys::Win32::System::{
    IO::DeviceIoControl,
    Threading::{
        GetActiveProcessorCount, GetCurrentProcessorNumber, GetCurrentThread, GetCurrentThreadId, SetThreadAffinityMask,
    },
};

/// The event that regions execute.
const EVENT: u32 = 0xC0;

/// ALL_PROCESSOR_GROUPS.
const ALL_GROUPS: u16 = 0xFFFF;

/// The counters that are profiled.
const MASK: u64 = 0b11;

fn failed(function: &str) -> impl Fn(u32) -> String + Copy {
    move |error| format!("{function} failed with {error}")
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

/// Does what the arguments say, and returns the result.
pub fn run(arguments: &[&str]) -> Result<Value, String> {
    match arguments {
        ["count", threads, regions, events] => with_functions(|functions| {
            let (regions, events) = (number(regions)?, number(events)?);
            let threads: Vec<_> =
                (0..number(threads)?).map(|_: u32| thread::spawn(move || count(functions, regions, events))).collect();
            let results =
                threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
            results.collect::<Result<Vec<Value>, String>>().map(Value::from)
        }),
        ["steps", device, steps @ ..] => with_functions(|functions| {
            let device = File::options().read(true).write(true).open(device).map_err(|error| error.to_string())?;
            let mut taker = StepTaker { functions, profile: None, device, reply: Vec::new(), kept: String::new() };
            steps.iter().map(|step| taker.take(step)).collect()
        }),
        ["leave", events] => with_functions(|functions| {
            // It ends with the program.
            std::mem::forget(functions.enable(MASK).map_err(failed("EnableThreadProfiling"))?);
            functions.execute(EVENT, number(events)?, 0).map_err(failed("bench_execute_event"))?;
            println!("{}", json!({ "profiles": functions.query().map_err(failed("QueryThreadProfiling"))? }));
            io::stdin().read_to_end(&mut Vec::new()).map_err(|error| error.to_string())?;
            Ok(Value::Null)
        }),
        _ => Err("count, steps or leave?".to_owned()),
    }
}

fn with_functions(body: impl FnOnce(Functions) -> Result<Value, String>) -> Result<Value, String> {
    match Functions::find()? {
        Ok(functions) => body(functions),
        Err(missing) => Ok(json!({ "missing": missing })),
    }
}

/// Counts regions on the current thread. Each has the counts, the events in user mode that the bench knows of, and the
/// switches.
fn count(functions: Functions, regions: u32, events: u64) -> Result<Value, String> {
    let profile = functions.enable(MASK).map_err(failed("EnableThreadProfiling"))?;
    let mut counted = Vec::new();
    for _ in 0..regions {
        // The calls execute as many events before a value is read as after it, so the ledger is read outside of them.
        let read = failed("ReadThreadProfilingData");
        let first = profile.read().map_err(read)?;
        let known = functions.ledger(EVENT);
        functions.execute(EVENT, events, events).map_err(failed("bench_execute_event"))?;
        let last = profile.read().map_err(read)?;
        let executed = functions.ledger(EVENT) - known;
        let counts: Vec<u64> = first
            .counters
            .iter()
            .zip(&last.counters)
            .take(2)
            .map(|([_, first], [_, last])| last.wrapping_sub(*first))
            .collect();
        counted.push(json!({
            "counts": counts,
            "executed": executed,
            "switches": last.context_switches - first.context_switches,
            "cycles": last.cycles - first.cycles,
        }));
    }
    let profiles = functions.query().map_err(failed("QueryThreadProfiling"))?;
    profile.disable().map_err(failed("DisableThreadProfiling"))?;
    let still = functions.query().map_err(failed("QueryThreadProfiling"))?;
    // SAFETY: the function has no preconditions.
    let thread = unsafe { GetCurrentThreadId() };
    Ok(json!({ "thread": thread, "regions": counted, "profiles": [profiles, still] }))
}

/// Takes steps on the current thread.
struct StepTaker {
    functions: Functions,
    /// Disabled before the device is closed, which the driver needs.
    profile: Option<Profile>,
    device: File,
    reply: Vec<u8>,
    /// The bytes that were kept, in hexadecimal.
    kept: String,
}

impl StepTaker {
    /// Takes a step and returns what it prints.
    fn take(&mut self, step: &str) -> Result<Value, String> {
        let parts: Vec<&str> = step.split(':').collect();
        match *parts {
            ["pin", processor] => pin(number(processor)?),
            ["execute", events] => {
                self.functions.execute(EVENT, number(events)?, 0).map_err(failed("bench_execute_event"))?;
                Ok(Value::Null)
            }
            ["ledger"] => Ok(self.functions.ledger(EVENT).into()),
            ["profile", mask] => {
                self.profile = Some(self.functions.enable(number(mask)?).map_err(failed("EnableThreadProfiling"))?);
                Ok(Value::Null)
            }
            ["read"] => {
                let profile = self.profile.as_ref().ok_or("the thread does not profile")?;
                let data = profile.read().map_err(failed("ReadThreadProfilingData"))?;
                let values: Vec<u64> = data.counters.iter().take(4).map(|[_, value]| *value).collect();
                Ok(json!([values, data.context_switches]))
            }
            ["memory"] => {
                let profile = self.profile.as_ref().ok_or("the thread does not profile")?;
                Ok(hex(&profile.memory()).into())
            }
            ["asleep"] => Ok(self.functions.asleep().into()),
            ["ioctl", code, input, output] => {
                let input = bytes(&input.replace('*', &self.kept))?;
                self.reply = send(&self.device, number(code)?, &input, number(output)?)?;
                Ok(hex(&self.reply).into())
            }
            ["hang"] => {
                println!("hanging");
                io::stdin().read_to_end(&mut Vec::new()).map_err(|error| error.to_string())?;
                std::process::exit(0)
            }
            ["keep", offset] => {
                let kept = self.reply.get(number(offset)?..).and_then(<[u8]>::first_chunk::<8>);
                self.kept = hex(kept.ok_or("the reply is too short")?);
                Ok(Value::Null)
            }
            _ => Err(format!("{step} is no step")),
        }
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes().chunks(2).map(|digits| {
        let digits = str::from_utf8(digits).ok().filter(|digits| digits.len() == 2);
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(|| format!("{text} is no input"))
    });
    digits.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Restricts the thread to a processor. Returns where it runs then, and the number of processors.
fn pin(processor: u32) -> Result<Value, String> {
    // SAFETY: the function has no preconditions.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the function rejects an invalid mask.
    if unsafe { SetThreadAffinityMask(thread, 1 << processor) } == 0 {
        return Err(format!("SetThreadAffinityMask failed: {}", io::Error::last_os_error()));
    }
    // SAFETY: the function has no preconditions.
    let current = unsafe { GetCurrentProcessorNumber() };
    // SAFETY: the function has no preconditions.
    let count = unsafe { GetActiveProcessorCount(ALL_GROUPS) };
    Ok(json!([current, count]))
}

/// Sends a request and returns the reply.
fn send(device: &File, code: u32, input: &[u8], output: usize) -> Result<Vec<u8>, String> {
    let (mut reply, mut returned) = (vec![0_u8; output], 0);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    // SAFETY: the handle is open, and the buffers have these sizes.
    let sent = unsafe {
        DeviceIoControl(
            device.as_raw_handle(),
            code,
            input.as_ptr().cast(),
            length(input),
            reply.as_mut_ptr().cast(),
            length(&reply),
            &raw mut returned,
            ptr::null_mut(),
        )
    };
    if sent == 0 {
        return Err(format!("DeviceIoControl failed: {}", io::Error::last_os_error()));
    }
    reply.truncate(usize::try_from(returned).unwrap_or_default());
    Ok(reply)
}
