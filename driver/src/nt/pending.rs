//! Requests that wait, and can be cancelled meanwhile.
//!
//! A packet belongs to who removes it from the table, under the lock: the driver, if IoSetCancelRoutine gives the cancel
//! routine back to it, or else the cancel routine, which the I/O manager has called or is about to call.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::ntddk::{IoReleaseCancelSpinLock, KeAcquireSpinLockRaiseToDpc, KeReleaseSpinLock};
use wdk_sys::{_DEVICE_OBJECT, _IRP, KIRQL, KSPIN_LOCK, NTSTATUS, PIRP};

use super::irp::Request;

/// STATUS_PENDING (ntstatus.h).
pub const STATUS_PENDING: NTSTATUS = 0x103;

/// STATUS_CANCELLED (ntstatus.h).
pub const STATUS_CANCELLED: NTSTATUS = 0xC000_0120_u32.cast_signed();

/// How many can wait at a time.
const MOST: usize = engine::MAX_SAMPLERS as usize * 2;

/// A request that waits.
struct Waiting {
    packet: PIRP,
    /// Whose it is.
    key: usize,
    /// Until when.
    deadline: u64,
}

/// The requests that wait.
pub struct Pending {
    lock: UnsafeCell<KSPIN_LOCK>,
    waiting: UnsafeCell<[Option<Waiting>; MOST]>,
}

// SAFETY: the table is reached under the spin lock only
unsafe impl Sync for Pending {}

/// All of the driver's: the cancel routine has to find them.
pub static PENDING: Pending = Pending { lock: UnsafeCell::new(0), waiting: UnsafeCell::new([const { None }; MOST]) };

impl Pending {
    /// Runs `work` on the table, at DISPATCH_LEVEL. DISPATCH_LEVEL at most.
    fn locked<R>(&self, work: impl FnOnce(&mut [Option<Waiting>; MOST]) -> R) -> R {
        // SAFETY: zero is a spin lock that nobody has, as KeInitializeSpinLock makes it, in memory that is not paged
        let before: KIRQL = unsafe { KeAcquireSpinLockRaiseToDpc(self.lock.get()) };
        // SAFETY: this thread has the lock, and `work` can not come here again
        let result = work(unsafe { &mut *self.waiting.get() });
        // SAFETY: taken above
        unsafe { KeReleaseSpinLock(self.lock.get(), before) };
        result
    }

    /// Lets a request of `key` wait; the dispatch routine has to answer STATUS_PENDING then. DISPATCH_LEVEL at most.
    ///
    /// # Errors
    /// The request, where no more can wait.
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
            // SAFETY: the cancel routine was taken back: the packet is this driver's alone
            unsafe { Request::new(packet) }.complete(STATUS_CANCELLED, 0);
        }
        Ok(())
    }

    /// A request for which `wanted` says yes to its key, and its deadline. DISPATCH_LEVEL at most.
    pub fn take(&self, wanted: impl Fn(usize) -> bool) -> Option<(Request<'static>, usize, u64)> {
        self.take_nth(0, wanted)
    }

    /// The same, from a place of the table on, for who goes through all.
    pub fn take_nth(&self, from: usize, wanted: impl Fn(usize) -> bool) -> Option<(Request<'static>, usize, u64)> {
        let found = self.locked(|table| {
            let mut meant =
                table.iter_mut().skip(from).filter(|place| place.as_ref().is_some_and(|one| wanted(one.key)));
            meant.find_map(|place| {
                let packet = place.as_ref()?.packet;
                if set_cancel_routine(packet, core::ptr::null_mut()).is_null() {
                    return None; // the cancel routine is about to take it
                }
                place.take()
            })
        })?;
        // SAFETY: the cancel routine was taken back: the packet is this driver's alone
        Some((unsafe { Request::new(found.packet) }, found.key, found.deadline))
    }

    /// When the first wants to be answered. DISPATCH_LEVEL at most.
    pub fn first_deadline(&self) -> Option<u64> {
        self.locked(|table| table.iter().flatten().map(|waiting| waiting.deadline).min())
    }
}

/// IoSetCancelRoutine, which is inline in the WDK: answers the routine before, or null.
fn set_cancel_routine(packet: PIRP, routine: *mut ()) -> *mut () {
    // SAFETY: a packet in the table, or about to be, is not complete
    let field = unsafe { &raw mut (*packet).CancelRoutine };
    // SAFETY: a pointer to a function that can be null is a pointer, and the I/O manager exchanges it as atomically
    let field = unsafe { AtomicPtr::from_ptr(field.cast::<*mut ()>()) };
    field.swap(routine, Ordering::AcqRel)
}

fn was_cancelled(packet: PIRP) -> bool {
    // SAFETY: a packet about to be in the table is not complete
    let field = unsafe { &raw const (*packet).Cancel };
    // SAFETY: as above
    unsafe { field.read_volatile() != 0 }
}

/// The I/O manager's, with the cancel spin lock held, at DISPATCH_LEVEL.
unsafe extern "C" fn cancel(_device: *mut _DEVICE_OBJECT, packet: *mut _IRP) {
    // SAFETY: the I/O manager lends the packet to its cancel routine
    let before = unsafe { (*packet).CancelIrql };
    // SAFETY: a cancel routine has to, with this level
    unsafe { IoReleaseCancelSpinLock(before) };
    PENDING.locked(|table| {
        for place in table.iter_mut().filter(|place| place.as_ref().is_some_and(|one| one.packet == packet)) {
            *place = None;
        }
    });
    // SAFETY: nobody else finds it in the table, and who removes a packet there takes this routine away first
    unsafe { Request::new(packet) }.complete(STATUS_CANCELLED, 0);
}
