//! The configuration of hardware counters for thread profiling, which Wine lacks.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    kernel::{call_stack, irql, threads},
    lock::lock,
    nt::{self, APC_LEVEL, NtStatus},
    state::{
        machine::MACHINE,
        threads::{Owner, ThreadState},
    },
    violation::{self, catch_panic},
};
use bench_protocol::{CounterOwner, HardwareCounters};
use scheduler::{ConfigureError, MAX_COUNTERS};
use std::sync::MutexGuard;

/// PMCCounter of HARDWARE_COUNTER_TYPE.
const PMC_COUNTER: u32 = 0;

/// HARDWARE_COUNTER.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HardwareCounter {
    kind: u32,
    reserved: u32,
    index: u64,
}

const _: () = assert!(size_of::<HardwareCounter>() == 16);

/// Returns the state without the threads that ended.
fn state() -> MutexGuard<'static, ThreadState> {
    let mut state = lock(&MACHINE.kernel.threads.state);
    threads::end_threads(&mut state);
    state
}

/// Implements KeSetHardwareCounterConfiguration. No counters clear the configuration.
pub unsafe extern "system" fn set(counters: *const HardwareCounter, count: u32) -> NtStatus {
    let function = "KeSetHardwareCounterConfiguration";
    catch_panic(function, nt::UNSUCCESSFUL, || {
        irql::check(function, APC_LEVEL);
        // A call that clears the configuration has no resource that could be missing.
        if count > 0 && call_stack::fails(function) {
            return nt::INSUFFICIENT_RESOURCES;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_COUNTERS || count > 0 && counters.is_null() {
            return nt::INVALID_PARAMETER;
        }
        let read = |place| {
            // SAFETY: the driver must pass that many counters.
            unsafe { counters.wrapping_add(place).read() }
        };
        let counters: Vec<HardwareCounter> = (0..count).map(read).collect();
        if counters.iter().any(|counter| counter.kind != PMC_COUNTER || counter.reserved != 0) {
            return nt::INVALID_PARAMETER;
        }
        let indexes: Vec<u64> = counters.iter().map(|counter| counter.index).collect();
        let changed = state().configure(Owner::Driver, &indexes);
        match changed {
            Ok(Some(Owner::Another)) => {
                violation::other(format!("{function} clears the configuration of another driver"));
                nt::SUCCESS
            }
            Ok(Some(Owner::Driver) | None) => nt::SUCCESS,
            Err(ConfigureError::TooMany) => nt::INVALID_PARAMETER,
            Err(ConfigureError::AlreadyEnabled) => nt::WMI_ALREADY_ENABLED,
        }
    })
}

/// Implements KeQueryHardwareCounterConfiguration.
pub unsafe extern "system" fn query(counters: *mut HardwareCounter, most: u32, count: *mut u32) -> NtStatus {
    let function = "KeQueryHardwareCounterConfiguration";
    catch_panic(function, nt::UNSUCCESSFUL, || {
        irql::check(function, APC_LEVEL);
        if count.is_null() {
            return nt::INVALID_PARAMETER;
        }
        let configured = state().scheduler.configured().to_vec();
        let number = u32::try_from(configured.len()).unwrap_or(u32::MAX);
        // SAFETY: the pointer is not null, so it must point to a variable of the driver.
        unsafe { count.write(number) };
        if number > most {
            return nt::BUFFER_TOO_SMALL;
        }
        for (place, index) in configured.into_iter().enumerate() {
            let counter = HardwareCounter { kind: PMC_COUNTER, reserved: 0, index };
            // SAFETY: the driver must pass room for `most` counters.
            unsafe { counters.wrapping_add(place).write(counter) };
        }
        nt::SUCCESS
    })
}

/// Configures counters as another driver, or clears them.
pub fn configure_as_another(counters: &[u64]) -> Result<(), String> {
    match state().configure(Owner::Another, counters) {
        Ok(_) => Ok(()),
        Err(ConfigureError::TooMany) => Err("there are too many counters".to_owned()),
        Err(ConfigureError::AlreadyEnabled) => Err("counters are configured, or a thread profiles".to_owned()),
    }
}

/// Sets whether a thread profiles that only the test knows.
pub fn pretend_profiling(pretends: bool) {
    state().pretends_profiling = pretends;
}

/// Returns the configuration.
pub fn configuration() -> HardwareCounters {
    let state = state();
    let owner = state.owner().map(|owner| match owner {
        Owner::Driver => CounterOwner::Driver,
        Owner::Another => CounterOwner::Another,
    });
    let profiling = state.scheduler.profiling() + usize::from(state.pretends_profiling);
    HardwareCounters { owner, counters: state.scheduler.configured().to_vec(), profiling }
}

/// Reports and clears the configuration of an unloaded driver: its counters stop, and Windows goes on to read them.
pub fn image_unloaded() {
    if state().forget_driver() {
        violation::other("a driver was unloaded that had configured hardware counters for thread profiling");
    }
}
