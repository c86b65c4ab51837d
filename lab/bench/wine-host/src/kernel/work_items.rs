//! Work items. Wine does not report items that are left behind, or that are queued for a deleted device.

#![expect(unsafe_code, reason = "hands calls on to Wine")]

use crate::{
    kernel::{call_stack, irql},
    lock::lock,
    nt::{DISPATCH_LEVEL, Pointer},
    state::{kernel::WorkItemOwner, machine::MACHINE},
    violation::{self, catch_panic},
};
use std::ptr;

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn IoAllocateWorkItem(device: Pointer) -> Pointer;
    fn IoQueueWorkItem(item: Pointer, routine: Pointer, queue: u32, context: Pointer);
    fn IoFreeWorkItem(item: Pointer);
    fn ObfDereferenceObject(object: Pointer) -> isize;
    fn ObfReferenceObject(object: Pointer) -> isize;
}

/// Implements IoAllocateWorkItem.
pub unsafe extern "system" fn allocate(device: Pointer) -> Pointer {
    catch_panic("IoAllocateWorkItem", ptr::null_mut(), || {
        irql::check("IoAllocateWorkItem", DISPATCH_LEVEL);
        if call_stack::fails("IoAllocateWorkItem") {
            return ptr::null_mut();
        }
        if device.is_null() {
            violation::other("IoAllocateWorkItem without a device");
            return ptr::null_mut();
        }
        // SAFETY: the arguments are the driver's own.
        let item = unsafe { IoAllocateWorkItem(device) };
        // SAFETY: the device is the driver's.
        unsafe { ObfReferenceObject(device) };
        lock(&MACHINE.kernel.work_items)
            .insert(item.addr(), WorkItemOwner { device: device.expose_provenance(), deleted: false });
        item
    })
}

/// Implements IoQueueWorkItem.
pub unsafe extern "system" fn queue(item: Pointer, routine: Pointer, queue: u32, context: Pointer) {
    catch_panic("IoQueueWorkItem", (), || {
        irql::check("IoQueueWorkItem", DISPATCH_LEVEL);
        match lock(&MACHINE.kernel.work_items).get(&item.addr()) {
            Some(WorkItemOwner { deleted: false, .. }) => {}
            Some(_) => violation::other("IoQueueWorkItem for a device that is deleted"),
            None => return violation::other(format!("IoQueueWorkItem of {item:p}, which is not allocated")),
        }
        // SAFETY: the arguments are the driver's own.
        unsafe { IoQueueWorkItem(item, routine, queue, context) };
    });
}

/// Implements IoFreeWorkItem.
pub unsafe extern "system" fn free(item: Pointer) {
    catch_panic("IoFreeWorkItem", (), || {
        irql::check("IoFreeWorkItem", DISPATCH_LEVEL);
        let Some(owner) = lock(&MACHINE.kernel.work_items).remove(&item.addr()) else {
            return violation::other(format!("IoFreeWorkItem of {item:p}, which is not allocated"));
        };
        // SAFETY: the arguments are the driver's own.
        unsafe { IoFreeWorkItem(item) };
        release(owner);
    });
}

fn release(WorkItemOwner { device, .. }: WorkItemOwner) {
    // SAFETY: releases the reference that `allocate` took, once.
    unsafe { ObfDereferenceObject(ptr::with_exposed_provenance_mut(device)) };
}

/// Records that a device is deleted: no work item may be queued for it any more.
pub fn device_deleted(device: Pointer) {
    for owner in lock(&MACHINE.kernel.work_items).values_mut().filter(|owner| owner.device == device.addr()) {
        owner.deleted = true;
    }
}

/// Reports and removes what an unloaded driver left behind.
pub fn image_unloaded() {
    let left = std::mem::take(&mut *lock(&MACHINE.kernel.work_items));
    if !left.is_empty() {
        violation::other("a driver was unloaded that had work items");
    }
    left.into_values().for_each(release);
}
