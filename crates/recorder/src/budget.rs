//! A limit for the memory of messages between two threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Memory that messages share.
#[derive(Debug)]
pub struct Budget {
    held: Mutex<usize>,
    released: Condvar,
    max: usize,
}

/// The share of a message, which ends when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// Creates a budget of so many bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), released: Condvar::new(), max })
    }

    /// Returns a share. Waits until others have ended if there is not enough left. A share that exceeds the budget is
    /// granted alone.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Share {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && *held + bytes > self.max {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += bytes;
        drop(held);
        Share { budget: Arc::clone(self), bytes }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.budget.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.saturating_sub(self.bytes);
        drop(held);
        self.budget.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_share_waits_until_enough_others_have_ended() {
        let budget = Budget::new(100);
        let (first, second) = (budget.take(60), budget.take(40));
        let (sender, receiver) = mpsc::channel();
        let waiting = thread::spawn({
            let budget = Arc::clone(&budget);
            move || sender.send(budget.take(50).bytes)
        });
        drop(second);
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "40 bytes are not enough");
        drop(first);
        assert_eq!(receiver.recv_timeout(Duration::from_mins(2)), Ok(50));
        waiting.join().unwrap().unwrap();
        assert_eq!(budget.take(1_000).bytes, 1_000);
        assert_eq!(*budget.held.lock().unwrap(), 0);
    }
}
