//! The stack of a DPC: the frames from the code that the clock interrupt found up to the DPC routine. A walk by the
//! unwind data finds a machine frame on it, as in Windows.

#![expect(unsafe_code, reason = "builds the stack of an interrupt")]

use bench_protocol::InterruptSite;
use std::{arch::global_asm, ffi::c_void};

/// Selectors and flags of interrupted code, as in `TrapFrame`.
const USER: (u64, u64) = (0x33, 0x2B);
const KERNEL: (u64, u64) = (0x10, 0x18);
const INTERRUPTS_ENABLED: u64 = 0x202;

// A stack pointer that must not be read: what is interrupted does not exist.
const NO_STACK: u64 = 0xFFFF_F800_0010_0000;

/// What the processor pushes for an interrupt, from the lowest address on (SDM Vol. 3A, "64-Bit Mode Stack Frame").
#[repr(C)]
struct MachineFrame {
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

// RCX: the machine frame; RDX: the function; R8: its argument. The first function pushes the frame and enters the
// second, which has the unwind data of an interrupt's entry and never returns to the first. The idle loop has no
// caller.
global_asm!(
    ".section .text",
    ".balign 16",
    ".globl lab_interrupt",
    ".seh_proc lab_interrupt",
    "lab_interrupt:",
    "push rbp",
    ".seh_pushreg rbp",
    "mov rbp, rsp",
    ".seh_setframe rbp, 0",
    ".seh_endprologue",
    "push qword ptr [rcx + 32]",
    "push qword ptr [rcx + 24]",
    "push qword ptr [rcx + 16]",
    "push qword ptr [rcx + 8]",
    "push qword ptr [rcx]",
    "jmp lab_interrupt_entry",
    ".seh_endproc",
    ".balign 16",
    ".globl lab_idle",
    ".seh_proc lab_idle",
    "lab_idle:",
    "push rbp",
    ".seh_pushreg rbp",
    "mov rbp, rsp",
    ".seh_setframe rbp, 0",
    ".seh_endprologue",
    "push 0",
    "jmp lab_idle_loop",
    ".seh_endproc",
    ".balign 16",
    ".seh_proc lab_idle_loop",
    "lab_idle_loop:",
    "sub rsp, 40",
    ".seh_stackalloc 40",
    ".seh_endprologue",
    "mov rcx, r8",
    "call rdx",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    ".seh_endproc",
    ".balign 16",
    ".seh_proc lab_interrupt_entry",
    "lab_interrupt_entry:",
    ".seh_pushframe",
    "sub rsp, 40",
    ".seh_stackalloc 40",
    ".seh_endprologue",
    "mov rcx, r8",
    "call rdx",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    ".seh_endproc",
);

unsafe extern "system" {
    fn lab_interrupt(
        frame: *const MachineFrame,
        function: unsafe extern "system" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn lab_idle(unused: usize, function: unsafe extern "system" fn(*mut c_void), argument: *mut c_void);
}

/// The work to do, until it is done.
struct Work<'a>(Option<&'a mut dyn FnMut()>);

unsafe extern "system" fn call(work: *mut c_void) {
    // SAFETY: `run_at` passed it.
    if let Some(work) = unsafe { (*work.cast::<Work<'_>>()).0.take() } {
        work();
    }
}

/// Runs `work` as the dispatcher does that an interrupt of `site` entered. The idle loop calls the dispatcher itself,
/// so that a site of the idle process has no machine frame.
pub fn run_at(site: InterruptSite, mut work: impl FnMut()) {
    let (cs, ss) = if site.user { USER } else { KERNEL };
    let mut work = Work(Some(&mut work));
    let argument = (&raw mut work).cast();
    if site.process == 0 {
        // SAFETY: as below.
        return unsafe { lab_idle(0, call, argument) };
    }
    let frame = MachineFrame { rip: site.ip, cs, flags: INTERRUPTS_ENABLED, rsp: NO_STACK, ss };
    // SAFETY: both live until the function returns, which calls `call` once. `work` does not unwind: it catches panics.
    unsafe { lab_interrupt(&raw const frame, call, argument) };
}
