//! Work items, with an account: Wine does not tell what was left behind.

#![expect(unsafe_code, reason = "hands calls on to Wine")]

use crate::{
    failing, level, lock,
    nt::{DISPATCH_LEVEL, Pointer},
    violation::{self, caught},
};
use std::{collections::BTreeSet, ptr, sync::Mutex};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn IoAllocateWorkItem(device: Pointer) -> Pointer;
    fn IoQueueWorkItem(item: Pointer, routine: Pointer, queue: u32, context: Pointer);
    fn IoFreeWorkItem(item: Pointer);
}

static ITEMS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// IoAllocateWorkItem.
pub unsafe extern "system" fn allocate(device: Pointer) -> Pointer {
    caught("IoAllocateWorkItem", ptr::null_mut(), || {
        level::check("IoAllocateWorkItem", DISPATCH_LEVEL);
        if failing::hits("IoAllocateWorkItem") {
            return ptr::null_mut();
        }
        // SAFETY: as the driver called it.
        let item = unsafe { IoAllocateWorkItem(device) };
        lock(&ITEMS).insert(item.addr());
        item
    })
}

/// IoQueueWorkItem.
pub unsafe extern "system" fn queue(item: Pointer, routine: Pointer, queue: u32, context: Pointer) {
    caught("IoQueueWorkItem", (), || {
        level::check("IoQueueWorkItem", DISPATCH_LEVEL);
        if !lock(&ITEMS).contains(&item.addr()) {
            return violation::other(format!("IoQueueWorkItem of {item:p}, which is not allocated"));
        }
        // SAFETY: as the driver called it.
        unsafe { IoQueueWorkItem(item, routine, queue, context) };
    });
}

/// IoFreeWorkItem.
pub unsafe extern "system" fn free(item: Pointer) {
    caught("IoFreeWorkItem", (), || {
        level::check("IoFreeWorkItem", DISPATCH_LEVEL);
        if !lock(&ITEMS).remove(&item.addr()) {
            return violation::other(format!("IoFreeWorkItem of {item:p}, which is not allocated"));
        }
        // SAFETY: as the driver called it.
        unsafe { IoFreeWorkItem(item) };
    });
}

/// A driver is gone; what it left is noted and forgotten.
pub fn image_unloaded() {
    if !std::mem::take(&mut *lock(&ITEMS)).is_empty() {
        violation::other("a driver was unloaded that had work items");
    }
}
