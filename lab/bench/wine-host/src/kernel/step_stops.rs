//! What happens at the instructions of a stepped call at which something is planned: counters overflow, and the
//! interrupt of the overflow is delivered.

use crate::{
    cpu::{
        processor::{Core, State},
        processors,
    },
    kernel::{
        interrupt, irql,
        step_trap::{DriverCode, TRAP_FLAG},
        stepping::{self, RUNNING, Running},
    },
    nt::{self, HIGH_LEVEL},
    state::{machine::MACHINE, stepper::AfterTrap},
};
use bench_protocol::StepOverflow;
use model::{Mode, Selected};
use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// The longest wait for the interrupt of another processor.
const OTHER_LIMIT: Duration = Duration::from_millis(20);

/// More events than until any counter overflows that interrupts: no interval has more than 31 bits.
const MAX_EVENTS: u64 = 1 << 31;

/// Continues to step after the lab has executed an instruction of the driver.
pub fn after_emulation(context: &mut CONTEXT) {
    let stepper = &MACHINE.kernel.stepping.stepper;
    let thread = nt::current_thread();
    let Ok(ip) = usize::try_from(context.Rip) else { return };
    if context.EFlags & TRAP_FLAG == 0 {
        return;
    }
    if stepper.has_passed(thread, &DriverCode) {
        context.EFlags &= !TRAP_FLAG;
    } else if stepper.is_stepping(thread) && stepper.after_instruction(ip) == AfterTrap::Stop {
        stop_at(context);
    }
}

/// Handles a trap before an instruction at which something is planned. Returns false if the trap is not of a stepping
/// thread.
pub fn on_single_step(context: &mut CONTEXT) -> bool {
    let is_stepping = MACHINE.kernel.stepping.stepper.is_stepping(nt::current_thread());
    if is_stepping {
        stop_at(context);
    }
    is_stepping
}

/// Does what is planned before the instruction, and sets the trap flag if more is to come.
fn stop_at(context: &mut CONTEXT) {
    let stepper = &MACHINE.kernel.stepping.stepper;
    context.EFlags &= !TRAP_FLAG;
    // The handler of the interrupt is not stepped.
    stepper.end(&DriverCode);
    let Some(mut running) = RUNNING.take() else { return };
    let instruction = stepper.reached().saturating_sub(1);
    let next = act(&mut running, instruction, context.Rip);
    if next.is_some_and(|next| running.go_on(Some(instruction), next)) {
        context.EFlags |= TRAP_FLAG;
    }
    RUNNING.set(Some(running));
}

/// Does what is planned before an instruction. Returns the number of the next one at which to stop.
fn act(running: &mut Running, instruction: u64, ip: u64) -> Option<u64> {
    let core = processors::find(running.plan.processor)?;
    let target = processors::find(running.plan.target)?;
    // The driver may have moved the thread to another processor.
    let on_planned = stepping::is_on(running.plan.processor);
    let interrupts_itself = on_planned && running.plan.target == running.plan.processor;
    if running.run.is_due(instruction) {
        let start = u64::try_from(running.image.start).unwrap_or_default();
        let mut overflow = StepOverflow {
            instruction,
            offset: ip.wrapping_sub(start),
            level: irql::current(),
            overflowed: false,
            delivered: None,
        };
        if interrupts_itself {
            core.is_stepped.store(true, Ordering::SeqCst);
        }
        overflow.overflowed = overflow_on(target);
        running.run.overflowed(overflow);
        if !interrupts_itself {
            // The other processor may wait at HIGH_LEVEL for what the stepped one holds.
            if target.pmi.notify_and_wait_up_to(OTHER_LIMIT) {
                running.run.delivered(instruction);
            }
        }
    }
    let mut is_pending = false;
    if !on_planned {
        stepping::release(core);
    } else if core.is_stepped.load(Ordering::SeqCst) {
        if irql::current() < HIGH_LEVEL && core.with(|state| state.processor.interrupt_due()) {
            running.run.delivered(instruction);
            interrupt::deliver(core);
        }
        is_pending = core.with(|state| state.processor.interrupt_pending());
        if !is_pending {
            stepping::release(core);
        }
    }
    running.run.next_stop(Some(instruction), is_pending)
}

/// Lets each event that a counter counts occur until the counter overflows. Returns whether a counter can.
fn overflow_on(core: &Core) -> bool {
    let thread = nt::current_thread();
    core.high_level.acquire(thread);
    let overflowed = core.with(overflow);
    core.high_level.release(thread);
    overflowed
}

/// Counters of one event overflow together. A counter whose status bit is still set overflows as well, but does not
/// interrupt. The code of the driver runs in kernel mode.
fn overflow(state: &mut State) -> bool {
    let processor = &mut state.processor;
    let interrupting = processor.interrupting_counters();
    let mut events: BTreeMap<Selected, u64> = BTreeMap::new();
    for counter in interrupting.iter().filter(|counter| counter.kernel && counter.events < MAX_EVENTS) {
        let least = events.entry(counter.selected).or_insert(counter.events);
        *least = counter.events.min(*least);
    }
    for (id, selected) in processor.enabled_counters() {
        if let Some(number) = processor.until_overflow(id).filter(|number| *number < MAX_EVENTS) {
            events.entry(selected).or_insert(number);
        }
    }
    processor.run(Mode::Kernel, &|selected| events.get(&selected).copied().unwrap_or_default());
    !events.is_empty()
}
