//! What the program does.

#![expect(unsafe_code, reason = "foreign functions")]

use crate::functions::Functions;
use serde_json::{Value, json};
use std::{fs::File, io::Read, os::windows::io::AsRawHandle, ptr, thread};
use windows_sys::Win32::System::{
    IO::DeviceIoControl,
    Threading::{GetCurrentProcessorNumber, GetCurrentThread, GetCurrentThreadId, SetThreadAffinityMask},
};

/// The event that regions execute.
const EVENT: u32 = 0xC0;

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
        ["pin", processors, device, code, input] => {
            let device = File::options().read(true).write(true).open(device).map_err(|error| error.to_string())?;
            let (code, input) = (number(code)?, number(input)?);
            (0..number(processors)?).map(|processor| pin(processor, &device, code, input)).collect()
        }
        ["leave", events] => with_functions(|functions| {
            let _profile = functions.enable(MASK).map_err(failed("EnableThreadProfiling"))?;
            functions.execute(EVENT, number(events)?, 0).map_err(failed("bench_execute_event"))?;
            println!("{}", json!({ "profiles": functions.query().map_err(failed("QueryThreadProfiling"))? }));
            std::io::stdin().read_to_end(&mut Vec::new()).map_err(|error| error.to_string())?;
            Ok(Value::Null)
        }),
        _ => Err("count, pin or leave?".to_owned()),
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

/// Sends a request from a processor. Returns the processor before and after it, and the first word of the reply.
fn pin(processor: u32, device: &File, code: u32, input: u32) -> Result<Value, String> {
    // SAFETY: the function has no preconditions.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the function rejects an invalid mask.
    if unsafe { SetThreadAffinityMask(thread, 1 << processor) } == 0 {
        return Err(format!("SetThreadAffinityMask failed: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the function has no preconditions.
    let before = unsafe { GetCurrentProcessorNumber() };
    let (input, mut output, mut returned) = ([input, 0], [0_u32; 2], 0);
    // SAFETY: the handle is open, and the buffers have these sizes.
    let sent = unsafe {
        DeviceIoControl(
            device.as_raw_handle(),
            code,
            input.as_ptr().cast(),
            8,
            output.as_mut_ptr().cast(),
            8,
            &raw mut returned,
            ptr::null_mut(),
        )
    };
    if sent == 0 {
        return Err(format!("DeviceIoControl failed: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the function has no preconditions.
    let after = unsafe { GetCurrentProcessorNumber() };
    let [reply, _] = output;
    Ok(json!([before, reply, after]))
}
