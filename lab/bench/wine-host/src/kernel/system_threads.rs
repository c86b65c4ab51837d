//! System threads of drivers. Wine does not report a thread that still runs in an unloaded driver. A thread starts as
//! late as Windows may start it, see [`StartState`].

#![expect(unsafe_code, reason = "calls functions of the driver, and hands calls on to Wine")]

use crate::{
    kernel::{call_stack, irql},
    lock::lock,
    nt::{self, NtStatus, PASSIVE_LEVEL, Pointer},
    state::{machine::MACHINE, system_threads::StartState},
    violation::{self, catch_panic},
};
use std::{cell::Cell, collections::BTreeMap, ops::Range, ptr, sync::PoisonError};

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

/// The routine of a thread and its context.
struct Start {
    routine: Routine,
    context: Pointer,
}

thread_local! {
    /// The address of this thread's [`Start`].
    static THIS_START: Cell<usize> = const { Cell::new(0) };
}

/// Implements PsCreateSystemThread.
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
        if call_stack::fails("PsCreateSystemThread") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        let start = Box::into_raw(Box::new(Start { routine, context }));
        lock(&MACHINE.kernel.system_threads.running).insert(start.addr(), (routine as *const ()).addr());
        MACHINE.kernel.system_threads.advance(&[StartState::Now], StartState::Referenced);
        // SAFETY: the arguments are the driver's own, except for the routine and its matching context.
        let status = unsafe { PsCreateSystemThread(thread, access, attributes, process, client, begin, start.cast()) };
        if status < 0 {
            lock(&MACHINE.kernel.system_threads.running).remove(&start.addr());
            MACHINE.kernel.system_threads.advance(&[StartState::Referenced], StartState::Now);
            // SAFETY: allocated above, and no thread has received it.
            drop(unsafe { Box::from_raw(start) });
        }
        status
    })
}

/// Runs a thread of a driver.
unsafe extern "system" fn begin(start: Pointer) {
    THIS_START.set(start.expose_provenance());
    MACHINE.kernel.system_threads.wait_for_start();
    // SAFETY: `create` allocated it for this thread alone, which frees it at its end.
    let Start { routine, context } = unsafe { start.cast::<Start>().read() };
    // SAFETY: the driver passed this routine with this context.
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
            lock(&MACHINE.kernel.system_threads.running).remove(&start.addr());
            MACHINE.kernel.system_threads.ended.notify_all();
            // SAFETY: `create` allocated it for this thread, which frees it once.
            drop(unsafe { Box::from_raw(start) });
        }
    });
}

/// Implements PsTerminateSystemThread. It does not return.
pub unsafe extern "system" fn terminate(status: NtStatus) -> NtStatus {
    ended();
    // SAFETY: the arguments are the driver's own.
    unsafe { PsTerminateSystemThread(status) }
}

/// Returns the number of running threads.
pub fn running() -> usize {
    lock(&MACHINE.kernel.system_threads.running).len()
}

/// Implements ObReferenceObjectByHandle.
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
        if call_stack::fails("ObReferenceObjectByHandle") {
            MACHINE.kernel.system_threads.advance(&[StartState::Referenced], StartState::WaitedFor);
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the arguments are the driver's own.
        let status = unsafe { ObReferenceObjectByHandle(handle, access, kind, mode, object, information) };
        MACHINE.kernel.system_threads.advance(&[StartState::Referenced], StartState::Now);
        status
    })
}

/// Implements ZwClose.
pub unsafe extern "system" fn close(handle: Pointer) -> NtStatus {
    catch_panic("ZwClose", (), || {
        irql::check("ZwClose", PASSIVE_LEVEL);
        MACHINE.kernel.system_threads.advance(&[StartState::Referenced], StartState::Now);
    });
    // SAFETY: the arguments are the driver's own.
    unsafe { ZwClose(handle) }
}

/// Implements ZwWaitForSingleObject.
pub unsafe extern "system" fn wait(handle: Pointer, alertable: u8, timeout: *const i64) -> NtStatus {
    catch_panic("ZwWaitForSingleObject", (), || {
        irql::check("ZwWaitForSingleObject", PASSIVE_LEVEL);
        MACHINE.kernel.system_threads.advance(&[StartState::Referenced, StartState::WaitedFor], StartState::Now);
    });
    // SAFETY: the arguments are the driver's own.
    unsafe { ZwWaitForSingleObject(handle, alertable, timeout) }
}

/// Reports threads of an unloaded driver that still run.
pub fn image_unloaded(addresses: &Range<usize>) {
    let run = |running: &mut BTreeMap<usize, usize>| running.values().any(|routine| addresses.contains(routine));
    let mut running = lock(&MACHINE.kernel.system_threads.running);
    if run(&mut running) {
        violation::other("a driver was unloaded while a thread of it ran");
        MACHINE.kernel.system_threads.advance(&[StartState::Referenced, StartState::WaitedFor], StartState::Now);
        // The code is unmapped when this returns. The lab survives if the threads end first.
        let ended = MACHINE.kernel.system_threads.ended.wait_timeout_while(running, nt::HANG_LIMIT, run);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }
}
