//! The loops of [`crate::known_work`], and the processor that executes them.

#![expect(unsafe_code, reason = "calls to Windows, and functions in assembly")]

use std::arch::naked_asm;
use std::io;
use std::ops::Range;

use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentThread, SetThreadGroupAffinity,
};

use super::convert::succeeded;
use crate::known_work::{Function, KnownWork};

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

/// Returns a function of known work.
fn function(function: Function) -> extern "sysv64" fn(u64) {
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
    for KnownWork { function: wanted, iterations } in work {
        function(*wanted)((*iterations).max(1));
    }
    move_to(&before).map(|_| ())
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
