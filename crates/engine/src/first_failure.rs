//! What the first of several processors reports that run the same code at the same time.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmu::ProcessorIndex;
use protocol::{ErrorCode, NtStatus};

use crate::reply::Refusal;

/// Stands for no processor.
const NOWHERE: u32 = u32::MAX;

/// The first failure among processors that run the same code at the same time.
#[derive(Debug)]
pub struct FirstFailure {
    processor: AtomicU32,
    detail: [AtomicU64; 2],
}

impl FirstFailure {
    /// Returns that no processor failed.
    pub const fn none() -> Self {
        Self { processor: AtomicU32::new(NOWHERE), detail: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Notes the failure of a processor, unless another failed before.
    pub fn set(&self, processor: ProcessorIndex, first: u64, second: u64) {
        let exchanged =
            self.processor.compare_exchange(NOWHERE, processor.number(), Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            for (cell, value) in self.detail.iter().zip([first, second]) {
                cell.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Returns the refusal, if a processor failed.
    pub fn refuse(self, status: NtStatus, cause: ErrorCode) -> Result<(), Refusal> {
        let [first, second] = self.detail.map(AtomicU64::into_inner);
        match self.processor.into_inner() {
            NOWHERE => Ok(()),
            processor => {
                Err(Refusal::new(status, cause).processor(ProcessorIndex::new(processor)).detail(first, second))
            }
        }
    }
}
