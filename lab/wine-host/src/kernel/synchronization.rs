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

/// KeBugCheckEx: the end of the process in which drivers run.
pub extern "system" fn bug_check(code: u32, first: usize, second: usize, third: usize, fourth: usize) -> ! {
    nt::print(&format!("bug check {code:#x} ({first:#x}, {second:#x}, {third:#x}, {fourth:#x})"));
    std::process::abort()
}

/// KeWaitForSingleObject: at DISPATCH_LEVEL it may look, and not wait. A wait with a time runs by the lab's clock.
pub unsafe extern "system" fn wait_for_single_object(
    object: Pointer,
    reason: u32,
    mode: i8,
    alertable: u8,
    timeout: *const i64,
) -> NtStatus {
    // SAFETY: null, or the driver promises a time that can be read.
    let time = unsafe { timeout.as_ref() };
    catch_panic("KeWaitForSingleObject", (), || {
        irql::check("KeWaitForSingleObject", if time == Some(&0) { DISPATCH_LEVEL } else { APC_LEVEL });
    });
    // SAFETY: as the driver called it, or with another time.
    let wait = |timeout| unsafe { KeWaitForSingleObject(object, reason, mode, alertable, timeout) };
    match time {
        Some(time) if *time < 0 => time::wait(time.unsigned_abs(), |step| wait(step)),
        _ => wait(timeout),
    }
}

/// `FAST_MUTEX.OldIrql` (wdm.h, x64): where its holder's level is kept.
const OLD_IRQL: usize = 0x30;

/// ExAcquireFastMutex.
pub unsafe extern "system" fn acquire_fast_mutex(mutex: Pointer) {
    catch_panic("ExAcquireFastMutex", (), || {
        irql::check("ExAcquireFastMutex", APC_LEVEL);
        let before = irql::set(APC_LEVEL);
        // SAFETY: as the driver called it.
        unsafe { ExAcquireFastMutex(mutex) };
        // SAFETY: inside the FAST_MUTEX.
        let old = unsafe { mutex.byte_add(OLD_IRQL) };
        // SAFETY: a field of the mutex, which this thread holds.
        unsafe { old.cast::<u32>().write(u32::from(before)) };
    });
}

/// ExReleaseFastMutex.
pub unsafe extern "system" fn release_fast_mutex(mutex: Pointer) {
    catch_panic("ExReleaseFastMutex", (), || {
        irql::check("ExReleaseFastMutex", APC_LEVEL);
        if irql::current() < APC_LEVEL {
            violation::other("ExReleaseFastMutex below APC_LEVEL");
        }
        // SAFETY: inside the FAST_MUTEX.
        let old = unsafe { mutex.byte_add(OLD_IRQL) };
        // SAFETY: a field of the mutex, which this thread holds.
        let before = unsafe { old.cast::<u32>().read() };
        // SAFETY: as the driver called it.
        unsafe { ExReleaseFastMutex(mutex) };
        irql::set(u8::try_from(before).unwrap_or_default());
    });
}

/// KeAcquireSpinLockRaiseToDpc.
pub unsafe extern "system" fn acquire_spin_lock(lock: Pointer) -> u8 {
    catch_panic("KeAcquireSpinLockRaiseToDpc", 0, || {
        irql::check("KeAcquireSpinLockRaiseToDpc", DISPATCH_LEVEL);
        let before = irql::set(DISPATCH_LEVEL);
        cancel_race::before_lock();
        // SAFETY: as the driver called it.
        unsafe { KeAcquireSpinLockAtDpcLevel(lock) };
        cancel_race::after_lock();
        before
    })
}

/// KeReleaseSpinLock.
pub unsafe extern "system" fn release_spin_lock(lock: Pointer, before: u8) {
    catch_panic("KeReleaseSpinLock", (), || {
        if irql::current() != DISPATCH_LEVEL {
            violation::other(format!("KeReleaseSpinLock at IRQL {}", irql::current()));
        }
        cancel_race::before_unlock();
        // SAFETY: as the driver called it.
        unsafe { KeReleaseSpinLockFromDpcLevel(lock) };
        irql::set(before);
    });
}
