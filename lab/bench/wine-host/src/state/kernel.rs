//! The state of the kernel functions.

use crate::state::{
    armed_moment::ArmedMoment,
    callbacks::{Callbacks, ProcessorChanges},
    control_areas::ControlAreas,
    deferred::Deferred,
    driver_object::DriverObject,
    hal::Hal,
    images::LoadedImage,
    ipi::Ipi,
    irp_tracker::IrpTracker,
    pool::Pool,
    request_script::RequestScript,
    stepping::Stepping,
    system_threads::SystemThreads,
    threads::Threads,
    tracing::Tracing,
    windows::{Security, Windows},
};
use std::{
    collections::BTreeMap,
    ffi::c_void,
    sync::{Mutex, RwLock, atomic::AtomicPtr},
};

/// The state of the kernel functions, by area.
#[derive(Default)]
pub struct Kernel {
    pub armed_moment: ArmedMoment,
    pub callbacks: Callbacks,
    pub control_areas: ControlAreas,
    pub deferred: Deferred,
    pub driver_object: DriverObject,
    /// The handle of the exception handler, or null.
    pub exception_handler: AtomicPtr<c_void>,
    pub hal: Hal,
    /// The loaded drivers.
    pub images: RwLock<Vec<LoadedImage>>,
    pub ipi: Ipi,
    pub pool: Mutex<Pool>,
    pub processor_changes: ProcessorChanges,
    pub request_script: RequestScript,
    pub requests: Mutex<IrpTracker>,
    pub security: Security,
    pub stepping: Stepping,
    pub system_threads: SystemThreads,
    pub threads: Threads,
    pub tracing: Tracing,
    pub windows: Windows,
    /// The work items by address.
    pub work_items: Mutex<BTreeMap<usize, WorkItemOwner>>,
}

/// The device of a work item.
pub struct WorkItemOwner {
    /// The lab holds a reference, so that a driver that queues the item too late causes a violation and not a crash.
    pub device: usize,
    pub deleted: bool,
}
