//! Which call fails: the next one with a stack with which none has failed. The state is that of one thread.

#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ptr;

/// Whether a call with a stack can fail, and whether one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stack {
    /// It is not one of the engine, or panics on failure.
    Other,
    Failed,
}

thread_local! {
    /// Whether code of the engine runs.
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
    /// Whether the next call with a new stack fails.
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
    /// Whether this code itself allocates.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
    static FAILED: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// A function that must not fail.
    static SPARED: Cell<Option<&'static str>> = const { Cell::new(None) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static STACKS: RefCell<BTreeMap<u64, Stack>> = const { RefCell::new(BTreeMap::new()) };
}

/// The functions of this file.
pub struct Injection;

impl Injection {
    /// Makes every stack a new one.
    pub fn forget_stacks() {
        apart(|| STACKS.with_borrow_mut(BTreeMap::clear));
    }

    /// Makes the next call with a new stack fail, or none. Forgets which failed.
    pub fn arm(is_armed: bool) {
        IS_ARMED.set(is_armed);
        FAILED.set(None);
    }

    /// Returns the function that failed.
    pub fn failed() -> Option<&'static str> {
        FAILED.get()
    }

    /// Returns the bytes that are allocated on this thread, without those of this file.
    pub fn live_bytes() -> i64 {
        LIVE.get()
    }

    /// Runs code of the engine: what it calls may fail.
    pub fn engine<T>(work: impl FnOnce() -> T) -> T {
        IS_ENGINE.set(true);
        let result = work();
        IS_ENGINE.set(false);
        result
    }

    /// Runs `work`, in which this function does not fail.
    pub fn sparing<T>(function: &'static str, work: impl FnOnce() -> T) -> T {
        SPARED.set(Some(function));
        let result = work();
        SPARED.set(None);
        result
    }

    /// Returns whether a call of the platform fails.
    pub fn decide(function: &'static str) -> bool {
        IS_ENGINE.get() && SPARED.get() != Some(function) && fails(function, |_| true)
    }
}

/// Runs code of this file.
fn apart<T>(work: impl FnOnce() -> T) -> T {
    let before = IS_BUSY.replace(true);
    let result = work();
    IS_BUSY.set(before);
    result
}

/// Returns whether a call fails: whether its stack is new, and `can_fail` for the names in it.
fn fails(function: &'static str, can_fail: impl FnOnce(&[String]) -> bool) -> bool {
    if !IS_ARMED.get() || IS_BUSY.get() {
        return false;
    }
    apart(|| {
        let mut hasher = DefaultHasher::new();
        function.hash(&mut hasher);
        backtrace::trace(|frame| {
            frame.ip().addr().hash(&mut hasher);
            true
        });
        let fails = STACKS.with_borrow_mut(|stacks| {
            let new = stacks.entry(hasher.finish());
            let std::collections::btree_map::Entry::Vacant(new) = new else { return false };
            let fails = can_fail(&if function == "alloc" { names() } else { Vec::new() });
            new.insert(if fails { Stack::Failed } else { Stack::Other });
            fails
        });
        if fails {
            IS_ARMED.set(false);
            FAILED.set(Some(function));
        }
        fails
    })
}

/// Returns the names of the functions on the stack, the innermost first, with those that were inlined.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| names.extend(symbol.name().map(|name| format!("{name:#}"))));
        true
    });
    names
}

/// Returns whether an allocation reports its failure: that of a vector that tries to grow, or of a ring.
fn is_fallible(names: &[String]) -> bool {
    names.iter().take_while(|name| !name.starts_with("engine::requests")).any(|name| {
        ["try_reserve", "try_with_capacity", "Memory>::allocate", "Memory::allocate"]
            .iter()
            .any(|part| name.contains(part))
    })
}

/// The system's allocator, with failures.
pub struct Allocator;

fn fails_to_allocate() -> bool {
    IS_ENGINE.try_with(Cell::get).unwrap_or(false) && fails("alloc", is_fallible)
}

fn count(bytes: i64) {
    if !IS_BUSY.try_with(Cell::get).unwrap_or(true) {
        let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: memory comes from the system's allocator and is returned to it with the same layout; a null pointer is a
// failure
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails_to_allocate() {
            return ptr::null_mut();
        }
        count(signed(layout.size()));
        // SAFETY: guaranteed by the caller
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: guaranteed by the caller
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails_to_allocate() {
            return ptr::null_mut();
        }
        count(signed(size) - signed(layout.size()));
        // SAFETY: guaranteed by the caller
        unsafe { System.realloc(start, layout, size) }
    }
}
