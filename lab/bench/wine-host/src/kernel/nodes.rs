//! The NUMA nodes of the machine: each has two processors, in the order of their numbers.

#![expect(unsafe_code, reason = "writes what the driver points to")]

use crate::{
    kernel::group_affinity::GroupAffinity,
    state::machine::MACHINE,
    violation::{self, catch_panic},
};

const PROCESSORS_PER_NODE: u32 = 2;

/// Returns the number of the last node.
pub fn highest() -> u32 {
    MACHINE.topology.maximum().saturating_sub(1) / PROCESSORS_PER_NODE
}

/// Implements KeQueryHighestNodeNumber.
pub extern "system" fn query_highest() -> u16 {
    u16::try_from(highest()).unwrap_or(u16::MAX)
}

/// Implements KeQueryNodeActiveAffinity.
pub unsafe extern "system" fn query_active(node: u16, affinity: *mut GroupAffinity, count: *mut u16) {
    catch_panic("KeQueryNodeActiveAffinity", (), || {
        if u32::from(node) > highest() {
            return violation::other(format!("KeQueryNodeActiveAffinity of node {node}"));
        }
        let first = u32::from(node) * PROCESSORS_PER_NODE;
        let processors = first..(first + PROCESSORS_PER_NODE).min(MACHINE.topology.active());
        let mask = processors.clone().fold(0, |mask, number| mask | 1 << number);
        if !affinity.is_null() {
            // SAFETY: the pointer is not null, so it must point to a variable of the driver.
            unsafe { affinity.write(GroupAffinity::of_group_0(mask)) };
        }
        if !count.is_null() {
            let active = u16::try_from(processors.len()).unwrap_or(u16::MAX);
            // SAFETY: the pointer is not null, so it must point to a variable of the driver.
            unsafe { count.write(active) };
        }
    });
}
