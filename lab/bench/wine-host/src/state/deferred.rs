//! The DPCs and timers of drivers.

use crate::{
    cpu::topology::MAX_PROCESSORS,
    state::{dpc_queues::DpcQueues, timers::Timers},
};
use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex},
};

/// The deferred work, and the notification of its changes.
pub struct Deferred {
    pub work: Mutex<DeferredWork>,
    pub changed: Condvar,
}

impl Default for Deferred {
    fn default() -> Self {
        let dpcs = DpcQueues::new(usize::try_from(MAX_PROCESSORS).unwrap_or_default());
        let work = DeferredWork { dpcs, timers: Timers::default(), ticks: BTreeMap::new(), stop: false };
        Self { work: Mutex::new(work), changed: Condvar::new() }
    }
}

/// The DPCs and timers of the machine. The holder of its lock may access the registered objects.
pub struct DeferredWork {
    pub dpcs: DpcQueues,
    pub timers: Timers,
    /// By processor, how many more times its timers expire by script.
    pub ticks: BTreeMap<u32, u64>,
    /// Set when the threads that run the work must end.
    pub stop: bool,
}
