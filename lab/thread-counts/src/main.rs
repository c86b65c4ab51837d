//! thread-counts.exe: what a library does to count inside a program, without a library. It prints JSON.
//!
//! | arguments | what it does |
//! |---|---|
//! | `count THREADS REGIONS EVENTS` | each thread profiles counters 0 and 1, and reads them around each region; a region executes so many events C0 in user mode and as many in kernel mode |
//! | `pin PROCESSORS DEVICE CODE INPUT` | pins itself to each processor in turn, and sends a request there |
//! | `leave EVENTS` | profiles its thread and waits for the end of standard input |
//!
//! If a function is missing, it prints the names of the missing functions.

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
