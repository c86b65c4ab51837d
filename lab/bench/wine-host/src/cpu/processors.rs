//! The processors of the machine, by number and by thread, and their resets.

use crate::{
    cpu::{
        affinity,
        fair_lock::FairLock,
        pmi_signal::PmiSignal,
        processor::{Core, MemoryOf, ProcessorType, State},
        topology::MAX_PROCESSORS,
    },
    lock::lock,
    nt,
    state::machine::MACHINE,
};
use bench_protocol::Time;
use std::sync::{Mutex, atomic::AtomicBool};

/// Builds the machine. Returns false if the identity is unknown.
pub fn start(identity: &str, memory: MemoryOf) -> bool {
    let Some(identity) = cpuid_dumps::find(identity) else { return false };
    let processor_type = ProcessorType { identity, x2apic: false, memory };
    let cores = (0..MAX_PROCESSORS).map(|number| Core {
        number,
        high_level: FairLock::default(),
        dispatch_level: FairLock::default(),
        ipi: FairLock::default(),
        pmi: PmiSignal::default(),
        is_stepped: AtomicBool::new(false),
        running_handler: Mutex::new(None),
        state: Mutex::new(processor_type.reset_state(number)),
        time_mode: &MACHINE.time_mode,
        topology: &MACHINE.topology,
    });
    *lock(&MACHINE.processor_type) = Some(processor_type);
    MACHINE.cores.set(cores.collect()).is_ok() && reset(identity.name)
}

/// Replaces the machine by one with as many processors as Wine has. Returns false if the identity is unknown.
pub fn reset(identity: &str) -> bool {
    let Some(identity) = cpuid_dumps::find(identity) else { return false };
    let Some(processor_type) = *lock(&MACHINE.processor_type) else { return false };
    let count = nt::processor_count().min(MAX_PROCESSORS);
    MACHINE.topology.set_counts(count, count);
    rebuild(ProcessorType { identity, x2apic: false, ..processor_type });
    true
}

/// Resets every processor, with its APIC in x2APIC mode or not.
pub fn set_apic(x2apic: bool) {
    let processor_type = *lock(&MACHINE.processor_type);
    if let Some(processor_type) = processor_type {
        rebuild(ProcessorType { x2apic, ..processor_type });
    }
}

fn rebuild(processor_type: ProcessorType) {
    *lock(&MACHINE.processor_type) = Some(processor_type);
    for core in possible() {
        *lock(&core.state) = processor_type.reset_state(core.number);
    }
    // The threads of a core have adjacent numbers.
    for pair in possible().chunks_exact(2) {
        if let [first, second] = pair
            && let Some(state) = processor_type.second_thread(second.number, &lock(&first.state).processor)
        {
            *lock(&second.state) = state;
        }
    }
}

/// Resets and activates one more processor.
pub fn add() {
    let added = possible().get(active().len());
    if let (Some(core), Some(processor_type)) = (added, *lock(&MACHINE.processor_type)) {
        *lock(&core.state) = processor_type.reset_state(core.number);
        MACHINE.topology.set_active(core.number + 1);
        core.pmi.notify();
    }
}

/// Returns the active and the inactive processors.
pub fn possible() -> &'static [Core] {
    MACHINE.cores.get().map_or(&[], Vec::as_slice)
}

/// Returns the active processors.
pub fn active() -> &'static [Core] {
    let count = usize::try_from(MACHINE.topology.active()).unwrap_or_default();
    possible().get(..count).unwrap_or_default()
}

pub fn find(number: u32) -> Option<&'static Core> {
    active().get(usize::try_from(number).ok()?)
}

/// Calls `body` with the processor on which this thread runs.
pub fn with_current(body: impl FnOnce(&'static Core)) {
    if let Some(core) = find(affinity::current_processor()) {
        body(core);
    }
}

/// Calls `body` with the state of the processor on which this thread runs, and holds its HIGH_LEVEL lock meanwhile.
pub fn with_current_state<T>(body: impl FnOnce(u32, &mut State) -> T) -> Option<T> {
    let thread = nt::current_thread();
    loop {
        let core = find(affinity::current_processor())?;
        core.high_level.acquire(thread);
        // The thread may have moved during the wait.
        if affinity::current_processor() == core.number {
            let result = core.with(|state| body(core.number, state));
            core.high_level.release(thread);
            break Some(result);
        }
        core.high_level.release(thread);
    }
}

pub fn set_time(time: Time) {
    change_time(|| MACHINE.time_mode.set_real(time == Time::Real));
}

/// Changes the time mode.
pub fn change_time(change: impl FnOnce()) {
    for core in active() {
        core.with(|_| {}); // What happened until now is counted in the old way.
    }
    change();
    for core in active() {
        lock(&core.state).clock.restart();
    }
}
