//! The hot-add of processors and its notification, which Wine lacks.

#![expect(unsafe_code, reason = "calls functions of the driver")]

use crate::{
    cpu::processors,
    kernel::{call_stack, irql, processor_numbers::ProcessorNumber},
    lock::lock,
    nt::{self, NtStatus, PASSIVE_LEVEL, Pointer},
    state::{
        callbacks::{ChangeRegistration, ChangeRoutine},
        machine::MACHINE,
        registry::RemoveError,
    },
    violation::{self, catch_panic},
};
use std::{ops::Range, ptr, sync::TryLockError};

/// KE_PROCESSOR_CHANGE_ADD_EXISTING.
const ADD_EXISTING: u32 = 1;

/// KE_PROCESSOR_CHANGE_NOTIFY_STATE: KeProcessorAddStartNotify, KeProcessorAddCompleteNotify,
/// KeProcessorAddFailureNotify.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    Start,
    Complete,
    Failure,
}

/// KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT.
#[repr(C)]
pub struct Change {
    stage: Stage,
    index: u32,
    status: NtStatus,
    number: ProcessorNumber,
}

const _: () = assert!(size_of::<Change>() == 16);

impl ChangeRegistration {
    /// Calls the routine. Returns the status that it stored at the start of an addition.
    fn call(self, stage: Stage, index: u32, status: NtStatus) -> NtStatus {
        let change = Change { stage, index, status, number: ProcessorNumber::new(index) };
        let mut answer = nt::SUCCESS;
        let context = ptr::with_exposed_provenance_mut(self.context);
        // SAFETY: the driver registered this function with this context, and stays loaded while it runs.
        irql::run_at(PASSIVE_LEVEL, || unsafe { (self.routine)(context, (&raw const change).cast(), &raw mut answer) });
        if stage != Stage::Start && answer != nt::SUCCESS {
            violation::other(format!("a driver returned {answer:#x} from a notification that it cannot refuse"));
        }
        answer
    }
}

/// Implements KeRegisterProcessorChangeCallback.
pub extern "system" fn register(routine: ChangeRoutine, context: Pointer, flags: u32) -> Pointer {
    let function = "KeRegisterProcessorChangeCallback";
    catch_panic(function, ptr::null_mut(), || {
        irql::check(function, PASSIVE_LEVEL);
        if flags & !ADD_EXISTING != 0 {
            violation::other(format!("{function} with the flags {flags:#x}"));
        }
        if call_stack::fails(function) {
            return ptr::null_mut();
        }
        let registered = ChangeRegistration { routine, context: context.expose_provenance() };
        let one_at_a_time = lock(&MACHINE.kernel.processor_changes.additions);
        let accepted = flags & ADD_EXISTING == 0 || notify_existing(registered);
        let handle = if accepted { MACHINE.kernel.processor_changes.registry.add(registered) } else { 0 };
        drop(one_at_a_time);
        ptr::without_provenance_mut(handle)
    })
}

/// Notifies the routine of each active processor as if it were added. Returns false if the driver refuses one; the
/// routine then gets a failure notification for those before it.
fn notify_existing(registered: ChangeRegistration) -> bool {
    let running = 0..MACHINE.topology.active();
    let refused = running.clone().find_map(|index| {
        let answer = registered.call(Stage::Start, index, nt::SUCCESS);
        (answer < 0).then_some((index, answer))
    });
    match refused {
        None => running.for_each(|index| _ = registered.call(Stage::Complete, index, nt::SUCCESS)),
        Some((refused, status)) => {
            (0..refused).for_each(|index| _ = registered.call(Stage::Failure, index, status));
        }
    }
    refused.is_none()
}

/// Implements KeDeregisterProcessorChangeCallback. Waits until no thread is in the routine.
pub extern "system" fn deregister(handle: Pointer) {
    let function = "KeDeregisterProcessorChangeCallback";
    catch_panic(function, (), || {
        irql::check(function, PASSIVE_LEVEL);
        match MACHINE.kernel.processor_changes.registry.remove(handle.addr(), nt::current_thread()) {
            Ok(_) => {}
            Err(RemoveError::Unknown) => violation::other(format!("{function} of {handle:p}, which is not registered")),
            Err(RemoveError::Reentrant) => {
                violation::other(format!("{function} inside the routine, which would wait for itself"));
            }
        }
    });
}

/// Adds a processor, unless a driver refuses. Returns whether it was added, or None if no more processors are possible.
pub fn add() -> Option<bool> {
    let one_at_a_time = lock(&MACHINE.kernel.processor_changes.additions);
    let index = MACHINE.topology.active();
    if index >= MACHINE.topology.maximum() {
        return None;
    }
    let thread = nt::current_thread();
    let mut status = nt::SUCCESS;
    MACHINE.kernel.processor_changes.registry.call(thread, |registered| {
        let answer = registered.call(Stage::Start, index, nt::SUCCESS);
        if answer < 0 {
            status = answer;
        }
    });
    let stage = if status < 0 { Stage::Failure } else { Stage::Complete };
    if stage == Stage::Complete {
        processors::add();
    }
    MACHINE.kernel.processor_changes.registry.call(thread, |registered| _ = registered.call(stage, index, status));
    drop(one_at_a_time);
    Some(stage == Stage::Complete)
}

/// Returns whether a processor is being added. Drivers do not reserve counters meanwhile: they would not be reserved on
/// the new processor, and freeing them would count there as well.
pub fn is_adding() -> bool {
    matches!(MACHINE.kernel.processor_changes.additions.try_lock(), Err(TryLockError::WouldBlock))
}

/// Reports and removes what an unloaded driver left behind.
pub fn image_unloaded(addresses: &Range<usize>) {
    let function = "KeRegisterProcessorChangeCallback";
    if MACHINE.kernel.processor_changes.registry.remove_where(|registered| registered.is_in(addresses)) > 0 {
        violation::other(format!("a driver was unloaded that had registered a callback, with {function}"));
    }
    if MACHINE
        .kernel
        .processor_changes
        .registry
        .wait_until_idle(nt::HANG_LIMIT, |registered| registered.is_in(addresses))
    {
        violation::other(format!("a driver was unloaded while its callback ran, of {function}"));
    }
}
