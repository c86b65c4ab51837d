//! The DPC functions. Wine's never run the routines.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::affinity,
    kernel::{
        call_stack, deferred,
        dispatcher_objects::{self, Kdpc},
        irql,
        processor_numbers::ProcessorNumber,
    },
    nt::{self, APC_LEVEL, DISPATCH_LEVEL, NtStatus, Pointer},
    state::dpc_queues::{QueuedBy, Unknown},
    violation::{self, catch_panic},
};

/// HighImportance of KDPC_IMPORTANCE, which queues a DPC at the front.
const HIGH: i32 = 2;

fn unknown(function: &str, dpc: Pointer) {
    violation::other(format!("{function} of {dpc:p}, which is not an initialized DPC"));
}

fn initialize_as(function: &str, kind: u8, dpc: Pointer, routine: Pointer, context: Pointer) {
    let Some(address) = dispatcher_objects::address_of(dpc) else { return unknown(function, dpc) };
    let (routine, context) = (routine.expose_provenance(), context.expose_provenance());
    let free = deferred::change(|work| {
        let free = work.dpcs.initialize(address, routine, context);
        if free {
            // SAFETY: the driver must pass memory for a DPC. It is registered, and this thread holds the lock of the
            // deferred work.
            let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(address) };
            object.initialize(kind, routine, context);
        }
        free
    });
    if !free {
        violation::other(format!("{function} of {dpc:p}, which is queued"));
    }
}

/// Implements KeInitializeDpc.
pub unsafe extern "system" fn initialize(dpc: Pointer, routine: Pointer, context: Pointer) {
    catch_panic("KeInitializeDpc", (), || {
        initialize_as("KeInitializeDpc", dispatcher_objects::DPC, dpc, routine, context);
    });
}

/// Implements KeInitializeThreadedDpc. The routine runs at DISPATCH_LEVEL, as Windows may run it.
pub unsafe extern "system" fn initialize_threaded(dpc: Pointer, routine: Pointer, context: Pointer) {
    let function = "KeInitializeThreadedDpc";
    catch_panic(function, (), || initialize_as(function, dispatcher_objects::THREADED_DPC, dpc, routine, context));
}

/// Implements KeSetTargetProcessorDpcEx.
pub unsafe extern "system" fn set_target(dpc: Pointer, number: *const ProcessorNumber) -> NtStatus {
    catch_panic("KeSetTargetProcessorDpcEx", nt::UNSUCCESSFUL, || {
        // SAFETY: the driver must pass a number that can be read.
        let number = unsafe { number.read() };
        let hit = call_stack::fails("KeSetTargetProcessorDpcEx");
        let Some(processor) = number.index().filter(|_| !hit) else { return nt::INVALID_PARAMETER };
        if deferred::change(|work| work.dpcs.set_target(dpc.addr(), processor)) == Err(Unknown) {
            unknown("KeSetTargetProcessorDpcEx", dpc);
            return nt::INVALID_PARAMETER;
        }
        nt::SUCCESS
    })
}

/// Implements KeSetImportanceDpc. Only high importance has an effect, because the lab delays no DPC.
pub unsafe extern "system" fn set_importance(dpc: Pointer, importance: i32) {
    catch_panic("KeSetImportanceDpc", (), || {
        let set = deferred::change(|work| {
            work.dpcs.set_urgent(dpc.addr(), importance == HIGH)?;
            // SAFETY: the DPC is registered, and this thread holds the lock of the deferred work.
            let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(dpc.addr()) };
            object.importance = u8::try_from(importance).unwrap_or_default();
            Ok(())
        });
        if set == Err(Unknown) {
            unknown("KeSetImportanceDpc", dpc);
        }
    });
}

/// Implements KeInsertQueueDpc. The routine runs after the return, even below DISPATCH_LEVEL.
pub extern "system" fn insert(dpc: Pointer, first: Pointer, second: Pointer) -> u8 {
    catch_panic("KeInsertQueueDpc", 0, || {
        let queued_by = QueuedBy::Driver([first, second].map(Pointer::expose_provenance));
        let inserted = deferred::change(|work| work.insert(dpc.addr(), affinity::current_processor(), queued_by));
        if inserted.is_none() {
            unknown("KeInsertQueueDpc", dpc);
        }
        u8::from(inserted == Some(true))
    })
}

/// Implements KeRemoveQueueDpc.
pub unsafe extern "system" fn remove(dpc: Pointer) -> u8 {
    catch_panic("KeRemoveQueueDpc", 0, || {
        let removed = deferred::change(|work| {
            let removed = work.dpcs.remove(dpc.addr())?;
            // SAFETY: the DPC is registered, and this thread holds the lock of the deferred work.
            let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(dpc.addr()) };
            object.taken();
            Ok(removed)
        });
        if removed == Err(Unknown) {
            unknown("KeRemoveQueueDpc", dpc);
        }
        u8::from(removed == Ok(true))
    })
}

/// Implements KeFlushQueuedDpcs. It is documented for PASSIVE_LEVEL; at APC_LEVEL, under a mutex, it works as well.
pub extern "system" fn flush() {
    catch_panic("KeFlushQueuedDpcs", (), || {
        irql::check("KeFlushQueuedDpcs", APC_LEVEL);
        // At a higher level, this would wait for routines that wait for this thread.
        if irql::current() < DISPATCH_LEVEL {
            deferred::flush();
        }
    });
}
