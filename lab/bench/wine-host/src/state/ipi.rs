//! The calls of KeIpiGenericCall on the way to the processors.

use crate::{cpu::topology::MAX_PROCESSORS, lock::lock, nt::Pointer};
use std::sync::{Arc, Barrier, Condvar, Mutex, PoisonError, atomic::AtomicU64};

/// A mailbox for each processor.
pub struct Ipi {
    pub mailboxes: Vec<Mailbox>,
    /// Held during a call: as in Windows, there is one at a time.
    pub calls: Mutex<()>,
    /// The number of calls that each processor took part in.
    pub taken: Vec<AtomicU64>,
}

impl Default for Ipi {
    fn default() -> Self {
        Self {
            mailboxes: (0..MAX_PROCESSORS).map(|_| Mailbox::default()).collect(),
            calls: Mutex::default(),
            taken: (0..MAX_PROCESSORS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// KIPI_BROADCAST_WORKER.
pub type Routine = unsafe extern "system" fn(Pointer) -> Pointer;

/// A call, and the barriers at its start and end.
pub struct Call {
    pub routine: Routine,
    /// A pointer of the driver, which the lab does not dereference.
    pub argument: usize,
    pub begin: Barrier,
    pub end: Barrier,
}

/// The next call for one processor.
#[derive(Default)]
pub struct Mailbox {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

#[derive(Default)]
pub enum Mail {
    #[default]
    None,
    Call(Arc<Call>),
    Stop,
}

impl Mailbox {
    pub fn post(&self, mail: Mail) {
        *lock(&self.mail) = mail;
        self.arrived.notify_one();
    }

    /// Waits for a call. Returns None if the processor's thread must end.
    pub fn wait(&self) -> Option<Arc<Call>> {
        let mail = lock(&self.mail);
        let empty = |mail: &mut Mail| matches!(mail, Mail::None);
        let mut mail = self.arrived.wait_while(mail, empty).unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *mail) {
            Mail::Call(call) => Some(call),
            Mail::None | Mail::Stop => None,
        }
    }
}
