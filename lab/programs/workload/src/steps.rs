//! Execution of one instruction at a time, by the trap flag.

#![expect(unsafe_code, reason = "an exception handler, and the trap flag")]

use crate::{
    console::Console,
    known::known,
    windows::{AddVectoredExceptionHandler, Context, ExceptionPointers, Stack},
};
use core::{
    arch::asm,
    fmt::{self, Write},
    iter,
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed},
};

/// EXCEPTION_SINGLE_STEP.
const SINGLE_STEP: u32 = 0x8000_0004;
/// EXCEPTION_CONTINUE_EXECUTION.
const CONTINUE: i32 = -1;
/// EXCEPTION_CONTINUE_SEARCH.
const SEARCH: i32 = 0;

/// The trap flag in EFLAGS.
const TRAP: u32 = 0x100;

/// What to print at an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// The callers of a known function at its first instruction.
    Callers = 1,
    /// Registers, stack and frames at each instruction.
    Everything = 2,
}

/// The [`Print`], or 0 if no instruction is to be stepped any more.
static PRINT: AtomicU8 = AtomicU8::new(0);
/// Whether nothing has been printed yet.
static FIRST: AtomicBool = AtomicBool::new(true);
/// Whether the output failed.
static FAILED: AtomicBool = AtomicBool::new(false);
/// The end of the stack that is printed: where the caller of this program's entry point has its frame.
static END: AtomicU64 = AtomicU64::new(0);

/// Runs `code` and prints what `print` says.
pub fn step(print: Print, code: impl FnOnce() -> u64) -> Result<u64, fmt::Error> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if !INSTALLED.swap(true, Relaxed) && AddVectoredExceptionHandler(1, handler).is_null() {
        return Err(fmt::Error);
    }
    FIRST.store(true, Relaxed);
    PRINT.store(print as u8, Relaxed);
    // SAFETY: the handler above continues after each exception, from the second instruction after these on.
    unsafe { asm!("pushfq", "or qword ptr [rsp], {trap}", "popfq", trap = const TRAP) };
    let result = code();
    PRINT.store(0, Relaxed);
    if FAILED.load(Relaxed) { Err(fmt::Error) } else { Ok(result) }
}

/// The vectored exception handler.
unsafe extern "system" fn handler(pointers: *const ExceptionPointers) -> i32 {
    // SAFETY: Windows passes valid pointers.
    let pointers = unsafe { &*pointers };
    // SAFETY: as above.
    if unsafe { *pointers.code } != SINGLE_STEP {
        return SEARCH;
    }
    // SAFETY: as above. Nothing else refers to the context of the exception.
    let context = unsafe { &mut *pointers.context };
    let printed = match PRINT.load(Relaxed) {
        0 => {
            context.eflags &= !TRAP;
            return CONTINUE;
        }
        print if print == Print::Callers as u8 => print_callers(context),
        _ => print_step(context),
    };
    if printed.is_err() {
        FAILED.store(true, Relaxed);
    }
    context.eflags |= TRAP;
    CONTINUE
}

/// Prints the callers of a known function, if this is its first instruction.
fn print_callers(context: &Context) -> fmt::Result {
    let Some(function) = known().find(|function| function.address as u64 == context.ip) else { return Ok(()) };
    let comma = if FIRST.swap(false, Relaxed) { "" } else { "," };
    write!(Console, "{comma}{{\"function\":\"{}\",\"callers\":[", function.name)?;
    print_frames(context)?;
    Console.write_str("]}")
}

/// Prints the registers, the stack from the stack pointer on, and the frames.
fn print_step(context: &Context) -> fmt::Result {
    let stack = Stack::current();
    if FIRST.swap(false, Relaxed) {
        let mut copy = MaybeUninit::uninit();
        let caller = context.copy(&mut copy);
        let image = caller.image();
        while caller.unwind(&stack) && caller.image() == image {}
        END.store(caller.stack_pointer(), Relaxed);
    }
    write!(Console, "{{\"ip\":{},\"registers\":[", context.ip)?;
    print_list(context.registers)?;
    Console.write_str("],\"stack\":[")?;
    let (start, end) = (context.stack_pointer(), END.load(Relaxed));
    print_list((start..end).step_by(8).map_while(|address| stack.word(address)))?;
    Console.write_str("],\"callers\":[")?;
    print_frames(context)?;
    Console.write_str("]}\n")
}

fn print_list(numbers: impl IntoIterator<Item = u64>) -> fmt::Result {
    numbers.into_iter().enumerate().try_for_each(|(place, number)| {
        let comma = if place == 0 { "" } else { "," };
        write!(Console, "{comma}{number}")
    })
}

/// Prints the return addresses.
fn print_frames(context: &Context) -> fmt::Result {
    let mut copy = MaybeUninit::uninit();
    let caller = context.copy(&mut copy);
    let stack = Stack::current();
    print_list(iter::from_fn(|| caller.unwind(&stack).then_some(caller.ip)))
}
