//! Threads that drivers make, with an account: nobody else tells that one runs on in a driver that is gone.

#![expect(unsafe_code, reason = "calls functions of the driver, and hands calls on to Wine")]

use crate::{
    failing, level, lock, nt,
    nt::{NtStatus, PASSIVE_LEVEL, Pointer},
    violation::{self, caught},
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::Range,
    ptr,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn PsCreateSystemThread(
        thread: Pointer,
        access: u32,
        attributes: Pointer,
        process: Pointer,
        client: Pointer,
        routine: Routine,
        context: Pointer,
    ) -> NtStatus;
    fn PsTerminateSystemThread(status: NtStatus) -> NtStatus;
}

type Routine = unsafe extern "system" fn(Pointer);

/// What a thread is to run.
struct Start {
    routine: Routine,
    context: Pointer,
}

/// The routines of those that did not end, by where their [`Start`] was.
static RUNNING: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

static ENDED: Condvar = Condvar::new();

/// How long a driver that is gone may still run before the lab goes on.
const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    /// Where the start of this thread was.
    static START: Cell<usize> = const { Cell::new(0) };
}

/// PsCreateSystemThread.
pub unsafe extern "system" fn create(
    thread: Pointer,
    access: u32,
    attributes: Pointer,
    process: Pointer,
    client: Pointer,
    routine: Routine,
    context: Pointer,
) -> NtStatus {
    caught("PsCreateSystemThread", nt::UNSUCCESSFUL, || {
        level::check("PsCreateSystemThread", PASSIVE_LEVEL);
        if failing::hits("PsCreateSystemThread") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        let start = Box::into_raw(Box::new(Start { routine, context }));
        lock(&RUNNING).insert(start.addr(), (routine as *const ()).addr());
        // SAFETY: as the driver called it, but for what it runs, which gets what it takes.
        let status = unsafe { PsCreateSystemThread(thread, access, attributes, process, client, begin, start.cast()) };
        if status < 0 {
            lock(&RUNNING).remove(&start.addr());
            // SAFETY: made above, and nobody else has it.
            drop(unsafe { Box::from_raw(start) });
        }
        status
    })
}

/// A thread of a driver.
unsafe extern "system" fn begin(start: Pointer) {
    START.set(start.expose_provenance());
    // SAFETY: what `create` made for this thread alone, which keeps it as long as it runs.
    let Start { routine, context } = unsafe { start.cast::<Start>().read() };
    // SAFETY: the driver gave this routine with this context.
    unsafe { routine(context) };
    ended();
}

fn ended() {
    caught("the end of a thread", (), || {
        if level::current() != PASSIVE_LEVEL {
            violation::other(format!("a thread of a driver ends at IRQL {}", level::current()));
        }
        let start: *mut Start = ptr::with_exposed_provenance_mut(START.take());
        if !start.is_null() {
            lock(&RUNNING).remove(&start.addr());
            ENDED.notify_all();
            // SAFETY: what `create` made for this thread, which gives it back once.
            drop(unsafe { Box::from_raw(start) });
        }
    });
}

/// PsTerminateSystemThread: ends this thread, so that nothing may wait for it to return from here.
pub unsafe extern "system" fn terminate(status: NtStatus) -> NtStatus {
    ended();
    // SAFETY: as the driver called it.
    unsafe { PsTerminateSystemThread(status) }
}

/// A driver is gone; threads of it that still run are noted.
pub fn image_unloaded(addresses: &Range<usize>) {
    let run = |running: &mut BTreeMap<usize, usize>| running.values().any(|routine| addresses.contains(routine));
    let mut running = lock(&RUNNING);
    if run(&mut running) {
        violation::other("a driver was unloaded while a thread of it ran");
        // Its code goes when this returns: the lab goes on if the threads end.
        let ended = ENDED.wait_timeout_while(running, PATIENCE, run);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }
}
