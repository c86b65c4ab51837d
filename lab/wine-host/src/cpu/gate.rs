//! Who may execute on a processor where others of the same level must wait.

use crate::lock;
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
};

/// A lock that its holder may take again. For HIGH_LEVEL a processor has one, in which are a thread at that level, the
/// handler of the profile interrupt, and each access to a register of the processor: so the handler, which runs on a
/// thread of its own, is for the code that it interrupts one step, as on a real processor.
///
/// Who waits longest is the next: interrupts that follow each other without end do not keep everybody else out, as
/// between any two a real processor executes an instruction of what they interrupt.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread inside, and how often it entered.
    inside: Option<(u32, u32)>,
    /// Who waits, the first in front.
    waiting: VecDeque<u32>,
}

impl Gate {
    /// Waits until nobody else is inside.
    pub fn enter(&self, thread: u32) {
        let mut state = lock(&self.state);
        if let Some((_, depth)) = state.inside.as_mut().filter(|(holder, _)| *holder == thread) {
            *depth += 1;
            return;
        }
        state.waiting.push_back(thread);
        while state.inside.is_some() || state.waiting.front() != Some(&thread) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.pop_front();
        state.inside = Some((thread, 1));
    }

    /// Takes back one [`enter`](Self::enter) of this thread.
    pub fn leave(&self, thread: u32) {
        let mut state = lock(&self.state);
        match &mut state.inside {
            Some((holder, depth)) if *holder == thread && *depth > 1 => *depth -= 1,
            Some((holder, _)) if *holder == thread => {
                state.inside = None;
                self.changed.notify_all();
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
        assert_eq!(lock(&gate.state).inside, Some((1, 1)));
    }

    #[test]
    fn who_waits_goes_before_who_comes_back() {
        let (gate, order) = (Gate::default(), Mutex::new(Vec::new()));
        gate.enter(1);
        thread::scope(|scope| {
            for waiting in 2..5 {
                let (gate, order) = (&gate, &order);
                scope.spawn(move || {
                    gate.enter(waiting);
                    lock(order).push(waiting);
                    gate.leave(waiting);
                });
                while lock(&gate.state).waiting.len() < usize::try_from(waiting).unwrap() - 1 {
                    thread::yield_now();
                }
            }
            gate.leave(1);
            gate.enter(1);
            assert_eq!(*lock(&order), [2, 3, 4]);
        });
    }
}
