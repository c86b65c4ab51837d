//! KeSetSystemGroupAffinityThread and KeRevertToUserGroupAffinityThread, which Wine lacks.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::processors,
    kernel::irql,
    nt::DISPATCH_LEVEL,
    violation::{self, catch_panic},
};
use std::cell::Cell;

/// GROUP_AFFINITY. The lab's machine has one group.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GroupAffinity {
    mask: usize,
    group: u16,
    reserved: [u16; 3],
}

impl GroupAffinity {
    /// Makes the affinity to processors of the only group.
    pub const fn of_group_0(mask: usize) -> Self {
        Self { mask, group: 0, reserved: [0; 3] }
    }
}

/// The system affinity of a thread, and its previous user affinity.
#[derive(Clone, Copy)]
struct SystemAffinity {
    mask: usize,
    own: usize,
}

thread_local! {
    static SYSTEM: Cell<Option<SystemAffinity>> = const { Cell::new(None) };
}

/// Implements KeSetSystemGroupAffinityThread. The previous affinity is zero if the thread had no system affinity.
pub unsafe extern "system" fn set(affinity: *const GroupAffinity, previous: *mut GroupAffinity) {
    catch_panic("KeSetSystemGroupAffinityThread", (), || {
        irql::check("KeSetSystemGroupAffinityThread", DISPATCH_LEVEL);
        // SAFETY: the driver must pass an affinity that can be read.
        let GroupAffinity { mask, group, .. } = unsafe { affinity.read() };
        let before = SYSTEM.get();
        let runs = processors::active().iter().any(|core| mask >> core.number & 1 == 1);
        let own = if runs && group == 0 { irql::set_affinity(mask) } else { 0 };
        if own == 0 {
            return violation::other(format!("KeSetSystemGroupAffinityThread of {mask:#x} in group {group}"));
        }
        SYSTEM.set(Some(SystemAffinity { mask, own: before.map_or(own, |system| system.own) }));
        if !previous.is_null() {
            let mask = before.map_or(0, |system| system.mask);
            // SAFETY: the pointer is not null, so it must point to a variable of the driver.
            unsafe { previous.write(GroupAffinity::of_group_0(mask)) };
        }
    });
}

/// Implements KeRevertToUserGroupAffinityThread: restores the previous system affinity, or the user affinity if that is
/// zero.
pub unsafe extern "system" fn revert(previous: *const GroupAffinity) {
    catch_panic("KeRevertToUserGroupAffinityThread", (), || {
        irql::check("KeRevertToUserGroupAffinityThread", DISPATCH_LEVEL);
        // SAFETY: the driver must pass an affinity that can be read.
        let mask = unsafe { previous.read() }.mask;
        let Some(SystemAffinity { own, .. }) = SYSTEM.get() else {
            return violation::other("KeRevertToUserGroupAffinityThread without a system affinity");
        };
        irql::set_affinity(if mask == 0 { own } else { mask });
        SYSTEM.set((mask != 0).then_some(SystemAffinity { mask, own }));
    });
}
