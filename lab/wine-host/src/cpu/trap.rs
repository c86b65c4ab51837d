//! The instructions that a driver executes and a process may not.
//!
//! cpuid does not fault, so the lab puts ud2 in its place; rdmsr, wrmsr and rdpmc fault by themselves, as an access
//! violation at address -1; what is mapped of the APIC faults at its own addresses; and `cancel_race.rs` lets others trap. Only what lies in a driver that the
//! lab has adopted is answered: any other fault goes its way.

#![expect(unsafe_code, reason = "an exception handler reads and writes the registers of the thread")]

use crate::{
    cpu::{affinity, apic, processor, processor::State},
    kernel::{cancel_race, hal, power},
    loader::image,
    nt,
    violation::{self, caught},
};
use bench_protocol::{Instruction, Violation};
use model::GeneralProtection;
use std::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use windows_sys::Win32::{
    Foundation::{
        STATUS_ACCESS_VIOLATION, STATUS_ILLEGAL_INSTRUCTION, STATUS_PRIVILEGED_INSTRUCTION, STATUS_SINGLE_STEP,
    },
    System::Diagnostics::Debug::{
        AddVectoredExceptionHandler, CONTEXT, EXCEPTION_CONTINUE_EXECUTION, EXCEPTION_CONTINUE_SEARCH,
        EXCEPTION_POINTERS, RemoveVectoredExceptionHandler,
    },
};

/// What stands where cpuid was; of the same length, as are all the instructions here.
pub const UD2: [u8; 2] = [0x0F, 0x0B];
const RDMSR: [u8; 2] = [0x0F, 0x32];
const WRMSR: [u8; 2] = [0x0F, 0x30];
const RDPMC: [u8; 2] = [0x0F, 0x33];

static HANDLER: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

pub fn start() -> bool {
    // SAFETY: a handler of the right type, which stays until `stop`.
    let handler = unsafe { AddVectoredExceptionHandler(1, Some(on_exception)) };
    HANDLER.store(handler, Ordering::SeqCst);
    !handler.is_null()
}

pub fn stop() {
    let handler = HANDLER.swap(ptr::null_mut(), Ordering::SeqCst);
    if !handler.is_null() {
        // SAFETY: added by `start`, and removed once.
        unsafe { RemoveVectoredExceptionHandler(handler) };
    }
}

unsafe extern "system" fn on_exception(exception: *mut EXCEPTION_POINTERS) -> i32 {
    caught("an exception handler", EXCEPTION_CONTINUE_SEARCH, || {
        // SAFETY: Windows gives a valid pointer.
        let exception = unsafe { &*exception };
        // SAFETY: and in it a valid record, which nobody writes now.
        let record = unsafe { &*exception.ExceptionRecord };
        // SAFETY: the context is valid and this thread's, which is here and so does not use it.
        let context = unsafe { &mut *exception.ContextRecord };
        let memory = match record.ExceptionCode {
            STATUS_SINGLE_STEP if cancel_race::stepped(context) => return EXCEPTION_CONTINUE_EXECUTION,
            STATUS_ILLEGAL_INSTRUCTION | STATUS_PRIVILEGED_INSTRUCTION => None,
            STATUS_ACCESS_VIOLATION => record.ExceptionInformation.get(1).copied().filter(|at| *at != usize::MAX),
            _ => return EXCEPTION_CONTINUE_SEARCH,
        };
        let Some(at) = usize::try_from(context.Rip).ok().filter(|at| image::holds(*at)) else {
            return EXCEPTION_CONTINUE_SEARCH;
        };
        let length = if let Some(address) = memory {
            apic::execute(at, address, context)
        } else {
            // SAFETY: an adopted driver was executing there; an instruction that faulted so has two bytes at least.
            let instruction = unsafe { ptr::with_exposed_provenance::<[u8; 2]>(at).read() };
            execute(instruction, at, context).then_some(instruction.len())
        };
        let Some(length) = length.and_then(|length| u64::try_from(length).ok()) else {
            return EXCEPTION_CONTINUE_SEARCH;
        };
        context.Rip += length;
        EXCEPTION_CONTINUE_EXECUTION
    })
}

/// Executes the instruction on the current processor; false if it is none of ours.
fn execute(instruction: [u8; 2], at: usize, context: &mut CONTEXT) -> bool {
    let (eax, ecx) = (low(context.Rax), low(context.Rcx));
    match instruction {
        UD2 if image::took_cpuid(at) => {
            let answer = on_processor(|_, state| state.processor.cpuid(eax, ecx)).unwrap_or_default();
            [context.Rax, context.Rbx, context.Rcx, context.Rdx] = answer.map(u64::from);
        }
        RDMSR => {
            let value = access(Instruction::Rdmsr, ecx, None, |state| state.processor.rdmsr(ecx));
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        WRMSR => {
            let value = context.Rdx << 32 | u64::from(eax);
            let must_reserve = image::reserves(at) && !hal::reserved();
            access(Instruction::Wrmsr, ecx, Some(value), |state| {
                let counting = |state: &State| if must_reserve { state.processor.enabled_counters().len() } else { 0 };
                let before = counting(state);
                state.processor.wrmsr(ecx, value)?;
                if counting(state) > before {
                    violation::other(format!("{ecx:#x}, value {value:#x}, starts a counter that is not reserved"));
                }
                Ok(0)
            });
        }
        RDPMC => {
            let value = access(Instruction::Rdpmc, ecx, None, |state| state.processor.rdpmc(ecx));
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        _ => return false,
    }
    true
}

/// An access that can fault; if it does, that is noted, and the driver goes on with zero.
fn access(
    instruction: Instruction,
    register: u32,
    value: Option<u64>,
    body: impl FnOnce(&mut State) -> Result<u64, GeneralProtection>,
) -> u64 {
    check_awake(|| format!("{instruction:?} of {register:#x}"));
    let result = on_processor(|processor, state| {
        body(state).map_err(|_| Violation::GeneralProtection { processor, instruction, register, value })
    });
    match result {
        Some(Ok(value)) => value,
        Some(Err(fault)) => {
            violation::note(fault);
            0
        }
        None => {
            violation::other(format!("{instruction:?} on a processor that the lab does not have"));
            0
        }
    }
}

/// While the machine sleeps, registers are lost, or are going to be.
pub fn check_awake(what: impl FnOnce() -> String) {
    if power::asleep() {
        violation::other(format!("{} while the machine sleeps", what()));
    }
}

/// Does something with the processor on which this thread is, when nobody is there with interrupts masked.
pub fn on_processor<T>(body: impl FnOnce(u32, &mut State) -> T) -> Option<T> {
    let thread = nt::current_thread();
    loop {
        let core = processor::find(affinity::current_processor())?;
        core.high_level.acquire(thread);
        // The wait may have moved the thread.
        if affinity::current_processor() == core.number {
            let result = core.with(|state| body(core.number, state));
            core.high_level.release(thread);
            break Some(result);
        }
        core.high_level.release(thread);
    }
}

fn low(register: u64) -> u32 {
    u32::try_from(register & 0xFFFF_FFFF).unwrap_or_default()
}
