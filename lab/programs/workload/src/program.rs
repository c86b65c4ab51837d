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
        ExitProcess, GetCurrentProcessId, GetCurrentThreadId, GetStdHandle, INPUT, ReadFile, command_line_ends_with,
    },
};
use core::{
    fmt::{self, Write},
    panic::PanicInfo,
    ptr,
};

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

/// Executes the known functions on every path. Returns their result.
fn print_description() -> Result<u64, fmt::Error> {
    let (process, thread) = (GetCurrentProcessId(), GetCurrentThreadId());
    write!(Console, "{{\"process\":{process},\"thread\":{thread},\"functions\":[")?;
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

/// The entry point of the program.
#[unsafe(no_mangle)]
extern "system" fn start() -> ! {
    let steps = command_line_ends_with(b" steps");
    let printed = if steps { print_steps() } else { print_description() };
    if !steps {
        wait_for_end_of_input();
    }
    // Uses the result of the functions, so that the compiler keeps them.
    ExitProcess(u32::from(!printed.is_ok_and(|result| result != 0)))
}
