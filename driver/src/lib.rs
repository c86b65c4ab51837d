//! halprof.sys: the HAL's hardware performance counter profiling as a WDM driver.
//!
//! This crate is the thin shell around [`engine`]: it makes the device, hands requests over, and lends the
//! processors. What is unsafe about the kernel is here and nowhere else, one file for each facility of
//! Windows under `nt`, and every instruction that takes assembler in `cpu.rs`.

#![no_std]

extern crate alloc;
extern crate wdk_panic;

mod cpu;
mod device;
mod interrupt;
mod kernel;
mod layout;
mod nt;
mod waiting;

use core::sync::atomic::{AtomicU64, Ordering};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING, PDRIVER_OBJECT, STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS,
};

use device::{Device, ENGINE};
use engine::Engine;
use kernel::Kernel;
use nt::clock;
use nt::power::PowerState;
use nt::processor_change::ProcessorChange;
use nt::system_thread::SystemThread;
use pmu::ProcessorIndex;

/// Serves the requests that wait, and follows the counters.
static ATTENDANT: SystemThread = SystemThread::new(work);

/// Stops and starts the counters around a sleep.
static POWER_STATE: PowerState = PowerState::new(interrupt::power_changed);

/// Takes sessions to processors that are added.
static PROCESSOR_CHANGE: ProcessorChange = ProcessorChange::new(add_processor);

/// Units of 100 ns after which counters have to be followed, so that none can wrap unseen: one of 40 bits takes minutes
/// for that, even at ten events a nanosecond.
const FOLLOW: u64 = 10 * 10_000_000;

/// When they were last followed.
static FOLLOWED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// Version of the driver: major, minor, patch, zero.
const VERSION: engine::Version = [
    decimal(env!("CARGO_PKG_VERSION_MAJOR")),
    decimal(env!("CARGO_PKG_VERSION_MINOR")),
    decimal(env!("CARGO_PKG_VERSION_PATCH")),
    0,
];

const fn decimal(text: &str) -> u16 {
    match u16::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => u16::MAX,
    }
}

/// The I/O manager's first call, at PASSIVE_LEVEL in the System process: the engine, then the device. No
/// register is touched before a client starts something.
///
/// # Errors
/// The NTSTATUS of what failed; everything made before it is given back, and the driver is not loaded.
#[expect(unsafe_code, reason = "the I/O manager finds the entry point by its name, which no other symbol has")]
#[unsafe(export_name = "DriverEntry")]
#[unsafe(link_section = "INIT")] // which Windows throws away once it has returned
extern "system" fn driver_entry(driver: &mut DRIVER_OBJECT, _registry_path: PCUNICODE_STRING) -> NTSTATUS {
    ENGINE.initialize();
    interrupt::initialize();
    let Ok(engine) = Engine::new(Kernel::default(), VERSION) else { return STATUS_INSUFFICIENT_RESOURCES };
    interrupt::publish(engine.sampler()); // in memory of its own: the engine may move
    *ENGINE.lock() = Some(engine);
    let made = ATTENDANT
        .start()
        .and_then(|()| POWER_STATE.register())
        .and_then(|()| PROCESSOR_CHANGE.register())
        .and_then(|()| Device::create(driver));
    match made {
        Ok(()) => {
            driver.DriverUnload = Some(unload);
            STATUS_SUCCESS
        }
        Err(status) => {
            take_down();
            status
        }
    }
}

/// A processor was added. PASSIVE_LEVEL.
fn add_processor(processor: ProcessorIndex) {
    if let Some(engine) = ENGINE.lock().as_mut() {
        engine.add_processor(processor);
    }
}

/// PASSIVE_LEVEL. Answers the units of 100 ns until it has to be called again.
fn work() -> u64 {
    let mut engine = ENGINE.lock();
    let Some(engine) = engine.as_mut() else { return FOLLOW };
    let now = clock::now();
    if now.saturating_sub(FOLLOWED.load(Ordering::Relaxed)) >= FOLLOW {
        engine.accumulate_counts();
        FOLLOWED.store(now, Ordering::Relaxed);
    }
    let deadline = waiting::go_on(engine);
    deadline.map_or(FOLLOW, |deadline| deadline.saturating_sub(clock::now()).min(FOLLOW))
}

/// Somebody may have waited for what happened. DISPATCH_LEVEL at most, while the device is there.
fn wake() {
    ATTENDANT.wake();
}

/// The I/O manager's last call, at PASSIVE_LEVEL: nobody can open the device any more, then all that is behind it goes,
/// and the device last, since work in the System process is done in its name.
extern "C" fn unload(driver: PDRIVER_OBJECT) {
    Device::unlink();
    waiting::cancel(None);
    take_down();
    Device::delete(driver);
}

/// Who calls from outside calls no more, then the thread ends, then every session stops, then the memory goes.
/// PASSIVE_LEVEL.
fn take_down() {
    PROCESSOR_CHANGE.unregister();
    POWER_STATE.unregister();
    ATTENDANT.stop();
    // Taken out of the lock: what the engine still has of the kernel can be given back at PASSIVE_LEVEL only.
    let engine = ENGINE.lock().take();
    if let Some(mut engine) = engine {
        engine.shut_down();
        interrupt::withdraw();
    }
}
