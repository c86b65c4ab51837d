//! The instructions that fault in user mode or that the lab replaces: cpuid, rdmsr, wrmsr and rdpmc.

use crate::{
    cpu::{processor::State, processors},
    state::machine::MACHINE,
    violation,
};
use bench_protocol::{Instruction, Violation};
use model::GeneralProtection;
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// The replacement of cpuid. All instructions here are two bytes long.
pub const UD2: [u8; 2] = [0x0F, 0x0B];
const RDMSR: [u8; 2] = [0x0F, 0x32];
const WRMSR: [u8; 2] = [0x0F, 0x30];
const RDPMC: [u8; 2] = [0x0F, 0x33];

/// Properties of the driver and of the address at which an instruction trapped.
#[derive(Clone, Copy)]
pub struct Site {
    /// The loader replaced a cpuid instruction here by [`UD2`].
    pub was_cpuid: bool,
    /// The driver can reserve counters and has not, so it must not start one.
    pub must_reserve: bool,
}

/// Executes the instruction on the current processor. Returns false if it is not one of these instructions.
pub fn execute(instruction: [u8; 2], context: &mut CONTEXT, site: Site) -> bool {
    let (eax, ecx) = (low(context.Rax), low(context.Rcx));
    match instruction {
        UD2 if site.was_cpuid => {
            let answer = processors::with_current_state(|_, state| state.processor.cpuid(eax, ecx)).unwrap_or_default();
            [context.Rax, context.Rbx, context.Rcx, context.Rdx] = answer.map(u64::from);
        }
        RDMSR => {
            let value = access(Instruction::Rdmsr, ecx, None, |state| state.processor.rdmsr(ecx));
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        WRMSR => {
            let value = context.Rdx << 32 | u64::from(eax);
            access(Instruction::Wrmsr, ecx, Some(value), |state| {
                let counting =
                    |state: &State| if site.must_reserve { state.processor.enabled_counters().len() } else { 0 };
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

/// Executes an access that can fault. A fault is recorded as a violation, and the driver continues with 0.
fn access(
    instruction: Instruction,
    register: u32,
    value: Option<u64>,
    body: impl FnOnce(&mut State) -> Result<u64, GeneralProtection>,
) -> u64 {
    check_awake(|| format!("{instruction:?} of {register:#x}"));
    let result = processors::with_current_state(|processor, state| {
        body(state).map_err(|_| Violation::GeneralProtection { processor, instruction, register, value })
    });
    match result {
        Some(Ok(value)) => value,
        Some(Err(fault)) => {
            violation::record(fault);
            0
        }
        None => {
            violation::other(format!("{instruction:?} on a processor that the lab does not have"));
            0
        }
    }
}

/// Records a violation if the machine sleeps: registers are lost during sleep.
pub fn check_awake(what: impl FnOnce() -> String) {
    if MACHINE.time_mode.is_asleep() {
        violation::other(format!("{} while the machine sleeps", what()));
    }
}

fn low(register: u64) -> u32 {
    u32::try_from(register & 0xFFFF_FFFF).unwrap_or_default()
}
