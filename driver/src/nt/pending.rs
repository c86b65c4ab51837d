//! Requests that wait and can be cancelled meanwhile: the packets and the lock of [`driver_core`]'s table.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicPtr;

use driver_core::{End, Packet, Requests, Table};
use wdk_sys::ntddk::{IoReleaseCancelSpinLock, KeAcquireSpinLockRaiseToDpc, KeReleaseSpinLock};
use wdk_sys::{_DEVICE_OBJECT, _IRP, KIRQL, KSPIN_LOCK, NTSTATUS, PIRP};

use super::irp::Request;

/// STATUS_PENDING (ntstatus.h).
pub const STATUS_PENDING: NTSTATUS = 0x103;

/// STATUS_CANCELLED (ntstatus.h).
const STATUS_CANCELLED: NTSTATUS = 0xC000_0120_u32.cast_signed();

/// STATUS_DEVICE_BUSY (ntstatus.h).
pub const STATUS_DEVICE_BUSY: NTSTATUS = 0x8000_0011_u32.cast_signed();

/// Maximum number of waiting requests.
const MOST: usize = engine::MAX_SAMPLERS as usize * 2;

/// The packet of a waiting request. It is not complete while the value exists.
pub struct Pended(PIRP);

impl Packet for Pended {
    fn cancel_routine(&self) -> &AtomicPtr<()> {
        // SAFETY: the packet is in the table or about to enter it, so it is not complete
        let field = unsafe { &raw mut (*self.0).CancelRoutine };
        // SAFETY: a nullable function pointer is a pointer; the I/O manager exchanges it atomically too
        unsafe { AtomicPtr::from_ptr(field.cast::<*mut ()>()) }
    }

    fn is_cancelled(&self) -> bool {
        // SAFETY: the packet is about to enter the table, so it is not complete
        let field = unsafe { &raw const (*self.0).Cancel };
        // SAFETY: as above
        unsafe { field.read_volatile() != 0 }
    }
}

/// The table of waiting requests, and its spin lock.
pub struct Pending {
    lock: UnsafeCell<KSPIN_LOCK>,
    table: UnsafeCell<Table<Pended, MOST>>,
}

// SAFETY: all access to the table holds the spin lock, and the kernel uses packets on any thread
unsafe impl Sync for Pending {}

/// All waiting requests of the driver. Static, because the cancel routine gets no context.
pub static PENDING: Pending = Pending { lock: UnsafeCell::new(0), table: UnsafeCell::new(Table::new()) };

impl Requests<MOST> for Pending {
    type Request = Request<'static>;
    type Packet = Pended;

    fn locked<R>(&self, work: impl FnOnce(&mut Table<Pended, MOST>) -> R) -> R {
        // SAFETY: zero is a free spin lock, as KeInitializeSpinLock initializes it, in non-paged memory
        let before: KIRQL = unsafe { KeAcquireSpinLockRaiseToDpc(self.lock.get()) };
        // SAFETY: this thread holds the lock, and `work` does not call this function
        let result = work(unsafe { &mut *self.table.get() });
        // SAFETY: acquired above
        unsafe { KeReleaseSpinLock(self.lock.get(), before) };
        result
    }

    fn routine(&self) -> *mut () {
        cancel as *mut ()
    }

    fn pend(request: Request<'static>) -> Pended {
        Pended(request.into_pending())
    }

    fn owned(packet: Pended) -> Request<'static> {
        // SAFETY: the cancel routine was taken back, so only this code has the packet
        unsafe { Request::new(packet.0) }
    }

    fn end(request: Request<'static>, why: End) {
        request.complete(
            match why {
                End::Cancelled => STATUS_CANCELLED,
                End::Busy => STATUS_DEVICE_BUSY,
            },
            0,
        );
    }
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
    driver_core::cancel_routine(&PENDING, |Pended(waiting)| *waiting == packet);
    // SAFETY: no other code finds it in the table, and code that removes a packet first takes this routine away
    unsafe { Request::new(packet) }.complete(STATUS_CANCELLED, 0);
}
