//! The functions that shim.sys calls.

#![expect(unsafe_code, reason = "exports by name")]

use crate::{
    control::server,
    cpu::processors,
    kernel::{deferred, ds_memory::DsMemory, exceptions, interrupt, ipi, loaded_images, step_trap},
    loader::{driver_load, hook},
    lock::lock,
    nt::{self, NtStatus},
    state::machine::MACHINE,
    violation::catch_panic,
};
use std::thread::JoinHandle;

/// The identity that is used if the file `identity` names none.
const DEFAULT_IDENTITY: &str = "amd-legacy";

/// The status with which shim.sys gives up its reference to the library: the lab already runs.
const RUNS_ALREADY: NtStatus = 1;

/// Starts the lab. Returns another success code if it already runs, because it outlived its shim.
#[unsafe(no_mangle)]
pub extern "system" fn lab_start() -> NtStatus {
    catch_panic("lab_start", nt::UNSUCCESSFUL, || {
        let mut threads = lock(&MACHINE.control.threads);
        if threads.is_some() {
            return RUNS_ALREADY;
        }
        let text = std::fs::read_to_string(format!("{}\\identity", server::FOLDER)).unwrap_or_default();
        let identity = if text.trim().is_empty() { DEFAULT_IDENTITY } else { text.trim() };
        if !processors::start(identity, |number| Box::new(DsMemory { processor: number })) {
            nt::print(&format!("there is no identity {identity}"));
            return nt::NOT_FOUND;
        }
        match server::start() {
            Ok(server) => {
                let running = threads.insert(vec![server]);
                running.extend(processors::possible().iter().map(interrupt::start));
                running.extend(ipi::start());
                running.extend(deferred::start());
            }
            Err(error) => {
                nt::print(&format!("no port for the tests: {error}"));
                return nt::UNSUCCESSFUL;
            }
        }
        let status = if exceptions::start() && hook::start() { driver_load::start() } else { nt::UNSUCCESSFUL };
        if status < 0 {
            stop(threads.take());
        } else {
            nt::print(&format!("{} processors, {identity}", processors::active().len()));
        }
        status
    })
}

/// Stops the lab, so that the library can be unloaded. Fails while a driver is loaded, because the driver needs the
/// lab.
#[unsafe(no_mangle)]
pub extern "system" fn lab_stop() -> NtStatus {
    catch_panic("lab_stop", nt::UNSUCCESSFUL, || {
        if !loaded_images::names().is_empty() {
            nt::print("not stopped, because a driver is loaded");
            return nt::UNSUCCESSFUL;
        }
        stop(lock(&MACHINE.control.threads).take());
        nt::print("stopped");
        nt::SUCCESS
    })
}

fn stop(threads: Option<Vec<JoinHandle<()>>>) {
    driver_load::stop();
    hook::stop();
    exceptions::stop();
    step_trap::stop();
    interrupt::stop();
    ipi::stop();
    deferred::stop();
    server::stop();
    for thread in threads.into_iter().flatten() {
        if thread.join().is_err() {
            nt::print("a thread of the lab panicked");
        }
    }
}
