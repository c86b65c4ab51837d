//! KDPC and KTIMER of x64. The lab maintains their fields like Windows, for drivers that read them, and to overwrite
//! the memory behind an allocation that is too small. It does not rely on them: its own state is in `deferred.rs`.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::nt::Pointer;
use std::{mem::offset_of, ptr};

/// DpcObject and ThreadedDpcObject of KOBJECTS.
pub const DPC: u8 = 19;
pub const THREADED_DPC: u8 = 24;
/// TimerNotificationObject of KOBJECTS; the kind is this plus the TIMER_TYPE.
const TIMER: u8 = 8;
/// MediumImportance.
const MEDIUM: u8 = 1;
/// `DISPATCHER_HEADER.Inserted`.
const INSERTED: u8 = 0x40;

#[repr(C)]
pub struct Kdpc {
    kind: u8,
    pub importance: u8,
    number: u16,
    link: usize,
    history: usize,
    routine: usize,
    context: usize,
    arguments: [usize; 2],
    /// Nonzero while the DPC is queued.
    data: usize,
}

const _: () = assert!(size_of::<Kdpc>() == 0x40 && offset_of!(Kdpc, routine) == 0x18);

impl Kdpc {
    pub const fn initialize(&mut self, kind: u8, routine: usize, context: usize) {
        (self.kind, self.importance, self.number) = (kind, MEDIUM, 0);
        (self.history, self.data) = (0, 0);
        (self.routine, self.context) = (routine, context);
    }

    pub fn queued(&mut self, arguments: [usize; 2]) {
        self.arguments = arguments;
        self.data = ptr::from_mut(self).addr();
    }

    pub const fn taken(&mut self) {
        self.data = 0;
    }

    /// Returns whether the fields, from which Windows calls, still have the initial routine and context.
    pub const fn calls(&self, routine: usize, context: usize) -> bool {
        self.routine == routine && self.context == context
    }
}

#[repr(C)]
pub struct Ktimer {
    kind: u8,
    flags: [u8; 3],
    signalled: i32,
    /// The list of waiting threads; an empty list points to itself.
    waiters: [usize; 2],
    /// In units of 100 ns; negative if relative.
    due: i64,
    links: [usize; 2],
    dpc: usize,
    processor: u32,
    period: u32,
}

const _: () = assert!(size_of::<Ktimer>() == 0x40 && offset_of!(Ktimer, dpc) == 0x30);

impl Ktimer {
    pub fn initialize(&mut self, kind: u8) {
        let list = ptr::from_mut(&mut self.waiters).addr();
        (self.kind, self.flags, self.signalled) = (TIMER + kind, [0; 3], 0);
        (self.waiters, self.due) = ([list; 2], 0);
        (self.processor, self.period) = (0, 0);
    }

    pub const fn set(&mut self, due: i64, period: u32, dpc: usize) {
        (self.due, self.period, self.dpc) = (due, period, dpc);
        (self.signalled, self.flags) = (0, [0, 0, INSERTED]);
    }

    pub const fn cancelled(&mut self) {
        self.flags = [0; 3];
    }

    pub const fn expired(&mut self) {
        self.signalled = 1;
        if self.period == 0 {
            self.flags = [0; 3];
        }
    }
}

/// Returns the object at an address.
///
/// # Safety
/// The driver has an aligned object of this type there, and no other code accesses it while the reference lives.
pub unsafe fn object_at<'a, T>(address: usize) -> &'a mut T {
    let object: *mut T = ptr::with_exposed_provenance_mut(address);
    // SAFETY: guaranteed by the caller.
    unsafe { &mut *object }
}

/// Returns the address of an object of the driver. Returns None if it is null or not aligned.
pub fn address_of(object: Pointer) -> Option<usize> {
    let address = object.expose_provenance();
    (address != 0 && address.is_multiple_of(align_of::<Kdpc>())).then_some(address)
}
