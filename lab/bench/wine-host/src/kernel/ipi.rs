//! KeIpiGenericCall: one thread for each processor. All processors enter the call before the first one runs the
//! routine.

#![expect(unsafe_code, reason = "calls a function of the driver")]

use crate::{
    cpu::{affinity, processor::Core, processors},
    kernel::{hal, irql, stepping},
    lock::lock,
    nt,
    nt::{IPI_LEVEL, Pointer},
    state::{
        ipi::{Call, Mail, Routine},
        machine::MACHINE,
    },
    violation::{self, catch_panic},
};
use bench_protocol::{StepEntry, Violation};
use std::{
    sync::{Arc, Barrier, atomic::Ordering},
    thread,
};

/// Starts the thread of each processor.
pub fn start() -> impl Iterator<Item = thread::JoinHandle<()>> {
    processors::possible().iter().zip(&MACHINE.kernel.ipi.mailboxes).map(|(core, mailbox)| {
        thread::spawn(move || {
            affinity::restrict(1 << core.number);
            while let Some(call) = mailbox.wait() {
                irql::run_at(IPI_LEVEL, || call.run(core));
            }
        })
    })
}

/// Returns the number of calls that each processor took part in.
pub fn taken() -> Vec<u64> {
    MACHINE.kernel.ipi.taken.iter().map(|taken| taken.load(Ordering::Relaxed)).collect()
}

pub fn stop() {
    for mailbox in &MACHINE.kernel.ipi.mailboxes {
        mailbox.post(Mail::Stop);
    }
}

impl Call {
    /// Runs the routine on one processor. A profile interrupt that is being handled there ends first, because its level
    /// is higher.
    fn run(&self, core: &Core) -> Pointer {
        let thread = nt::current_thread();
        if let Some(taken) = usize::try_from(core.number).ok().and_then(|number| MACHINE.kernel.ipi.taken.get(number)) {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        core.ipi.acquire(thread);
        core.high_level.wait_until_free(thread);
        self.begin.wait();
        // SAFETY: the driver passed this routine and argument, and waits for the call.
        let result = unsafe { stepping::call(StepEntry::Ipi, self.routine as *const (), [self.argument, 0, 0, 0]) };
        let result = std::ptr::with_exposed_provenance_mut(result);
        // A profile interrupt that came meanwhile ran concurrently with the routine, and ends first as well.
        core.high_level.wait_until_free(thread);
        self.end.wait();
        core.ipi.release(thread);
        result
    }
}

/// Implements KeIpiGenericCall.
pub extern "system" fn generic_call(routine: Routine, argument: Pointer) -> Pointer {
    catch_panic("KeIpiGenericCall", std::ptr::null_mut(), || {
        let level = irql::current();
        if level >= IPI_LEVEL {
            // Real processors would wait for each other forever.
            let function = "KeIpiGenericCall".to_owned();
            violation::record(Violation::Level { function, level, allowed: IPI_LEVEL - 1 });
            return std::ptr::null_mut();
        }
        // Raise the level before taking the lock. A thread that is at this level here may wait for the lock, so a wait
        // for the level under the lock could deadlock.
        let before = irql::set(IPI_LEVEL);
        let one_at_a_time = lock(&MACHINE.kernel.ipi.calls);
        let cores = processors::active();
        let call = Call {
            routine,
            argument: argument.expose_provenance(),
            begin: Barrier::new(cores.len()),
            end: Barrier::new(cores.len()),
        };
        let call = Arc::new(call);
        let mut result = std::ptr::null_mut();
        processors::with_current(|here| {
            for (_, mailbox) in
                cores.iter().zip(&MACHINE.kernel.ipi.mailboxes).filter(|(core, _)| core.number != here.number)
            {
                mailbox.post(Mail::Call(Arc::clone(&call)));
            }
            result = call.run(here);
        });
        hal::all_processors_waited();
        drop(one_at_a_time);
        irql::set(before);
        result
    })
}
