//! Waits, spin locks, fast mutexes, and the bug check.

#![expect(unsafe_code, reason = "calls Wine's functions with what the driver points to")]

use crate::{
    kernel::{cancel_race, irql, time},
    nt,
    nt::{APC_LEVEL, DISPATCH_LEVEL, NtStatus, Pointer},
    violation::{self, catch_panic},
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn ExAcquireFastMutex(mutex: Pointer);
    fn ExReleaseFastMutex(mutex: Pointer);
    fn KeAcquireSpinLockAtDpcLevel(lock: Pointer);
    fn KeReleaseSpinLockFromDpcLevel(lock: Pointer);
    fn KeWaitForSingleObject(object: Pointer, reason: u32, mode: i8, alertable: u8, timeout: *const i64) -> NtStatus;
}

/// Implements KeBugCheckEx: aborts the process in which drivers run.
pub extern "system" fn bug_check(code: u32, first: usize, second: usize, third: usize, fourth: usize) -> ! {
    nt::print(&format!("bug check {code:#x} ({first:#x}, {second:#x}, {third:#x}, {fourth:#x})"));
    std::process::abort()
}

/// Implements KeWaitForSingleObject. At DISPATCH_LEVEL the timeout must be 0. A relative timeout runs by the lab's
/// clock.
pub unsafe extern "system" fn wait_for_single_object(
    object: Pointer,
    reason: u32,
    mode: i8,
    alertable: u8,
    timeout: *const i64,
) -> NtStatus {
    // SAFETY: null, or the driver must pass a readable timeout.
    let time = unsafe { timeout.as_ref() };
    catch_panic("KeWaitForSingleObject", (), || {
        irql::check("KeWaitForSingleObject", if time == Some(&0) { DISPATCH_LEVEL } else { APC_LEVEL });
    });
    // SAFETY: the arguments are the driver's own, except for the timeout.
    let wait = |timeout| unsafe { KeWaitForSingleObject(object, reason, mode, alertable, timeout) };
    match time {
        Some(time) if *time < 0 => time::wait(time.unsigned_abs(), |step| wait(step)),
        _ => wait(timeout),
    }
}

/// Offset of `FAST_MUTEX.OldIrql` (wdm.h, x64), the previous level of its holder.
const OLD_IRQL: usize = 0x30;

/// Implements ExAcquireFastMutex.
pub unsafe extern "system" fn acquire_fast_mutex(mutex: Pointer) {
    catch_panic("ExAcquireFastMutex", (), || {
        irql::check("ExAcquireFastMutex", APC_LEVEL);
        let before = irql::set(APC_LEVEL);
        // SAFETY: the arguments are the driver's own.
        unsafe { ExAcquireFastMutex(mutex) };
        // SAFETY: the offset is inside the FAST_MUTEX.
        let old = unsafe { mutex.byte_add(OLD_IRQL) };
        // SAFETY: a field of the mutex, which this thread holds.
        unsafe { old.cast::<u32>().write(u32::from(before)) };
    });
}

/// Implements ExReleaseFastMutex.
pub unsafe extern "system" fn release_fast_mutex(mutex: Pointer) {
    catch_panic("ExReleaseFastMutex", (), || {
        irql::check("ExReleaseFastMutex", APC_LEVEL);
        if irql::current() < APC_LEVEL {
            violation::other("ExReleaseFastMutex below APC_LEVEL");
        }
        // SAFETY: the offset is inside the FAST_MUTEX.
        let old = unsafe { mutex.byte_add(OLD_IRQL) };
        // SAFETY: a field of the mutex, which this thread holds.
        let before = unsafe { old.cast::<u32>().read() };
        // SAFETY: the arguments are the driver's own.
        unsafe { ExReleaseFastMutex(mutex) };
        irql::set(u8::try_from(before).unwrap_or_default());
    });
}

/// Implements KeAcquireSpinLockRaiseToDpc.
pub unsafe extern "system" fn acquire_spin_lock(lock: Pointer) -> u8 {
    catch_panic("KeAcquireSpinLockRaiseToDpc", 0, || {
        irql::check("KeAcquireSpinLockRaiseToDpc", DISPATCH_LEVEL);
        let before = irql::set(DISPATCH_LEVEL);
        cancel_race::before_lock();
        // SAFETY: the arguments are the driver's own.
        unsafe { KeAcquireSpinLockAtDpcLevel(lock) };
        cancel_race::after_lock();
        before
    })
}

/// Implements KeReleaseSpinLock.
pub unsafe extern "system" fn release_spin_lock(lock: Pointer, before: u8) {
    catch_panic("KeReleaseSpinLock", (), || {
        if irql::current() != DISPATCH_LEVEL {
            violation::other(format!("KeReleaseSpinLock at IRQL {}", irql::current()));
        }
        cancel_race::before_unlock();
        // SAFETY: the arguments are the driver's own.
        unsafe { KeReleaseSpinLockFromDpcLevel(lock) };
        irql::set(before);
    });
}
