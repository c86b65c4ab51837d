//! The loops of [`crate::known_work`], their callers, and the processor that executes them.

#![expect(unsafe_code, reason = "calls to Windows, and functions in assembly")]

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::ptr::null_mut;

use windows_sys::Win32::System::Diagnostics::Debug::RtlCaptureStackBackTrace;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentThread,
    SetThreadGroupAffinity,
};

use super::convert::succeeded;
use crate::known_work::{CALLS, Function, KnownWork};

/// Bytes of a function's instructions: six of 4, then 3, 2 and 1.
const LENGTH: u64 = 30;

/// Defines a function with the loop. It only adds to a register that callers of the System V ABI do not keep. Each
/// function has a register of its own, so that a linker does not merge them.
macro_rules! known_loop {
    ($name:ident, $add:literal) => {
        #[unsafe(naked)]
        extern "sysv64" fn $name(iterations: u64) {
            naked_asm!("2:", $add, $add, $add, $add, $add, $add, "dec rdi", "jnz 2b", "ret")
        }
    };
}

known_loop!(first, "lea rax, [rax + 1]");
known_loop!(second, "lea rcx, [rcx + 1]");

/// A function that is called with a number of iterations.
type Callee = extern "sysv64" fn(u64);

/// Returns a function of known work.
fn function(function: Function) -> Callee {
    match function {
        Function::First => first,
        Function::Second => second,
    }
}

/// Returns the addresses of the instructions of a function.
pub fn addresses(wanted: Function) -> Range<u64> {
    let begin = function(wanted) as usize as u64;
    begin..begin + LENGTH
}

/// Executes each of `work`, in this order, on a processor.
pub fn execute(processor: u32, work: &[KnownWork]) -> io::Result<()> {
    let before = move_to(&affinity(processor)?)?;
    work.iter().copied().for_each(execute_here);
    move_to(&before).map(|_| ())
}

/// Returns the number of active processors.
pub fn processors() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }
}

/// Executes work on the processor of this thread.
pub fn execute_here(KnownWork { function: wanted, iterations }: KnownWork) {
    function(wanted)(iterations.max(1));
}

/// Executes the same through nested calls. Returns their return addresses, from the innermost to the outermost.
pub fn execute_in_calls(processor: u32, work: &[KnownWork]) -> io::Result<[u64; CALLS]> {
    let before = move_to(&affinity(processor)?)?;
    call(capture, 0);
    for KnownWork { function: wanted, iterations } in work {
        call(function(*wanted), (*iterations).max(1));
    }
    move_to(&before)?;
    let (count, addresses) = CAPTURED.get();
    let too_few = || io::Error::other(format!("RtlCaptureStackBackTrace found {count} of {CALLS} calls"));
    (usize::from(count) == CALLS).then_some(addresses).ok_or_else(too_few)
}

// The nested calls. All callees are called by the same instructions, so those that `capture` finds are also those of
// the loops. For this:
// - `call` hides the callee from the optimizer, which otherwise could make a copy of the functions for each callee.
// - `inline(never)` keeps each function.
// - A function uses its argument after its call, so that the call does not become a jump, which has no return address.

/// Calls a function through [`CALLS`] nested calls.
fn call(callee: Callee, iterations: u64) {
    outermost(black_box(callee), iterations);
}

#[inline(never)]
fn outermost(callee: Callee, iterations: u64) {
    middle(callee, iterations);
    black_box(iterations);
}

#[inline(never)]
fn middle(callee: Callee, iterations: u64) {
    innermost(callee, iterations);
    black_box(iterations);
}

#[inline(never)]
fn innermost(callee: Callee, iterations: u64) {
    callee(iterations);
    black_box(iterations);
}

thread_local! {
    /// Number of return addresses that `capture` found, and the addresses.
    static CAPTURED: Cell<(u16, [u64; CALLS])> = const { Cell::new((0, [0; CALLS])) };
}

/// Captures the return addresses of the nested calls, from which this is called like a loop.
#[expect(clippy::cast_possible_truncation, reason = "a few calls")]
extern "sysv64" fn capture(_: u64) {
    let mut addresses = [null_mut::<c_void>(); CALLS];
    // This function's own call is left out.
    let (skipped, wanted) = (1, CALLS as u32);
    // SAFETY: the array has room for so many addresses, and the hash is optional.
    let count = unsafe { RtlCaptureStackBackTrace(skipped, wanted, addresses.as_mut_ptr(), null_mut()) };
    CAPTURED.set((count, addresses.map(|address| address.addr() as u64)));
}

/// Moves this thread to a processor.
pub fn stay_on(processor: u32) -> io::Result<()> {
    move_to(&affinity(processor)?).map(drop)
}

/// Moves this thread to the processors of an affinity. Returns the previous one.
fn move_to(affinity: &GROUP_AFFINITY) -> io::Result<GROUP_AFFINITY> {
    let mut before = GROUP_AFFINITY::default();
    // SAFETY: takes nothing, and the pseudo-handle needs no closing.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the pseudo-handle is always valid, and both pointers are to structures of the right type.
    succeeded(unsafe { SetThreadGroupAffinity(thread, affinity, &raw mut before) })?;
    Ok(before)
}

/// Returns the affinity of one processor. Windows numbers the processors group by group.
fn affinity(processor: u32) -> io::Result<GROUP_AFFINITY> {
    let mut number = processor;
    // SAFETY: has no preconditions.
    for group in 0..unsafe { GetActiveProcessorGroupCount() } {
        // SAFETY: has no preconditions.
        let count = unsafe { GetActiveProcessorCount(group) };
        if number < count {
            let mask = 1_usize.checked_shl(number).unwrap_or(0);
            return Ok(GROUP_AFFINITY { Mask: mask, Group: group, Reserved: [0; 3] });
        }
        number -= count;
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("CPU {processor} is not active")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_captured_return_addresses_are_in_the_nested_functions() {
        const MAX_LENGTH: u64 = 512;
        let work = [KnownWork { function: Function::First, iterations: 1_000 }; 2];
        let addresses = execute_in_calls(0, &work).unwrap();
        let functions = [innermost, middle, outermost].map(|function| function as usize as u64);
        for (address, function) in addresses.into_iter().zip(functions) {
            assert!((function..function + MAX_LENGTH).contains(&address), "{addresses:x?} {functions:x?}");
        }
        assert_eq!(execute_in_calls(0, &[]).unwrap(), addresses);
    }
}
