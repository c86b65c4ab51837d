//! Requests that wait and can be cancelled meanwhile.
//!
//! A packet belongs to the code that removes it from the table under the lock. That is the driver if IoSetCancelRoutine
//! returns the cancel routine. Otherwise it is the cancel routine, which the I/O manager has called or is about to
//! call.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::ntddk::{IoReleaseCancelSpinLock, KeAcquireSpinLockRaiseToDpc, KeReleaseSpinLock};
use wdk_sys::{_DEVICE_OBJECT, _IRP, KIRQL, KSPIN_LOCK, NTSTATUS, PIRP};

use super::irp::Request;

/// STATUS_PENDING (ntstatus.h).
pub const STATUS_PENDING: NTSTATUS = 0x103;

/// STATUS_CANCELLED (ntstatus.h).
pub const STATUS_CANCELLED: NTSTATUS = 0xC000_0120_u32.cast_signed();

/// Maximum number of waiting requests.
const MOST: usize = engine::MAX_SAMPLERS as usize * 2;

/// A waiting request.
struct Waiting {
    packet: PIRP,
    /// File object of the request.
    key: usize,
    /// Time at which the request must be completed.
    deadline: u64,
}

/// The table of waiting requests.
pub struct Pending {
    lock: UnsafeCell<KSPIN_LOCK>,
    waiting: UnsafeCell<[Option<Waiting>; MOST]>,
}

// SAFETY: all access to the table holds the spin lock
unsafe impl Sync for Pending {}

/// All waiting requests of the driver. Static, because the cancel routine gets no context.
pub static PENDING: Pending = Pending { lock: UnsafeCell::new(0), waiting: UnsafeCell::new([const { None }; MOST]) };

impl Pending {
    /// Runs `work` on the table under the spin lock, at DISPATCH_LEVEL.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    fn locked<R>(&self, work: impl FnOnce(&mut [Option<Waiting>; MOST]) -> R) -> R {
        // SAFETY: zero is a free spin lock, as KeInitializeSpinLock initializes it, in non-paged memory
        let before: KIRQL = unsafe { KeAcquireSpinLockRaiseToDpc(self.lock.get()) };
        // SAFETY: this thread holds the lock, and `work` does not call this function
        let result = work(unsafe { &mut *self.waiting.get() });
        // SAFETY: acquired above
        unsafe { KeReleaseSpinLock(self.lock.get(), before) };
        result
    }

    /// Queues a request of `key`. The dispatch routine must then return STATUS_PENDING.
    ///
    /// # Errors
    /// The request, if the table is full.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn insert<'a>(&self, request: Request<'a>, key: usize, deadline: u64) -> Result<(), Request<'a>> {
        let cancelled = self.locked(|table| {
            let Some(place) = table.iter_mut().find(|place| place.is_none()) else { return Err(request) };
            let packet = request.into_pending();
            set_cancel_routine(packet, cancel as *mut ());
            if was_cancelled(packet) && !set_cancel_routine(packet, core::ptr::null_mut()).is_null() {
                return Ok(Some(packet));
            }
            *place = Some(Waiting { packet, key, deadline });
            Ok(None)
        })?;
        if let Some(packet) = cancelled {
            // SAFETY: the cancel routine was taken back, so only this code has the packet
            unsafe { Request::new(packet) }.complete(STATUS_CANCELLED, 0);
        }
        Ok(())
    }

    /// Removes a request with a key for which `wanted` returns true; returns it with its key and its deadline.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn take(&self, wanted: impl Fn(usize) -> bool) -> Option<(Request<'static>, usize, u64)> {
        self.take_nth(0, wanted)
    }

    /// Removes a request like [`take`](Self::take), but only from the table entries at `from` and later.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn take_nth(&self, from: usize, wanted: impl Fn(usize) -> bool) -> Option<(Request<'static>, usize, u64)> {
        let found = self.locked(|table| {
            let mut meant =
                table.iter_mut().skip(from).filter(|place| place.as_ref().is_some_and(|one| wanted(one.key)));
            meant.find_map(|place| {
                let packet = place.as_ref()?.packet;
                if set_cancel_routine(packet, core::ptr::null_mut()).is_null() {
                    return None; // the cancel routine is about to remove it
                }
                place.take()
            })
        })?;
        // SAFETY: the cancel routine was taken back, so only this code has the packet
        Some((unsafe { Request::new(found.packet) }, found.key, found.deadline))
    }

    /// Returns the earliest deadline.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn first_deadline(&self) -> Option<u64> {
        self.locked(|table| table.iter().flatten().map(|waiting| waiting.deadline).min())
    }
}

/// Exchanges the cancel routine as IoSetCancelRoutine does, which is inline in the WDK. Returns the previous routine,
/// or null.
fn set_cancel_routine(packet: PIRP, routine: *mut ()) -> *mut () {
    // SAFETY: the packet is in the table or about to enter it, so it is not complete
    let field = unsafe { &raw mut (*packet).CancelRoutine };
    // SAFETY: a nullable function pointer is a pointer; the I/O manager exchanges it atomically too
    let field = unsafe { AtomicPtr::from_ptr(field.cast::<*mut ()>()) };
    field.swap(routine, Ordering::AcqRel)
}

fn was_cancelled(packet: PIRP) -> bool {
    // SAFETY: the packet is about to enter the table, so it is not complete
    let field = unsafe { &raw const (*packet).Cancel };
    // SAFETY: as above
    unsafe { field.read_volatile() != 0 }
}

/// Cancel routine. The I/O manager calls it with the cancel spin lock held.
///
/// # IRQL
/// DISPATCH_LEVEL.
unsafe extern "C" fn cancel(_device: *mut _DEVICE_OBJECT, packet: *mut _IRP) {
    // SAFETY: the I/O manager passes the packet to its cancel routine
    let before = unsafe { (*packet).CancelIrql };
    // SAFETY: a cancel routine must release the lock, with this IRQL
    unsafe { IoReleaseCancelSpinLock(before) };
    PENDING.locked(|table| {
        for place in table.iter_mut().filter(|place| place.as_ref().is_some_and(|one| one.packet == packet)) {
            *place = None;
        }
    });
    // SAFETY: no other code finds it in the table, and code that removes a packet first takes this routine away
    unsafe { Request::new(packet) }.complete(STATUS_CANCELLED, 0);
}
