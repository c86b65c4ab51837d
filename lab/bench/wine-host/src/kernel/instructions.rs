//! The instructions that fault in user mode or that the lab replaces: cpuid, rdtsc, rdmsr, wrmsr, rdpmc, reads of
//! CR4, and loops.

use crate::{
    cpu::{affinity, instruction_scan::Replaced, processor::State, processors},
    kernel::{irql, threads, time},
    nt::APC_LEVEL,
    violation,
};
use bench_protocol::{Instruction, Violation};
use model::GeneralProtection;
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// The replacement of what does not fault and the lab [replaces](Replaced). All instructions here are two bytes long,
/// except [`MOV_FROM_CONTROL`].
pub const UD2: [u8; 2] = [0x0F, 0x0B];
const RDMSR: [u8; 2] = [0x0F, 0x32];
const WRMSR: [u8; 2] = [0x0F, 0x30];
const RDPMC: [u8; 2] = [0x0F, 0x33];
const MOV_FROM_CONTROL: [u8; 2] = [0x0F, 0x20];
/// The third byte of `mov rax, cr4`.
const CR4_TO_RAX: u8 = 0xE0;

/// CR4 of a Windows machine, as github.com/billti/setcr4 has it; and PCE (SDM Vol. 3A, 2.5).
const CR4: u64 = 0x37_0678;
const PCE: u64 = 1 << 8;

/// ZF (SDM Vol. 1, EFLAGS Register).
const ZERO_FLAG: u32 = 1 << 6;

/// Properties of the driver and of the address at which an instruction trapped.
#[derive(Clone, Copy)]
pub struct Site {
    /// What the loader replaced here by [`UD2`]. A loop is executed to its end at once.
    pub replaced: Option<Replaced>,
    /// The driver can reserve counters and has not, so it must not start one.
    pub must_reserve: bool,
    /// If the driver handles faults itself: whether it handles one of this instruction.
    pub guards: Option<bool>,
}

/// Executes the instruction on the current processor. Returns its length, or `None` if it is not one of these
/// instructions. `third` returns its third byte.
///
/// # Errors
/// It faulted, and the driver handles the fault itself.
pub fn execute(
    instruction: [u8; 2],
    third: impl FnOnce() -> Option<u8>,
    context: &mut CONTEXT,
    site: Site,
) -> Result<Option<usize>, GeneralProtection> {
    let (eax, ecx) = (low(context.Rax), low(context.Rcx));
    match instruction {
        UD2 if site.replaced == Some(Replaced::Cpuid) => {
            let answer = processors::with_current_state(|_, state| state.processor.cpuid(eax, ecx)).unwrap_or_default();
            [context.Rax, context.Rbx, context.Rcx, context.Rdx] = answer.map(u64::from);
        }
        UD2 if site.replaced == Some(Replaced::Rdtsc) => {
            let value = time::time_stamp();
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        UD2 if site.replaced == Some(Replaced::Loop) => {
            processors::with_current_state(|_, state| state.processor.run_loop(ecx));
            context.Rcx = 0;
            context.EFlags |= ZERO_FLAG;
        }
        RDMSR => {
            let value = access((Instruction::Rdmsr, ecx), None, site, |state| {
                state.processor.retire_access();
                state.processor.rdmsr(ecx)
            })?;
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        WRMSR => {
            let value = context.Rdx << 32 | u64::from(eax);
            access((Instruction::Wrmsr, ecx), Some(value), site, |state| {
                let counting =
                    |state: &State| if site.must_reserve { state.processor.enabled_counters().len() } else { 0 };
                let before = counting(state);
                state.processor.wrmsr(ecx, value)?;
                if counting(state) > before {
                    violation::other(format!("{ecx:#x}, value {value:#x}, starts a counter that is not reserved"));
                }
                Ok(0)
            })?;
        }
        RDPMC => {
            let value = access((Instruction::Rdpmc, ecx), None, site, |state| state.processor.rdpmc(ecx))?;
            (context.Rax, context.Rdx) = (value & 0xFFFF_FFFF, value >> 32);
        }
        MOV_FROM_CONTROL if third() == Some(CR4_TO_RAX) => {
            let works = processors::with_current_state(|processor, _| processor).is_some_and(threads::rdpmc_works_on);
            context.Rax = if works { CR4 | PCE } else { CR4 };
            return Ok(Some(3));
        }
        _ => return Ok(None),
    }
    Ok(Some(instruction.len()))
}

/// Executes an access that can fault. If the driver does not handle the fault, it is recorded as a violation, and the
/// driver continues with 0.
///
/// A driver that handles faults must do so at the first access of each register: a thread that is pinned to the
/// processor, below DISPATCH_LEVEL.
///
/// Counters do not wait for the code that accesses them: every event occurs once before each access.
fn access(
    (instruction, register): (Instruction, u32),
    value: Option<u64>,
    site: Site,
    body: impl FnOnce(&mut State) -> Result<u64, GeneralProtection>,
) -> Result<u64, GeneralProtection> {
    violation::check_awake(|| format!("{instruction:?} of {register:#x}"));
    let is_guarded = site.guards == Some(true);
    if is_guarded {
        irql::check("a guarded access", APC_LEVEL);
        if affinity::bound_processor().is_none() {
            violation::other(format!("a guarded {instruction:?} of {register:#x} by a thread that is not pinned"));
        }
    }
    let result = processors::with_current_state(|processor, state| {
        let known = state.guarded.contains(&(instruction, register));
        if site.guards == Some(false) && !known {
            violation::other(format!("{instruction:?} of {register:#x} on CPU {processor} before a guarded access"));
        }
        state.processor.run_between_accesses(&|_| 1);
        let result = body(state);
        if is_guarded && result.is_ok() {
            state.guarded.insert((instruction, register));
        }
        result.map_err(|_| Violation::GeneralProtection { processor, instruction, register, value })
    });
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) if is_guarded => Err(GeneralProtection),
        Some(Err(fault)) => {
            violation::record(fault);
            Ok(0)
        }
        None => {
            violation::other(format!("{instruction:?} on a processor that the lab does not have"));
            Ok(0)
        }
    }
}

fn low(register: u64) -> u32 {
    u32::try_from(register & 0xFFFF_FFFF).unwrap_or_default()
}
