//! Tells instrumented code which mutant is active. Exists in the scratch tree of `cargo xtask mutate` only.
#![feature(core_intrinsics, const_eval_select)]
#![allow(internal_features)]

use std::{
    ffi::{CStr, c_char},
    io::Write,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// No variable was read yet.
const UNKNOWN: u32 = u32::MAX;
/// Numbers of reached mutants are written to a file.
const RECORDS: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];

unsafe extern "C" {
    safe fn getenv(name: *const c_char) -> *const c_char;
}

/// Returns whether a mutant is active; never while the compiler evaluates constants.
pub const fn is_active(number: u32) -> bool {
    core::intrinsics::const_eval_select((number,), never, is_active_now)
}

const fn never(_: u32) -> bool {
    false
}

#[inline]
fn is_active_now(number: u32) -> bool {
    let active = ACTIVE.load(Ordering::Relaxed);
    active == number || (active >= RECORDS && is_active_first(number))
}

#[cold]
fn is_active_first(number: u32) -> bool {
    if ACTIVE.load(Ordering::Relaxed) == UNKNOWN {
        let active = if variable(c"HALPROF_REACHED").is_some() {
            RECORDS
        } else {
            variable(c"HALPROF_MUTANT").and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        ACTIVE.store(active, Ordering::Relaxed);
        return is_active_now(number);
    }
    if !REACHED[number as usize].swap(true, Ordering::Relaxed) {
        let path = variable(c"HALPROF_REACHED").unwrap_or_default();
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.unwrap().write_all(format!("{number}\n").as_bytes()).unwrap();
    }
    false
}

/// Reads a variable without an allocation, which some tests count.
fn variable(name: &CStr) -> Option<&'static str> {
    let text = getenv(name.as_ptr());
    // SAFETY: getenv returns a C string, and the program does not change its environment
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default())
}
