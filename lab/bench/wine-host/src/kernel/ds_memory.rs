//! The memory that the Debug Store of a processor accesses, and architectural PEBS: nonpaged pool of drivers,
//! contiguous memory, and control areas.

use crate::{
    kernel::{control_areas, pool},
    violation,
};
use host_memory::ProcessMemory;
use model::Memory;

/// The memory of one processor.
pub struct DsMemory {
    /// Number of the processor.
    pub processor: u32,
}

impl DsMemory {
    /// Makes an access if memory is allocated there, and keeps it allocated meanwhile. Records a violation otherwise.
    fn access<T>(&self, address: u64, does: &str, access: impl FnOnce() -> T) -> Option<T> {
        let area = control_areas::pin(address);
        let block = if area.is_none() { pool::pin(address) } else { None };
        if area.is_some() || block.is_some() {
            return Some(access());
        }
        let processor = self.processor;
        violation::other(format!(
            "the Debug Store of processor {processor} {does} {address:#x}, which is not allocated nonpaged memory"
        ));
        None
    }
}

impl Memory for DsMemory {
    fn read(&self, address: u64) -> Option<u64> {
        self.access(address, "read", || ProcessMemory.read(address)).flatten()
    }

    fn write(&self, address: u64, value: u64) -> bool {
        self.access(address, "wrote to", || ProcessMemory.write(address, value)).unwrap_or_default()
    }

    fn linear(&self, physical: u64) -> Option<u64> {
        let linear = ProcessMemory.linear(physical);
        if linear.is_none() {
            let processor = self.processor;
            violation::other(format!(
                "processor {processor} wrote a record to the physical address {physical:#x}, where no contiguous memory is"
            ));
        }
        linear
    }
}
