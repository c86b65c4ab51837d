//! The profile interrupt: one thread for each processor calls the registered handler.

#![expect(unsafe_code, reason = "calls a function of the driver")]

use crate::{
    cpu::{
        affinity, lvt,
        pmi_handler::{Routine, TrapFrame},
        processor::Core,
        processors,
    },
    kernel::{current_ids, hal, irql, stepping, time},
    nt,
    nt::HIGH_LEVEL,
    violation::{self, catch_panic},
};
use bench_protocol::{InterruptSite, StepEntry};
use std::{ptr, sync::atomic::Ordering, thread};

/// Vector (bits 7:0) and delivery mode (bits 10:8) of the LVT entry.
const LVT_TARGET: u32 = 0x7FF;

/// Starts the thread of a processor.
pub fn start(core: &'static Core) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        affinity::restrict(1 << core.number);
        while let Some(request) = core.pmi.wait(core.until_interrupt()) {
            if !core.is_stepped.load(Ordering::SeqCst) {
                catch_panic("an interrupt", (), || deliver(core));
            }
            core.pmi.handled(request);
        }
    })
}

pub fn stop() {
    for core in processors::possible() {
        core.pmi.stop();
    }
}

/// Delivers the pending interrupt, if it is not masked, as soon as no thread holds the HIGH_LEVEL lock.
pub fn deliver(core: &Core) {
    if !core.with(|state| state.processor.interrupt_due()) {
        return;
    }
    let thread = nt::current_thread();
    core.high_level.acquire(thread);
    let taken = core.with(|state| {
        let taken = state.processor.take_interrupt();
        state.interrupted = taken;
        taken.then(|| state.processor.lvt() & LVT_TARGET)
    });
    if let Some(target) = taken {
        if target == lvt::OF_HAL {
            hal::handle(core, |routine| call(core, routine));
        } else {
            violation::other(format!("an interrupt came through the LVT entry {target:#x}, which is not the HAL's"));
        }
        core.with(|state| state.interrupted = false);
    }
    core.high_level.release(thread);
}

/// Calls the handler at the next site of the interrupt sites.
fn call(core: &Core, routine: Routine) {
    let (site, skid) = core.with(|state| {
        state.delivered += 1;
        let site = state.sites.next_interrupt();
        state.last_site = site;
        (site, state.skid())
    });
    let Some(site) = site else { return };
    let mut frame = TrapFrame::interrupted(InterruptSite { ip: site.ip.wrapping_add(skid), ..site });
    let frame = if hal::hides_frames() { ptr::null_mut() } else { &raw mut frame };
    let arguments = [frame.expose_provenance(), 0, 0, 0];
    // SAFETY: the driver registered this function, which takes such a frame or null, and stays loaded while it runs.
    let call = || unsafe { stepping::call(StepEntry::Interrupt, routine as *const (), arguments) };
    current_ids::with_interrupted(site, || {
        time::during_interrupt(|| {
            irql::run_at(HIGH_LEVEL, call);
        });
    });
}
