//! The program around the functions. It has no C runtime and imports only kernel32.dll.

#![expect(unsafe_code, reason = "foreign functions, and an entry point without a C runtime")]

use crate::{
    Function,
    callers::{backward, descend, forward, run},
    console::Console,
    functions::opaque,
    known::{function, known},
    prologs,
    steps::{Print, step},
    windows::{
        ExitProcess, GetCurrentProcessId, GetCurrentThreadId, GetStdHandle, GetTickCount64, INPUT, OUTPUT, ReadFile,
        SetStdHandle, arguments, create,
    },
};
use core::{
    ffi::CStr,
    fmt::{self, Write},
    panic::PanicInfo,
    ptr,
};
use workload_data::QUEUE;

/// The file with the description while the program runs by itself. The test bench makes its folder.
const DESCRIPTION: &CStr = c"C:\\lab\\workload.json";

const HELP: &str = "\
workload: executes functions with known shares of the samples

Usage: workload [SECONDS]    executes its functions so long, 2 seconds by default
       workload describe     prints its functions as JSON, and waits until its input is closed
       workload steps        executes its functions one instruction at a time, and prints each as JSON

In the lab, the processors of the model execute this program while it runs: 45 % of the samples are in
alpha, 30 % in beta, 15 % in gamma, and 10 % in the kernel. The events of a second have the rates of
the model, whatever the program does.
";

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    ExitProcess(101)
}

/// Returns the other functions that the compiler made.
fn others() -> impl Iterator<Item = Function> {
    let functions = [
        ("run", run as *const ()),
        ("forward", forward as *const ()),
        ("backward", backward as *const ()),
        ("descend", descend as *const ()),
        ("opaque", opaque as *const ()),
        ("exercise", prologs::exercise as *const ()),
    ];
    functions.into_iter().map(|(name, address)| function(name, address))
}

fn print_functions(functions: impl Iterator<Item = Function>) -> fmt::Result {
    for (place, Function { name, address, size }) in functions.enumerate() {
        let comma = if place == 0 { "" } else { "," };
        write!(Console, "{comma}{{\"name\":\"{name}\",\"address\":{address},\"size\":{size}}}")?;
    }
    Ok(())
}

/// Executes the known functions on every path, and prints their callers.
fn print_description() -> Result<u64, fmt::Error> {
    let (process, thread, queue) = (GetCurrentProcessId(), GetCurrentThreadId(), (&raw const QUEUE).addr());
    write!(Console, "{{\"process\":{process},\"thread\":{thread},\"queue\":{queue},\"functions\":[")?;
    print_functions(known())?;
    Console.write_str("],\"stacks\":[")?;
    let result = step(Print::Callers, || run(1))?;
    Console.write_str("]}\n")?;
    Ok(result)
}

/// Executes every function. Returns their result.
fn print_steps() -> Result<u64, fmt::Error> {
    Console.write_str("[")?;
    print_functions(known().chain(others()).chain(prologs::functions()))?;
    Console.write_str("]\n")?;
    step(Print::Everything, || run(1) ^ prologs::exercise(0x53))
}

/// Returns at the end of standard input.
fn wait_for_end_of_input() {
    let (mut byte, mut read) = (0, 1);
    while read > 0 {
        read = 0;
        // SAFETY: `byte` is one writable byte, and `read` is writable. The function rejects an invalid handle.
        unsafe { ReadFile(GetStdHandle(INPUT), &raw mut byte, 1, &raw mut read, ptr::null_mut()) };
    }
}

/// Executes the known functions for some seconds. Returns their result.
fn execute(seconds: u64) -> Result<u64, fmt::Error> {
    let end = GetTickCount64().saturating_add(seconds.saturating_mul(1_000));
    let mut result = 1;
    while GetTickCount64() < end {
        result = run(result) | 1;
    }
    writeln!(Console, "workload: executed alpha, beta and gamma for {seconds} s")?;
    Ok(result)
}

/// What the user wants.
enum Wanted {
    Help { asked: bool },
    Seconds(u64),
    Description,
    Steps,
}

impl Wanted {
    fn of(arguments: &[u8]) -> Self {
        match arguments {
            b"" => Self::Seconds(2),
            b"describe" => Self::Description,
            b"steps" => Self::Steps,
            b"--help" | b"-h" | b"help" => Self::Help { asked: true },
            other => {
                let seconds = str::from_utf8(other).ok().and_then(|seconds| seconds.parse().ok());
                seconds.map_or(Self::Help { asked: false }, Self::Seconds)
            }
        }
    }
}

/// The entry point of the program. The functions that print the known ones have one call each, so that the compiler
/// makes them part of this one: the stacks of the known functions end here.
#[unsafe(no_mangle)]
extern "system" fn start() -> ! {
    let wanted = Wanted::of(arguments());
    let printed = match wanted {
        Wanted::Help { asked } => Console.write_str(HELP).map(|()| asked.into()),
        Wanted::Steps => print_steps(),
        Wanted::Description | Wanted::Seconds(_) => {
            let output = GetStdHandle(OUTPUT);
            if matches!(wanted, Wanted::Seconds(_)) {
                SetStdHandle(OUTPUT, create(DESCRIPTION));
            }
            let printed = print_description();
            SetStdHandle(OUTPUT, output);
            // Outside the bench the description could not be printed.
            if let Wanted::Seconds(seconds) = wanted {
                execute(seconds)
            } else {
                printed.inspect(|_| wait_for_end_of_input())
            }
        }
    };
    // Uses the result of the functions, so that the compiler keeps them.
    ExitProcess(u32::from(!printed.is_ok_and(|result| result != 0)))
}
