//! The callback objects of the executive, and the routines that drivers register.

use crate::{
    nt::{NtStatus, Pointer},
    state::registry::Registry,
};
use std::{ffi::c_void, ops::Range, sync::Mutex};

/// The name of the object that exists from the start.
const POWER_STATE: &str = "\\Callback\\PowerState";

/// The callback objects and their registrations.
pub struct Callbacks {
    /// The objects; the first is `\Callback\PowerState`.
    pub objects: Mutex<Vec<CallbackObject>>,
    pub registry: Registry<CallbackRegistration>,
}

impl Default for Callbacks {
    fn default() -> Self {
        let power_state = CallbackObject { name: POWER_STATE.to_owned(), references: 0 };
        Self { objects: Mutex::new(vec![power_state]), registry: Registry::new() }
    }
}

pub struct CallbackObject {
    pub name: String,
    /// References of drivers, without those of registrations.
    pub references: u64,
}

/// CALLBACK_FUNCTION.
pub type CallbackRoutine = unsafe extern "system" fn(Pointer, Pointer, Pointer);

/// A registration with ExRegisterCallback.
#[derive(Clone, Copy)]
pub struct CallbackRegistration {
    pub object: usize,
    pub routine: CallbackRoutine,
    /// A pointer of the driver, which the lab does not dereference.
    pub context: usize,
}

impl CallbackRegistration {
    pub fn is_in(&self, addresses: &Range<usize>) -> bool {
        addresses.contains(&(self.routine as *const ()).addr())
    }
}

/// The registrations for the addition of processors.
#[derive(Default)]
pub struct ProcessorChanges {
    pub registry: Registry<ChangeRegistration>,
    /// Held during an addition: there is one at a time.
    pub additions: Mutex<()>,
}

/// PROCESSOR_CALLBACK_FUNCTION. The second argument is a KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT.
pub type ChangeRoutine = unsafe extern "system" fn(Pointer, *const c_void, *mut NtStatus);

/// A registration with KeRegisterProcessorChangeCallback.
#[derive(Clone, Copy)]
pub struct ChangeRegistration {
    pub routine: ChangeRoutine,
    /// A pointer of the driver, which the lab does not dereference.
    pub context: usize,
}

impl ChangeRegistration {
    pub fn is_in(&self, addresses: &Range<usize>) -> bool {
        addresses.contains(&(self.routine as *const ()).addr())
    }
}
