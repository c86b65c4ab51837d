//! The timer functions. In Wine, the DPCs of timers run on any processor.
//!
//! Only DPCs are supported: a wait for a timer object never ends.

#![expect(unsafe_code, reason = "writes what the driver points to")]

use crate::{
    cpu::affinity,
    kernel::{
        deferred,
        dispatcher_objects::{self, Ktimer},
        irql,
    },
    nt::{APC_LEVEL, DISPATCH_LEVEL, Pointer},
    state::{dpc_queues::Unknown, timers::Setting},
    violation::{self, catch_panic},
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time between the epochs of Windows (1601) and Unix (1970).
const EPOCHS: Duration = Duration::from_hours(24 * 134_774);

fn unknown(function: &str, timer: Pointer) {
    violation::other(format!("{function} of {timer:p}, which is not an initialized timer"));
}

fn initialize_as(function: &str, timer: Pointer, kind: u8) {
    irql::check(function, DISPATCH_LEVEL);
    let Some(address) = dispatcher_objects::address_of(timer) else { return unknown(function, timer) };
    let free = deferred::change(|work| {
        let free = work.timers.initialize(address);
        if free {
            // SAFETY: the driver must pass memory for a timer. It is registered, and this thread holds the lock of the
            // deferred work.
            let object: &mut Ktimer = unsafe { dispatcher_objects::object_at(address) };
            object.initialize(kind);
        }
        free
    });
    if !free {
        violation::other(format!("{function} of {timer:p}, which is set"));
    }
}

/// Implements KeInitializeTimer, which makes a NotificationTimer.
pub unsafe extern "system" fn initialize(timer: Pointer) {
    catch_panic("KeInitializeTimer", (), || initialize_as("KeInitializeTimer", timer, 0));
}

/// Implements KeInitializeTimerEx.
pub unsafe extern "system" fn initialize_ex(timer: Pointer, kind: i32) {
    let kind = u8::from(kind != 0);
    catch_panic("KeInitializeTimerEx", (), || initialize_as("KeInitializeTimerEx", timer, kind));
}

/// Returns the delay until `due`, in units of 100 ns: relative if negative, else since 1601.
fn delay(due: i64) -> Duration {
    let units = due.unsigned_abs();
    let time = Duration::new(units / 10_000_000, u32::try_from(units % 10_000_000 * 100).unwrap_or_default());
    if due < 0 {
        return time;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + EPOCHS;
    time.saturating_sub(now)
}

/// Sets a timer, and returns whether it was set. The period is in milliseconds; 0 means none.
fn set_as(function: &str, timer: Pointer, due: i64, period: u32, dpc: Pointer) -> u8 {
    irql::check(function, DISPATCH_LEVEL);
    let delay = delay(due);
    let setting = Setting {
        dpc: (!dpc.is_null()).then(|| dpc.addr()),
        processor: affinity::current_processor(),
        due: Instant::now().checked_add(delay),
        delay,
        period: (period > 0).then(|| Duration::from_millis(period.into())),
        expiries: 0,
    };
    let set = deferred::change(|work| {
        if setting.dpc.is_some_and(|dpc| !work.dpcs.contains(dpc)) {
            return Err(format!("{function} with {dpc:p}, which is not an initialized DPC"));
        }
        let set = work.timers.set(timer.addr(), Some(setting));
        let set = set.map_err(|_| format!("{function} of {timer:p}, which is not an initialized timer"))?;
        // SAFETY: the timer is registered, and this thread holds the lock of the deferred work.
        let object: &mut Ktimer = unsafe { dispatcher_objects::object_at(timer.addr()) };
        object.set(due, period, dpc.addr());
        Ok(set)
    });
    u8::from(set.unwrap_or_else(|what| {
        violation::other(what);
        false
    }))
}

/// Implements KeSetTimer.
pub unsafe extern "system" fn set(timer: Pointer, due: i64, dpc: Pointer) -> u8 {
    catch_panic("KeSetTimer", 0, || set_as("KeSetTimer", timer, due, 0, dpc))
}

/// Implements KeSetTimerEx. A negative period means none.
pub unsafe extern "system" fn set_ex(timer: Pointer, due: i64, period: i32, dpc: Pointer) -> u8 {
    let period = u32::try_from(period).unwrap_or_default();
    catch_panic("KeSetTimerEx", 0, || set_as("KeSetTimerEx", timer, due, period, dpc))
}

/// Implements KeSetCoalescableTimer. The tolerable delay is ignored.
pub unsafe extern "system" fn set_coalescable(
    timer: Pointer,
    due: i64,
    period: u32,
    _tolerable: u32,
    dpc: Pointer,
) -> u8 {
    catch_panic("KeSetCoalescableTimer", 0, || set_as("KeSetCoalescableTimer", timer, due, period, dpc))
}

/// Implements KeCancelTimer: returns whether the timer was set. A DPC that is already queued still runs.
pub unsafe extern "system" fn cancel(timer: Pointer) -> u8 {
    catch_panic("KeCancelTimer", 0, || {
        irql::check("KeCancelTimer", DISPATCH_LEVEL);
        let cancelled = deferred::change(|work| {
            let cancelled = work.timers.set(timer.addr(), None)?;
            // SAFETY: the timer is registered, and this thread holds the lock of the deferred work.
            let object: &mut Ktimer = unsafe { dispatcher_objects::object_at(timer.addr()) };
            object.cancelled();
            Ok::<_, Unknown>(cancelled)
        });
        if cancelled.is_err() {
            unknown("KeCancelTimer", timer);
        }
        u8::from(cancelled == Ok(true))
    })
}

/// Implements ExSetTimerResolution: adds a request for a resolution in units of 100 ns, or removes one. Returns the
/// resolution that results.
pub extern "system" fn set_resolution(wanted: u32, set: u8) -> u32 {
    catch_panic("ExSetTimerResolution", 0, || {
        irql::check("ExSetTimerResolution", APC_LEVEL);
        let request = (set != 0).then(|| u64::from(wanted));
        let resolution = deferred::change(|work| work.timers.set_resolution(request));
        if resolution.is_none() {
            violation::other("ExSetTimerResolution removes a request that was not made".to_owned());
        }
        resolution.and_then(|resolution| u32::try_from(resolution).ok()).unwrap_or_default()
    })
}
