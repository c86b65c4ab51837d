//! thread-counts.exe: what a library does to count inside a program, without a library. It prints JSON.
//!
//! | arguments | what it does |
//! |---|---|
//! | `count THREADS REGIONS EVENTS` | each thread profiles counters 0 and 1, and reads them around each region; a region executes so many events C0 in user mode and as many in kernel mode |
//! | `steps DEVICE STEP...` | takes the steps on one thread; see below |
//! | `leave EVENTS` | profiles its thread and waits for the end of standard input |
//!
//! If a function is missing, it prints the names of the missing functions.
//!
//! | step | what it does, and what it prints |
//! |---|---|
//! | `pin:PROCESSOR` | restricts the thread to a processor; the processor on which it runs then, and the number of processors |
//! | `execute:EVENTS` | executes so many events C0 in user mode |
//! | `ledger` | the number of events C0 in user mode that the bench knows of |
//! | `profile:MASK` | profiles counters |
//! | `read` | the values of the first four counters, and the number of switches |
//! | `memory` | the bytes to which the handle of the profile points, in hexadecimal: THREAD_PERFORMANCE_DATA |
//! | `asleep` | the milliseconds during which the machine slept |
//! | `ioctl:CODE:INPUT:OUTPUT` | sends a request with the bytes INPUT, in hexadecimal, and room for so many bytes; the reply in hexadecimal. `*` stands for the bytes that were kept |
//! | `hang` | prints a line, waits for the end of standard input, and exits without disabling or closing anything |
//! | `keep:OFFSET` | keeps the eight bytes of the last reply at this offset |

#[cfg(windows)]
mod functions;
#[cfg(windows)]
mod program;

#[cfg(windows)]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match program::run(&arguments) {
        Ok(result) => println!("{result}"),
        Err(why) => {
            eprintln!("thread-counts: {why}");
            std::process::exit(1);
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("thread-counts needs Windows' thread profiling");
    std::process::exit(2);
}
