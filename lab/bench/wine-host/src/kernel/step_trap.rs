//! The trap flag of a stepping thread, and the signal handler that serves its traps.
//!
//! Wine makes each SIGTRAP an exception of Windows, which takes about 18 microseconds. This handler comes before Wine's
//! and serves the instructions at which nothing is planned: in about 11 microseconds for a single step, most of them
//! Linux's own, and in 2.5 for a breakpoint. It passes on every other trap.

#![expect(unsafe_code, reason = "handles a signal of Linux, and changes the registers and the stack of a thread")]

use crate::state::{machine::MACHINE, step_breakpoints::Code, stepper::AfterTrap};
use std::{
    arch::{asm, global_asm},
    ptr,
    sync::atomic::{AtomicU8, AtomicUsize, Ordering},
};

/// EFLAGS.TF (SDM Vol. 1, 3.4.3.3).
pub const TRAP_FLAG: u32 = 0x100;

/// `rt_sigaction` (Linux, arch/x86/entry/syscalls/syscall_64.tbl), and the size of a set of signals.
const RT_SIGACTION: usize = 13;
const SET_SIZE: usize = 8;

/// SIGTRAP, and the code of a single-step trap (sigaction(2)).
const SIGTRAP: usize = 5;
const TRAP_TRACE: i32 = 2;

/// The number of the exception #DB.
const DEBUG_EXCEPTION: u64 = 1;

/// The code of a signal for INT3, whose length is one byte.
const SI_KERNEL: i32 = 0x80;

/// Set in the result of [`resume_address`] if the thread steps again.
const STEPS: u64 = 1 << 63;

/// `struct sigaction` of the kernel for x86-64.
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// `siginfo_t`, as far as it is read.
#[repr(C)]
struct Information {
    signal: i32,
    error: i32,
    code: i32,
}

/// `ucontext_t` for x86-64, as far as it is needed.
#[repr(C)]
struct Context {
    /// Flags, link and alternate stack.
    head: [u64; 5],
    /// R8 to R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX.
    general: [u64; 15],
    rsp: u64,
    rip: u64,
    flags: u64,
    segments: u64,
    error: u64,
    trap: u64,
}

const _: () = assert!(std::mem::offset_of!(Context, rsp) == 160);

type Handler = unsafe extern "sysv64" fn(i32, *mut Information, *mut Context);

/// Wine's handler, or 0.
static WINES: AtomicUsize = AtomicUsize::new(0);

// `lab_step_call` calls the function in RCX with the four arguments at RDX, and with the flags in R8 set. With the trap
// flag, the first trap is before the first instruction of the function.
//
// A kernel function that a stepped driver has called returns to `lab_step_resume`, which keeps the results, sets the
// trap flag and goes on at the address to which the driver's call returns. The trap is before the instruction there.
global_asm!(
    ".section .text",
    ".balign 16",
    ".globl lab_step_call",
    ".seh_proc lab_step_call",
    "lab_step_call:",
    "sub rsp, 40",
    ".seh_stackalloc 40",
    ".seh_endprologue",
    "mov rax, rcx",
    "mov r10, rdx",
    "mov r11, r8",
    "mov rcx, [r10]",
    "mov rdx, [r10 + 8]",
    "mov r8, [r10 + 16]",
    "mov r9, [r10 + 24]",
    "pushfq",
    "or qword ptr [rsp], r11",
    "popfq",
    "call rax",
    ".globl lab_step_exit",
    "lab_step_exit:",
    "add rsp, 40",
    "ret",
    ".seh_endproc",
    ".balign 16",
    ".globl lab_step_resume",
    "lab_step_resume:",
    "sub rsp, 8",
    "push rax",
    "sub rsp, 48",
    "movdqu [rsp + 32], xmm0",
    "call {address}",
    "btr rax, 63",
    "mov [rsp + 56], rax",
    "movdqu xmm0, [rsp + 32]",
    "lea rsp, [rsp + 48]",
    "pop rax",
    "jnc 2f",
    "pushfq",
    "or qword ptr [rsp], 0x100",
    "popfq",
    "2:",
    "ret",
    address = sym resume_address,
);

unsafe extern "system" {
    fn lab_step_call(routine: *const (), arguments: *const usize, flags: usize) -> usize;
    fn lab_step_exit();
    fn lab_step_resume();
}

/// Returns the address at which the driver continues after the call of a kernel function, with [`STEPS`] if it steps.
extern "system" fn resume_address() -> u64 {
    let stepper = &MACHINE.kernel.stepping.stepper;
    let address = stepper.pop().and_then(|address| u64::try_from(address).ok());
    address.unwrap_or_default() | if stepper.is_stepping(current_thread()) { STEPS } else { 0 }
}

/// Calls a function of a driver. The thread steps from its first instruction on, or runs.
///
/// # Safety
/// The function takes these arguments, and has no others.
pub unsafe fn call(routine: *const (), arguments: [usize; 4], steps: bool) -> usize {
    let flags = if steps { 1 << TRAP_FLAG.trailing_zeros() } else { 0 };
    // SAFETY: guaranteed by the caller.
    unsafe { lab_step_call(routine, arguments.as_ptr(), flags) }
}

/// The code of the driver, which is writable.
pub struct DriverCode;

impl Code for DriverCode {
    fn replace(&self, address: usize, byte: u8) -> u8 {
        let at: *mut u8 = ptr::with_exposed_provenance_mut(address);
        // SAFETY: the address is in the image of a loaded driver, which `make_writable` has made writable. A processor
        // fetches either byte.
        unsafe { AtomicU8::from_ptr(at) }.swap(byte, Ordering::SeqCst)
    }

    fn read(&self, address: usize) -> u8 {
        let at: *const u8 = ptr::with_exposed_provenance(address);
        // SAFETY: the address is in the image of a loaded driver.
        unsafe { at.read_volatile() }
    }
}

/// Returns the number of the thread from the TEB, without a call.
fn current_thread() -> u32 {
    let thread: u64;
    // SAFETY: in a thread of Windows, GS refers to the TEB; 48H is ClientId.UniqueThread.
    unsafe { asm!("mov {}, gs:[0x48]", out(reg) thread, options(nostack, readonly, preserves_flags)) };
    u32::try_from(thread).unwrap_or_default()
}

unsafe extern "sysv64" fn on_signal(signal: i32, information: *mut Information, context: *mut Context) {
    // SAFETY: Linux passes valid pointers; these are the first members of the information.
    let head = unsafe { &mut *information };
    // SAFETY: the context belongs to this thread, which does not use it otherwise.
    let registers = unsafe { &mut *context };
    if serve(&mut head.code, registers) {
        return;
    }
    let wines: *const () = ptr::with_exposed_provenance(WINES.load(Ordering::Relaxed));
    // SAFETY: `start` stored the handler that it replaced, before a signal could arrive here.
    let wines = unsafe { std::mem::transmute::<*const (), Handler>(wines) };
    // SAFETY: the arguments are Linux's own.
    unsafe { wines(signal, information, context) };
}

/// Serves a trap of the stepping thread, or at its breakpoint. Returns false if Wine has to make it an exception.
fn serve(code: &mut i32, registers: &mut Context) -> bool {
    let Ok(ip) = usize::try_from(registers.rip) else { return false };
    let top: *mut usize = ptr::with_exposed_provenance_mut(usize::try_from(registers.rsp).unwrap_or_default());
    let exit: *const () = lab_step_exit as *const ();
    let stepper = &MACHINE.kernel.stepping.stepper;
    let thread = current_thread();
    let after = match *code {
        TRAP_TRACE if ip == exit.addr() && stepper.is_stepping(thread) => AfterTrap::Run,
        // SAFETY: the thread has a stack, and the stack pointer is aligned.
        TRAP_TRACE => stepper.after_step(thread, ip, || unsafe { top.read() }, &DriverCode),
        SI_KERNEL => stepper.after_breakpoint(thread, ip - 1, &DriverCode),
        _ => AfterTrap::NotOurs,
    };
    if *code == SI_KERNEL && after != AfterTrap::NotOurs {
        registers.rip -= 1;
    }
    match after {
        AfterTrap::NotOurs => return false,
        AfterTrap::Again => return true,
        AfterTrap::Stop => {
            // Wine tells a single-step trap by these.
            *code = TRAP_TRACE;
            registers.trap = DEBUG_EXCEPTION;
            registers.flags |= u64::from(TRAP_FLAG);
            return false;
        }
        AfterTrap::Step => {
            registers.flags |= u64::from(TRAP_FLAG);
            return true;
        }
        // SAFETY: the top of the stack is the return address of the call, which `resume_address` restores.
        AfterTrap::Call => unsafe { top.write((lab_step_resume as *const ()).expose_provenance()) },
        AfterTrap::Run => {}
    }
    registers.flags &= !u64::from(TRAP_FLAG);
    true
}

/// Installs the signal handler before Wine's, unless it is installed.
pub fn start() {
    if WINES.load(Ordering::SeqCst) != 0 {
        return;
    }
    let mut action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    sigaction(ptr::null(), &raw mut action);
    WINES.store(action.handler, Ordering::SeqCst);
    action.handler = (on_signal as *const ()).expose_provenance();
    sigaction(&raw const action, ptr::null_mut());
}

/// Installs Wine's handler again. No thread steps any more.
pub fn stop() {
    let wines = WINES.load(Ordering::SeqCst);
    if wines == 0 {
        return;
    }
    let mut action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    sigaction(ptr::null(), &raw mut action);
    action.handler = wines;
    sigaction(&raw const action, ptr::null_mut());
    WINES.store(0, Ordering::SeqCst);
}

/// Sets and returns the action of SIGTRAP.
fn sigaction(new: *const Action, old: *mut Action) {
    // SAFETY: the pointers are null or point to an action. The call fails for no other reason, and changes RCX and R11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") RT_SIGACTION => _,
            in("rdi") SIGTRAP,
            in("rsi") new,
            in("rdx") old,
            in("r10") SET_SIZE,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
}
