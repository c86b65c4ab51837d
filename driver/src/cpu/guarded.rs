//! RDMSR, WRMSR and RDPMC that may fault: structured exception handling turns #GP into a result.
//!
//! Rust has no `__try`. The functions below are assembler with the unwind information that a compiler of C makes for
//! one: the kernel's dispatcher finds their entry in the function table, calls `__C_specific_handler`, and continues
//! behind the label of the handler. The scope covers the instruction alone.
//!
//! The dispatcher runs at the IRQL of the fault and needs no memory. Nevertheless these functions are used on pinned
//! threads only.

use core::arch::global_asm;
use core::mem::MaybeUninit;

use pmu::first_access::GeneralProtection;
use pmu::{GuardedCpu, Msr, ProcessorIndex};
use processor::{Processor, current_processor, known_loop};
use wdk_sys::NTSTATUS;

use crate::nt::processors::Pinned;

/// STATUS_UNSUCCESSFUL (ntstatus.h).
const STATUS_UNSUCCESSFUL: NTSTATUS = 0xC000_0001_u32.cast_signed();

/// Defines a function that executes one instruction, and returns 0 instead of 1 in EAX if the instruction faults.
/// `before` and `after` surround the instruction; they do not fault for the arguments that the functions have.
macro_rules! guarded {
    ($name:literal, $before:literal, $instruction:literal, $after:literal) => {
        global_asm!(
            ".section .text",
            ".balign 16",
            concat!(".globl ", $name),
            concat!(".seh_proc ", $name),
            concat!($name, ":"),
            "sub rsp, 40",
            ".seh_stackalloc 40",
            ".seh_endprologue",
            $before,
            concat!(".L", $name, "_begin:"),
            $instruction,
            concat!(".L", $name, "_end:"),
            $after,
            "mov eax, 1",
            "add rsp, 40",
            "ret",
            concat!(".L", $name, "_except:"),
            "xor eax, eax",
            "add rsp, 40",
            "ret",
            ".seh_handler __C_specific_handler, @except",
            ".seh_handlerdata",
            // SCOPE_TABLE_AMD64 (winnt.h): the number of scopes; begin and end; the filter, where 1 is
            // EXCEPTION_EXECUTE_HANDLER; and where execution continues.
            ".long 1",
            concat!(".long .L", $name, "_begin@IMGREL"),
            concat!(".long .L", $name, "_end@IMGREL"),
            ".long 1",
            concat!(".long .L", $name, "_except@IMGREL"),
            ".section .text",
            ".seh_endproc",
        );
    };
}

// ECX: the register; RDX: where its value goes, which R8 keeps, because RDMSR overwrites EDX.
guarded!("halprof_try_rdmsr", "mov r8, rdx", "rdmsr", "shl rdx, 32\nor rax, rdx\nmov [r8], rax");
// ECX: the register; RDX: its new value, which WRMSR takes from EDX:EAX.
guarded!("halprof_try_wrmsr", "mov eax, edx\nshr rdx, 32", "wrmsr", "");
// ECX: the index of the counter; RDX: where its value goes.
guarded!("halprof_try_rdpmc", "mov r8, rdx", "rdpmc", "shl rdx, 32\nor rax, rdx\nmov [r8], rax");

unsafe extern "C" {
    fn halprof_try_rdmsr(register: u32, value: *mut u64) -> u32;
    fn halprof_try_wrmsr(register: u32, value: u64) -> u32;
    fn halprof_try_rdpmc(index: u32, value: *mut u64) -> u32;
}

/// The processor to which the thread is pinned.
///
/// Only [`on_processor`] makes the value, which is not `Send`.
#[derive(Debug)]
pub struct PinnedProcessor(Processor);

/// Runs `work` on a processor, to which the thread is pinned meanwhile.
///
/// # Errors
/// The kernel's NTSTATUS if there is no such processor; STATUS_UNSUCCESSFUL if the thread did not get there.
///
/// # IRQL
/// Below DISPATCH_LEVEL, which is also the IRQL of `work`.
pub fn on_processor<T>(processor: ProcessorIndex, work: impl FnOnce(&PinnedProcessor) -> T) -> Result<T, NTSTATUS> {
    let _stay = Pinned::to(processor)?;
    if current_processor() != processor {
        return Err(STATUS_UNSUCCESSFUL);
    }
    // SAFETY: the thread is pinned until the function returns
    Ok(work(&PinnedProcessor(unsafe { Processor::current() })))
}

impl GuardedCpu for PinnedProcessor {
    type Identity = Processor;

    fn identity(&self) -> &Processor {
        &self.0
    }

    fn try_rdmsr(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        let mut value = MaybeUninit::uninit();
        // SAFETY: reading a register has no effect on memory, a fault is handled, and the pointer is valid
        let done = unsafe { halprof_try_rdmsr(msr.address(), value.as_mut_ptr()) };
        if done != 1 {
            return Err(GeneralProtection);
        }
        // SAFETY: the function has written the value, because it returned 1
        Ok(unsafe { value.assume_init() })
    }

    fn try_wrmsr(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        // SAFETY: an `Msr` names a performance monitoring register that CPUID enumerates, or that the core has by its
        // model; `pmu` writes back what it read or writes zero where that has no effect, and a fault is handled
        let done = unsafe { halprof_try_wrmsr(msr.address(), value) };
        if done == 1 { Ok(()) } else { Err(GeneralProtection) }
    }

    fn try_rdpmc(&self, index: u32) -> Result<u64, GeneralProtection> {
        let mut value = MaybeUninit::uninit();
        // SAFETY: reading a counter has no effect on memory, a fault is handled, and the pointer is valid
        let done = unsafe { halprof_try_rdpmc(index, value.as_mut_ptr()) };
        if done != 1 {
            return Err(GeneralProtection);
        }
        // SAFETY: the function has written the value, because it returned 1
        Ok(unsafe { value.assume_init() })
    }

    fn run_loop(&self, iterations: u32) {
        known_loop(iterations);
    }
}
