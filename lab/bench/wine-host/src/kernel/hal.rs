//! The HAL: its dispatch table, the handler of the profile interrupt, and the reservation of counters.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::{
        affinity, lvt,
        pmi_handler::{RegisteredHandler, Routine},
        processor::Core,
        processors,
    },
    kernel::{call_stack, irql},
    lock::lock,
    nt::{self, NtStatus, PASSIVE_LEVEL, Pointer},
    state::{
        hal::{Busy, Reservation},
        machine::MACHINE,
    },
    violation::{self, catch_panic},
};
use std::{
    ops::Range,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// HalProfileSourceInterruptHandler of HAL_SET_INFORMATION_CLASS.
const INTERRUPT_HANDLER: u32 = 1;

/// HalProfileSourceInformation of HAL_QUERY_INFORMATION_CLASS.
const SOURCE_INFORMATION: u32 = 1;

/// ProfileTime, which needs no counter.
const PROFILE_TIME: u32 = 0;

/// Returns the registered handler.
pub fn handler() -> Option<RegisteredHandler> {
    *lock(&MACHINE.kernel.hal.handler)
}

pub fn refuse_handler(refuse: bool) {
    MACHINE.kernel.hal.refuses_handler.store(refuse, Ordering::SeqCst);
}

/// Sets whether the HAL unmasks the LVT entry before it calls a registered handler. Processors by Intel mask the entry
/// on delivery.
pub fn set_unmasks(unmasks: bool) {
    MACHINE.kernel.hal.unmasks.store(unmasks, Ordering::SeqCst);
}

/// Sets the size of the structure that a query for a source takes.
pub fn set_information_size(bytes: u32) {
    MACHINE.kernel.hal.information_size.store(bytes, Ordering::SeqCst);
}

/// Sets whether the HAL passes null instead of a trap frame.
pub fn hide_frames(hides: bool) {
    MACHINE.kernel.hal.hides_frames.store(hides, Ordering::SeqCst);
}

pub fn hides_frames() -> bool {
    MACHINE.kernel.hal.hides_frames.load(Ordering::SeqCst)
}

/// Handles an interrupt on the thread that delivers a processor's interrupts: calls the registered handler, if there is
/// one. As in Windows, the handler can be unregistered while it runs, and the unregistering does not wait.
pub fn handle(core: &Core, call: impl FnOnce(Routine)) {
    let registered = {
        let handler = lock(&MACHINE.kernel.hal.handler);
        *lock(&core.running_handler) = *handler;
        *handler
    };
    if registered.is_none() || MACHINE.kernel.hal.unmasks.load(Ordering::SeqCst) {
        core.with(|state| state.processor.set_lvt(lvt::OF_HAL));
    }
    if let Some(RegisteredHandler { routine, .. }) = registered {
        call(routine);
        *lock(&core.running_handler) = None;
    }
}

/// HAL_DISPATCH version 4, as in Windows 10 2004.
#[repr(C)]
struct Dispatch {
    version: u32,
    query: unsafe extern "system" fn(u32, u32, Pointer, *mut u32) -> NtStatus,
    set: unsafe extern "system" fn(u32, u32, Pointer) -> NtStatus,
    rest: [usize; 20],
}

const _: () = assert!(size_of::<Dispatch>() == 0xB8);

static DISPATCH: Dispatch = Dispatch { version: 4, query: query_information, set: set_information, rest: [0; 20] };

/// Returns the address of HalDispatchTable. The export is the table itself.
pub fn dispatch_table() -> usize {
    (&raw const DISPATCH).expose_provenance()
}

/// HAL_PROFILE_SOURCE_INFORMATION.
#[repr(C)]
struct SourceInformation {
    source: u32,
    supported: u8,
    interval: u32,
}

/// The interval of every source that the HAL supports.
const INTERVAL: u32 = 65_536;

/// Implements HalQuerySystemInformation, which knows the sources of the processor that the driver has to support.
unsafe extern "system" fn query_information(class: u32, size: u32, buffer: Pointer, returned: *mut u32) -> NtStatus {
    catch_panic("HalQuerySystemInformation", nt::UNSUCCESSFUL, || {
        irql::check("HalQuerySystemInformation", PASSIVE_LEVEL);
        if class != SOURCE_INFORMATION {
            return nt::INVALID_LEVEL;
        }
        if size != MACHINE.kernel.hal.information_size.load(Ordering::SeqCst) {
            return nt::INFO_LENGTH_MISMATCH;
        }
        if let Some(rest) = (size as usize).checked_sub(size_of::<SourceInformation>()) {
            // What current Windows returns there is not known.
            // SAFETY: the driver must pass a buffer of this size.
            unsafe { buffer.wrapping_byte_add(size_of::<SourceInformation>()).cast::<u8>().write_bytes(0xA5, rest) };
        }
        let identity = lock(&MACHINE.processor_type).map(|processor_type| processor_type.identity);
        // SAFETY: the driver must pass such a structure.
        let information = unsafe { &mut *buffer.cast::<SourceInformation>() };
        let known = identity.is_some_and(|identity| identity.expected.supported.contains(&information.source.into()));
        let is_supported = information.source == PROFILE_TIME || known;
        information.supported = is_supported.into();
        information.interval = if is_supported { INTERVAL } else { 0 };
        // SAFETY: the driver must pass the place of a length.
        unsafe { *returned = size };
        nt::SUCCESS
    })
}

/// Implements HalSetSystemInformation.
unsafe extern "system" fn set_information(class: u32, size: u32, buffer: Pointer) -> NtStatus {
    catch_panic("HalSetSystemInformation", nt::UNSUCCESSFUL, || {
        let level = irql::current();
        irql::check("HalSetSystemInformation", PASSIVE_LEVEL);
        if class != INTERRUPT_HANDLER {
            return nt::INVALID_LEVEL;
        }
        if call_stack::fails("HalSetSystemInformation") {
            return nt::UNSUCCESSFUL;
        }
        if size != 8 {
            return nt::INFO_LENGTH_MISMATCH;
        }
        if level > PASSIVE_LEVEL {
            return nt::UNSUCCESSFUL;
        }
        // SAFETY: the driver must pass a buffer of 8 bytes with the address of its handler, or null.
        let routine = unsafe { buffer.cast::<Option<Routine>>().read_unaligned() };
        register(routine)
    })
}

/// Registers or unregisters the handler. Only the process that registered a handler may replace or unregister it.
fn register(routine: Option<Routine>) -> NtStatus {
    let process = nt::current_process();
    let mut handler = lock(&MACHINE.kernel.hal.handler);
    let refuses = MACHINE.kernel.hal.refuses_handler.load(Ordering::SeqCst);
    if refuses || handler.is_some_and(|registered| registered.process != process) {
        return nt::UNSUCCESSFUL;
    }
    // A handler that is registered again goes on.
    let goes_on = |registered: RegisteredHandler| {
        routine.is_some_and(|routine| core::ptr::fn_addr_eq(routine, registered.routine))
    };
    if handler.is_some_and(|registered| !goes_on(registered)) {
        MACHINE.kernel.hal.handler_may_run.store(true, Ordering::SeqCst);
    }
    *handler = routine.map(|routine| RegisteredHandler { routine, process });
    nt::SUCCESS
}

/// Records that every processor was in a call that waits for running handlers, so no unregistered handler runs.
pub fn all_processors_waited() {
    MACHINE.kernel.hal.handler_may_run.store(false, Ordering::SeqCst);
}

/// Records a violation if a handler was unregistered without a wait: it may still use memory that is freed now.
pub fn memory_freed(function: &str) {
    if MACHINE.kernel.hal.handler_may_run.swap(false, Ordering::SeqCst) {
        violation::other(format!("{function} before a call on all processors waited for the unregistered handler"));
    }
}

pub fn refuse_counters(status: Option<NtStatus>) {
    lock(&MACHINE.kernel.hal.counters).refusal = status;
}

/// Makes the HAL ask another owner for the counters at the next allocation; it takes `milliseconds` to release them.
pub fn set_busy(milliseconds: u64) {
    lock(&MACHINE.kernel.hal.counters).busy = Busy::WhenAsked(Duration::from_millis(milliseconds));
}

/// Returns whether the counters of a processor are allocated.
pub fn reserved() -> bool {
    let counters = lock(&MACHINE.kernel.hal.counters);
    counters.holder.is_some() || counters.counts.values().any(|count| *count > 0)
}

/// The shortest time between two attempts that does not waste the processor.
const POLITE: Duration = Duration::from_millis(5);

impl Reservation {
    /// Returns whether the counters are still another owner's.
    fn is_busy(&mut self) -> bool {
        let now = Instant::now();
        self.busy = match self.busy {
            Busy::No => Busy::No,
            Busy::WhenAsked(time) => Busy::Until(now + time, now),
            Busy::Until(end, _) if now >= end => Busy::No,
            Busy::Until(end, last) => {
                if now - last < POLITE {
                    violation::other("HalAllocateHardwareCounters again without a wait, while the HAL is busy");
                }
                Busy::Until(end, now)
            }
        };
        self.busy != Busy::No
    }
}

/// Implements HalAllocateHardwareCounters. It counts on every active processor.
pub unsafe extern "system" fn allocate_counters(
    _groups: Pointer,
    _count: u32,
    _list: Pointer,
    set: *mut usize,
) -> NtStatus {
    catch_panic("HalAllocateHardwareCounters", nt::UNSUCCESSFUL, || {
        irql::check("HalAllocateHardwareCounters", PASSIVE_LEVEL);
        let mut counters = lock(&MACHINE.kernel.hal.counters);
        let active = || processors::active().iter().map(|core| core.number);
        let is_taken = call_stack::fails("HalAllocateHardwareCounters")
            || counters.holder.is_some()
            || active().any(|number| counters.counts.get(&number).is_some_and(|count| *count > 0));
        let refusal = counters.refusal.or(is_taken.then_some(nt::INSUFFICIENT_RESOURCES));
        let refusal = refusal.or_else(|| counters.is_busy().then_some(nt::DEVICE_BUSY));
        let token = counters.next;
        if refusal.is_none() {
            (counters.holder, counters.next) = (Some(token), token + 1);
            active().for_each(|number| *counters.counts.entry(number).or_default() += 1);
        }
        // SAFETY: the driver must pass a writable handle.
        unsafe { set.write(if refusal.is_none() { token } else { 0 }) };
        refusal.unwrap_or(nt::SUCCESS)
    })
}

/// Implements HalFreeHardwareCounters as reported for Windows 11 24H2: it checks the current processor only, and then
/// subtracts on every active processor. A thread that is not pinned may run anywhere, so its current processor is the
/// one that was added last.
pub extern "system" fn free_counters(set: usize) -> NtStatus {
    catch_panic("HalFreeHardwareCounters", nt::UNSUCCESSFUL, || {
        irql::check("HalFreeHardwareCounters", PASSIVE_LEVEL);
        let mut counters = lock(&MACHINE.kernel.hal.counters);
        if counters.holder != Some(set) {
            violation::other(format!("HalFreeHardwareCounters of {set:#x}, which is not allocated"));
            return nt::INVALID_PARAMETER;
        }
        let current = affinity::bound_processor().unwrap_or_else(|| MACHINE.topology.active().saturating_sub(1));
        let is_owner = counters.counts.get(&current).is_some_and(|count| *count > 0);
        if !is_owner || call_stack::fails("HalFreeHardwareCounters") {
            return nt::INVALID_PARAMETER;
        }
        for core in processors::active() {
            let count = counters.counts.entry(core.number).or_default();
            if *count == 0 {
                let number = core.number;
                violation::other(format!("HalFreeHardwareCounters subtracts on processor {number}, which has none"));
            }
            *count = count.saturating_sub(1);
        }
        counters.holder = None;
        nt::SUCCESS
    })
}

/// Reports and takes back what an unloaded driver holds of the HAL.
pub fn image_unloaded(addresses: &Range<usize>) {
    if lock(&MACHINE.kernel.hal.handler).take_if(|registered| registered.is_in(addresses)).is_some() {
        violation::other("a driver was unloaded that had the profile interrupt");
    }
    for core in processors::active() {
        if lock(&core.running_handler).is_some_and(|registered| registered.is_in(addresses)) {
            violation::other("a driver was unloaded while its handler of the profile interrupt ran");
            // The code is unmapped when this returns. The lab survives if the handler ends first.
            core.high_level.wait_until_free(nt::current_thread());
        }
    }
    let mut counters = lock(&MACHINE.kernel.hal.counters);
    counters.counts.clear();
    counters.busy = Busy::No;
    if counters.holder.take().is_some() {
        violation::other("a driver was unloaded that had hardware counters");
    }
}
