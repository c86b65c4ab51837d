//! A thread that competes for a processor, and the priority with which a thread wins.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{
    GetCurrentThread, GetThreadPriority, SetThreadPriority, THREAD_PRIORITY_TIME_CRITICAL,
};
use windows_sys::Win32::System::WindowsProgramming::THREAD_PRIORITY_ERROR_RETURN;

use super::convert::succeeded;
use super::known_work::{execute_here, stay_on};
use crate::known_work::{Function, KnownWork};

/// Less than a millisecond, after which the thread ends if it was asked to.
const PIECE: KnownWork = KnownWork { function: Function::Second, iterations: 100_000 };

/// A thread that competes for a processor. It ends when this is dropped.
pub struct Competitor {
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Competitor {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Starts a thread that executes work on a processor all the time.
pub fn compete(processor: u32) -> io::Result<Competitor> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let (sender, moved) = mpsc::sync_channel(1);
    let seen = Arc::clone(&has_ended);
    let thread = thread::Builder::new().spawn(move || {
        let outcome = stay_on(processor);
        let is_there = outcome.is_ok();
        // The receiver waits for it.
        let _ = sender.send(outcome);
        while is_there && !seen.load(Ordering::Relaxed) {
            execute_here(PIECE);
        }
    })?;
    let competitor = Competitor { has_ended, thread: Some(thread) };
    moved.recv().map_err(io::Error::other)??;
    Ok(competitor)
}

/// The priority of this thread before it was raised, to which it returns when this is dropped.
pub struct RaisedPriority(i32);

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        // If Windows refuses, the priority stays until the client ends.
        let _ = set_priority(self.0);
    }
}

/// Gives this thread the highest priority outside of the real-time class, above every usual thread of every process.
pub fn raise_priority() -> io::Result<RaisedPriority> {
    // SAFETY: the pseudo-handle is always valid.
    let before = unsafe { GetThreadPriority(current_thread()) };
    if before.cast_unsigned() == THREAD_PRIORITY_ERROR_RETURN {
        return Err(io::Error::last_os_error());
    }
    set_priority(THREAD_PRIORITY_TIME_CRITICAL)?;
    Ok(RaisedPriority(before))
}

fn set_priority(priority: i32) -> io::Result<()> {
    // SAFETY: the pseudo-handle is always valid.
    succeeded(unsafe { SetThreadPriority(current_thread(), priority) })
}

fn current_thread() -> HANDLE {
    // SAFETY: takes nothing, and the pseudo-handle needs no closing.
    unsafe { GetCurrentThread() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority() -> i32 {
        // SAFETY: the pseudo-handle is always valid.
        unsafe { GetThreadPriority(current_thread()) }
    }

    #[test]
    fn the_priority_is_raised_until_it_is_dropped() {
        let before = priority();
        let raised = raise_priority().unwrap();
        assert_eq!(priority(), THREAD_PRIORITY_TIME_CRITICAL);
        drop(raised);
        assert_eq!(priority(), before);
    }

    #[test]
    fn a_competitor_ends_when_it_is_dropped_and_needs_a_processor() {
        let competitor = compete(0).unwrap();
        let has_ended = Arc::clone(&competitor.has_ended);
        assert!(!has_ended.load(Ordering::Relaxed));
        drop(competitor);
        assert!(has_ended.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&has_ended), 1, "the thread has dropped its own");
        assert_eq!(compete(100_000).err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
