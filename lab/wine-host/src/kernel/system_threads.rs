//! Threads that drivers make, with an account of which still run: Wine does not tell that one runs in a driver that is
//! gone. A thread begins as late as Windows may begin it, see [`StartState`].

#![expect(unsafe_code, reason = "calls functions of the driver, and hands calls on to Wine")]

use crate::{
    fault_injection,
    kernel::irql,
    lock::lock,
    nt,
    nt::{NtStatus, PASSIVE_LEVEL, Pointer},
    violation::{self, catch_panic},
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
    fn ObReferenceObjectByHandle(
        handle: Pointer,
        access: u32,
        kind: Pointer,
        mode: i8,
        object: *mut Pointer,
        information: Pointer,
    ) -> NtStatus;
    fn ZwClose(handle: Pointer) -> NtStatus;
    fn ZwWaitForSingleObject(handle: Pointer, alertable: u8, timeout: *const i64) -> NtStatus;
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

/// When a new thread begins to run. The moment is Windows' choice; the lab takes the latest one that does not depend on
/// what else runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartState {
    /// At once.
    Now,
    /// When its driver has referenced or closed a handle.
    Referenced,
    /// When its driver waits for a handle or is gone: the reference that the driver asked for has failed.
    WaitedFor,
}

static START_STATE: Mutex<StartState> = Mutex::new(StartState::Now);
static START_CHANGED: Condvar = Condvar::new();

/// Moves on from one state to the next; other states stay.
fn advance(from: &[StartState], to: StartState) {
    let mut begin = lock(&START_STATE);
    if from.contains(&*begin) {
        *begin = to;
        START_CHANGED.notify_all();
    }
}

/// How long a driver that is gone may still run before the lab goes on.
const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    /// Where the start of this thread was.
    static THIS_START: Cell<usize> = const { Cell::new(0) };
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
    catch_panic("PsCreateSystemThread", nt::UNSUCCESSFUL, || {
        irql::check("PsCreateSystemThread", PASSIVE_LEVEL);
        if fault_injection::fails("PsCreateSystemThread") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        let start = Box::into_raw(Box::new(Start { routine, context }));
        lock(&RUNNING).insert(start.addr(), (routine as *const ()).addr());
        advance(&[StartState::Now], StartState::Referenced);
        // SAFETY: as the driver called it, but for what it runs, which gets what it takes.
        let status = unsafe { PsCreateSystemThread(thread, access, attributes, process, client, begin, start.cast()) };
        if status < 0 {
            lock(&RUNNING).remove(&start.addr());
            advance(&[StartState::Referenced], StartState::Now);
            // SAFETY: made above, and nobody else has it.
            drop(unsafe { Box::from_raw(start) });
        }
        status
    })
}

/// A thread of a driver.
unsafe extern "system" fn begin(start: Pointer) {
    THIS_START.set(start.expose_provenance());
    let held = |begin: &mut StartState| *begin != StartState::Now;
    drop(START_CHANGED.wait_while(lock(&START_STATE), held).unwrap_or_else(PoisonError::into_inner));
    // SAFETY: what `create` made for this thread alone, which keeps it as long as it runs.
    let Start { routine, context } = unsafe { start.cast::<Start>().read() };
    // SAFETY: the driver gave this routine with this context.
    unsafe { routine(context) };
    ended();
}

fn ended() {
    catch_panic("the end of a thread", (), || {
        if irql::current() != PASSIVE_LEVEL {
            violation::other(format!("a thread of a driver ends at IRQL {}", irql::current()));
        }
        let start: *mut Start = ptr::with_exposed_provenance_mut(THIS_START.take());
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

/// How many have not ended.
pub fn running() -> usize {
    lock(&RUNNING).len()
}

/// ObReferenceObjectByHandle.
pub unsafe extern "system" fn reference(
    handle: Pointer,
    access: u32,
    kind: Pointer,
    mode: i8,
    object: *mut Pointer,
    information: Pointer,
) -> NtStatus {
    catch_panic("ObReferenceObjectByHandle", nt::UNSUCCESSFUL, || {
        irql::check("ObReferenceObjectByHandle", PASSIVE_LEVEL);
        if fault_injection::fails("ObReferenceObjectByHandle") {
            advance(&[StartState::Referenced], StartState::WaitedFor);
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: as the driver called it.
        let status = unsafe { ObReferenceObjectByHandle(handle, access, kind, mode, object, information) };
        advance(&[StartState::Referenced], StartState::Now);
        status
    })
}

/// ZwClose.
pub unsafe extern "system" fn close(handle: Pointer) -> NtStatus {
    catch_panic("ZwClose", (), || {
        irql::check("ZwClose", PASSIVE_LEVEL);
        advance(&[StartState::Referenced], StartState::Now);
    });
    // SAFETY: as the driver called it.
    unsafe { ZwClose(handle) }
}

/// ZwWaitForSingleObject.
pub unsafe extern "system" fn wait(handle: Pointer, alertable: u8, timeout: *const i64) -> NtStatus {
    catch_panic("ZwWaitForSingleObject", (), || {
        irql::check("ZwWaitForSingleObject", PASSIVE_LEVEL);
        advance(&[StartState::Referenced, StartState::WaitedFor], StartState::Now);
    });
    // SAFETY: as the driver called it.
    unsafe { ZwWaitForSingleObject(handle, alertable, timeout) }
}

/// A driver is gone; threads of it that still run are noted.
pub fn image_unloaded(addresses: &Range<usize>) {
    let run = |running: &mut BTreeMap<usize, usize>| running.values().any(|routine| addresses.contains(routine));
    let mut running = lock(&RUNNING);
    if run(&mut running) {
        violation::other("a driver was unloaded while a thread of it ran");
        advance(&[StartState::Referenced, StartState::WaitedFor], StartState::Now);
        // Its code goes when this returns: the lab goes on if the threads end.
        let ended = ENDED.wait_timeout_while(running, PATIENCE, run);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }
}
