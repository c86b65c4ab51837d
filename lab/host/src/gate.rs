//! Who may execute on a processor where others of the same level must wait.

use crate::lock;
use std::sync::{Condvar, Mutex};

/// A lock that its holder may take again. For HIGH_LEVEL a processor has one, in which are a thread at that level, the
/// handler of the profile interrupt, and each access to a register of the processor: so the handler, which runs on a
/// thread of its own, is for the code that it interrupts one step, as on a real processor.
#[derive(Debug, Default)]
pub struct Gate {
    /// The thread inside, and how often it entered.
    inside: Mutex<Option<(u32, u32)>>,
    free: Condvar,
}

impl Gate {
    /// Waits until nobody else is inside.
    pub fn enter(&self, thread: u32) {
        let mut inside = lock(&self.inside);
        loop {
            match &mut *inside {
                None => break *inside = Some((thread, 1)),
                Some((holder, depth)) if *holder == thread => break *depth += 1,
                Some(_) => inside = self.free.wait(inside).unwrap_or_else(std::sync::PoisonError::into_inner),
            }
        }
    }

    /// Takes back one [`enter`](Self::enter) of this thread.
    pub fn leave(&self, thread: u32) {
        let mut inside = lock(&self.inside);
        match &mut *inside {
            Some((holder, depth)) if *holder == thread && *depth > 1 => *depth -= 1,
            Some((holder, _)) if *holder == thread => {
                *inside = None;
                self.free.notify_one();
            }
            _ => {}
        }
    }

    /// Waits until whoever is inside has left.
    pub fn pass(&self, thread: u32) {
        self.enter(thread);
        self.leave(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, AtomicU32, Ordering},
        thread,
        time::Duration,
    };

    #[test]
    fn one_thread_at_a_time_is_inside() {
        let (gate, inside) = (Gate::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for thread in 1..5 {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    for _ in 0..500 {
                        gate.enter(thread);
                        gate.enter(thread);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        gate.leave(thread);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        gate.leave(thread);
                    }
                });
            }
        });
    }

    #[test]
    fn passing_waits_for_who_is_inside() {
        let (gate, left) = (Gate::default(), AtomicBool::new(false));
        gate.enter(1);
        thread::scope(|scope| {
            let passer = scope.spawn(|| {
                gate.pass(2);
                assert!(left.load(Ordering::SeqCst));
            });
            thread::sleep(Duration::from_millis(30));
            left.store(true, Ordering::SeqCst);
            gate.leave(1);
            passer.join().unwrap();
        });
    }

    #[test]
    fn a_thread_that_is_not_inside_can_not_let_others_in() {
        let gate = Gate::default();
        gate.enter(1);
        gate.leave(2);
        assert_eq!(*lock(&gate.inside), Some((1, 1)));
    }
}
