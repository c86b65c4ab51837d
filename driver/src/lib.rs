//! halprof.sys: the HAL's hardware performance counter profiling as a WDM driver.
//!
//! This crate is a thin shell around [`engine`]: it creates the device, forwards requests, and gives the engine access
//! to the processors. All unsafe code of halprof that runs in the kernel is here and in [`interrupt_path`], except that
//! of `sample-ring`. Each Windows facility has a file under `nt`, and all assembly is in `cpu/` and in
//! `interrupt_path`. This crate is compiled for size.

#![no_std]

extern crate alloc;
extern crate wdk_panic;

mod cpu;
mod device;
mod interrupt;
mod kernel;
mod layout;
mod nt;
mod tracing;
mod waiting;

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING, PDRIVER_OBJECT, STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS,
};

use device::{Device, ENGINE};
use driver_core::Parts;
use engine::Engine;
use interrupt_path::dpc::{self, Dpc};
use interrupt_path::{sampler, waker};
use kernel::Kernel;
use nt::aligned::Aligned;
use nt::power::PowerState;
use nt::processor_change::{Change, ProcessorChange};
use nt::system_thread::SystemThread;
use nt::{clock, processors};
use protocol::DriverIdentity;

/// Serves waiting requests and accumulates the counts at regular intervals.
static WORKER: SystemThread = SystemThread::new(work);

/// Wakes the thread that serves waiting requests.
static WAKE: Dpc = Dpc::new(wake);

/// Stops the counters before sleep and restarts them afterwards.
static POWER_STATE: PowerState = PowerState::new(interrupt::power_changed);

/// Extends sessions to processors that are added.
static PROCESSOR_CHANGE: ProcessorChange = ProcessorChange::new(processors_change);

/// Maximum time between two reads of the counters, in units of 100 ns. No counter may wrap unnoticed: at ten events per
/// nanosecond, a 40-bit counter wraps after almost two minutes.
const READ_PERIOD: u64 = 10 * 10_000_000;

/// Time of the last read, in units of 100 ns.
static LAST_READ: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Aligned<WdkAllocator> = Aligned(WdkAllocator);

/// Version of the driver: major, minor, patch, zero.
const VERSION: engine::Version = [
    decimal(env!("CARGO_PKG_VERSION_MAJOR")),
    decimal(env!("CARGO_PKG_VERSION_MINOR")),
    decimal(env!("CARGO_PKG_VERSION_PATCH")),
    0,
];

/// Tells the client, which reads it from the file, that this is halprof's driver, and its protocol version.
#[expect(unsafe_code, reason = "the section has no other contents, and the loader gives it no meaning")]
#[unsafe(link_section = ".halprof")] // protocol::IDENTITY_SECTION
static IDENTITY: DriverIdentity = DriverIdentity::CURRENT;

const fn decimal(text: &str) -> u16 {
    match u16::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => u16::MAX,
    }
}

/// Entry point, called by the I/O manager in the System process. Creates the engine, then the device. It accesses no
/// performance monitoring register; those wait until a client starts a session.
///
/// # Errors
/// The NTSTATUS of the call that failed. Everything is undone, and the driver is not loaded.
///
/// # IRQL
/// PASSIVE_LEVEL.
#[expect(unsafe_code, reason = "the I/O manager finds the entry point by its name, which no other symbol has")]
#[unsafe(export_name = "DriverEntry")]
#[unsafe(link_section = "INIT")] // Windows discards this section after the call
extern "system" fn driver_entry(driver: &mut DRIVER_OBJECT, registry_path: PCUNICODE_STRING) -> NTSTATUS {
    black_box(&IDENTITY); // without a use, the linker drops it
    ENGINE.initialize();
    waker::initialize(&WAKE);
    if create_engine(registry_path).is_none() {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    tracing::register();
    let made = WORKER
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
            driver_core::take_down(&Driver);
            status
        }
    }
}

/// Creates the engine. Returns `None` if memory is low.
///
/// # IRQL
/// PASSIVE_LEVEL.
#[inline(never)] // its stack must not be in use while a load that fails is undone
fn create_engine(registry_path: PCUNICODE_STRING) -> Option<()> {
    let kernel = Kernel::new(registry_path)?;
    let engine = Engine::new(kernel, VERSION).ok()?;
    sampler::publish(engine.sampler()); // a separate allocation: the engine may move
    *ENGINE.lock() = Some(engine);
    Some(())
}

/// Notifies the engine of a processor that is added.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn processors_change(change: Change) {
    if let Some(engine) = ENGINE.lock().as_mut() {
        match change {
            Change::Begins => engine.before_processor(),
            Change::Added(processor) => engine.add_processor(processor),
            Change::Failed => engine.add_no_processor(),
        }
    }
}

/// Serves waiting requests and accumulates due counts. Returns the time until the next call, in units of 100 ns.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn work() -> u64 {
    let mut engine = ENGINE.lock();
    let Some(engine) = engine.as_mut() else { return READ_PERIOD };
    let now = clock::now().0;
    if now.saturating_sub(LAST_READ.load(Ordering::Relaxed)) >= READ_PERIOD {
        engine.accumulate_counts();
        LAST_READ.store(now, Ordering::Relaxed);
    }
    let deadline = waiting::go_on(engine);
    deadline.map_or(READ_PERIOD, |deadline| deadline.saturating_sub(clock::now().0).min(READ_PERIOD))
}

/// Wakes the thread to serve waiting requests. The device must exist.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
fn wake() {
    WORKER.wake();
}

/// Unload routine, called by the I/O manager. It removes the name first, so that the device cannot be opened any more,
/// and deletes the device last, because the work items of the System process belong to it.
///
/// # IRQL
/// PASSIVE_LEVEL.
extern "C" fn unload(driver: PDRIVER_OBJECT) {
    Device::unlink();
    waiting::cancel(None);
    driver_core::take_down(&Driver);
    Device::delete(driver);
}

/// The parts of the driver that call the engine.
struct Driver;

impl Parts for Driver {
    type Engine = Engine<Kernel>;

    fn unregister_callbacks(&self) {
        PROCESSOR_CHANGE.unregister();
        POWER_STATE.unregister();
    }

    fn stop_worker(&self) {
        WORKER.stop();
    }

    fn take_engine(&self) -> Option<Engine<Kernel>> {
        ENGINE.lock().take()
    }

    fn shut_down(&self, engine: &mut Engine<Kernel>) {
        engine.shut_down();
    }

    fn flush_dpcs(&self) {
        dpc::flush();
    }

    fn unregister_provider(&self) {
        tracing::unregister();
    }

    fn withdraw(&self) {
        sampler::withdraw();
        processors::wait_for_interrupts();
    }
}
