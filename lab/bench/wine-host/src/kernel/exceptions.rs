//! The exception handler of the process in which drivers run.
//!
//! cpuid, rdtsc and loops do not fault, so the loader replaces them by ud2. rdmsr, wrmsr and rdpmc fault as an access
//! violation at address -1, and reads of control registers as privileged instructions. Accesses to the mapped registers
//! of the APIC fault at their addresses, and `cancel_race.rs` and `step_trap.rs` set the trap flag. The handler serves
//! only faults inside a loaded driver and passes on all others.

#![expect(unsafe_code, reason = "an exception handler reads and writes the registers of the thread")]

use crate::{
    cpu::apic,
    kernel::{
        cancel_race, hal,
        instructions::{self, Site},
        loaded_images, processor_change, step_stops,
    },
    state::machine::MACHINE,
    violation::catch_panic,
};
use model::GeneralProtection;
use std::{ptr, sync::atomic::Ordering};
use windows_sys::Win32::{
    Foundation::{
        STATUS_ACCESS_VIOLATION, STATUS_ILLEGAL_INSTRUCTION, STATUS_PRIVILEGED_INSTRUCTION, STATUS_SINGLE_STEP,
    },
    System::Diagnostics::Debug::{
        AddVectoredExceptionHandler, EXCEPTION_CONTINUE_EXECUTION, EXCEPTION_CONTINUE_SEARCH, EXCEPTION_POINTERS,
        EXCEPTION_RECORD, RemoveVectoredExceptionHandler,
    },
};

pub fn start() -> bool {
    // SAFETY: the handler has the right type and stays valid until `stop`.
    let handler = unsafe { AddVectoredExceptionHandler(1, Some(on_exception)) };
    MACHINE.kernel.exception_handler.store(handler, Ordering::SeqCst);
    !handler.is_null()
}

pub fn stop() {
    let handler = MACHINE.kernel.exception_handler.swap(ptr::null_mut(), Ordering::SeqCst);
    if !handler.is_null() {
        // SAFETY: added by `start`, and removed once.
        unsafe { RemoveVectoredExceptionHandler(handler) };
    }
}

/// Makes the exception what Windows raises for #GP in kernel mode: an access violation at address -1. It goes on to the
/// handler of the driver. It is one of a write, because Wine's kernel emulates RDMSR after the violation of a read.
fn raise(record: &mut EXCEPTION_RECORD) {
    const WRITE: usize = 1;
    record.ExceptionCode = STATUS_ACCESS_VIOLATION;
    record.NumberParameters = 2;
    let [how, at, ..] = &mut record.ExceptionInformation;
    (*how, *at) = (WRITE, usize::MAX);
}

unsafe extern "system" fn on_exception(exception: *mut EXCEPTION_POINTERS) -> i32 {
    catch_panic("an exception handler", EXCEPTION_CONTINUE_SEARCH, || {
        // SAFETY: Windows passes a valid pointer.
        let exception = unsafe { &*exception };
        // SAFETY: it contains a valid record, which no other code uses now.
        let record = unsafe { &mut *exception.ExceptionRecord };
        // SAFETY: the context is valid and belongs to this thread, which does not use it otherwise.
        let context = unsafe { &mut *exception.ContextRecord };
        let memory = match record.ExceptionCode {
            STATUS_SINGLE_STEP if step_stops::on_single_step(context) || cancel_race::on_single_step(context) => {
                return EXCEPTION_CONTINUE_EXECUTION;
            }
            STATUS_ILLEGAL_INSTRUCTION | STATUS_PRIVILEGED_INSTRUCTION => None,
            STATUS_ACCESS_VIOLATION => record.ExceptionInformation.get(1).copied().filter(|at| *at != usize::MAX),
            _ => return EXCEPTION_CONTINUE_SEARCH,
        };
        let Some(at) = usize::try_from(context.Rip).ok().filter(|at| loaded_images::contains(*at)) else {
            return EXCEPTION_CONTINUE_SEARCH;
        };
        // Another thread may have put a breakpoint there meanwhile.
        let original = || MACHINE.kernel.stepping.stepper.original(at);
        let length = if let Some(address) = memory {
            let mut code = loaded_images::code_at(at).unwrap_or_default().to_vec();
            if let (Some(first), Some(original)) = (code.first_mut(), original()) {
                *first = original;
            }
            apic::execute(&code, address, context)
        } else {
            // SAFETY: a loaded driver executes this address; an instruction that faults like this has at least two
            // bytes.
            let mut instruction = unsafe { ptr::with_exposed_provenance::<[u8; 2]>(at).read() };
            if let Some(original) = original() {
                let [first, _] = &mut instruction;
                *first = original;
            }
            let site = Site {
                replaced: loaded_images::replaced(at),
                must_reserve: loaded_images::can_reserve(at) && !hal::reserved() && !processor_change::is_adding(),
                guards: loaded_images::guards(at),
            };
            let third = || loaded_images::code_at(at)?.get(2).copied();
            let executed = instructions::execute(instruction, third, context, site);
            if executed == Err(GeneralProtection) {
                raise(record);
            }
            executed.ok().flatten()
        };
        let Some(length) = length.and_then(|length| u64::try_from(length).ok()) else {
            return EXCEPTION_CONTINUE_SEARCH;
        };
        context.Rip += length;
        step_stops::after_emulation(context);
        EXCEPTION_CONTINUE_EXECUTION
    })
}
