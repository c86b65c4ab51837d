//! Calls of libraries that read files of others.
//!
//! A file can be valid and still meet a case that such a library did not expect: pdb-addr2line 0.11 panics on PDBs of
//! newer compilers. That must not end a report of which the file is a small part.
//!
//! | library | reads | guarded |
//! |---|---|---|
//! | object, gimli, addr2line, pdb-addr2line, demanglers | images, PDBs and their names | yes, in `symbols` |
//! | iced-x86 | machine code | yes, in `annotation` |
//! | ureq, rustls, cab | answers of symbol servers, packed files | yes, in `symbol_servers` |
//! | authenticode, cms, der, x509-cert | the signature of a driver's file | yes, in the client's `signature` |
//! | object | the headers of a driver's file | yes, in the client's `driver_file` |
//! | zstd | blocks of recordings | no: its C code returns errors as numbers, and cannot panic |
//! | serde_json | perfmon's files, saved counts, the cache of events | no: it returns errors, and nothing remains of a file without its value |
//! | toml | `agent.toml` | no: only the administrator of the machine writes it |
//! | hyper, rustls | requests to the agent | no: tokio ends the task of the connection, and nothing else |
//!
//! The readers of recordings, CPUID dumps, perf maps, events and expressions are no libraries of others. They contain
//! no code that panics, which the lints demand, and are fuzzed (`lab/random/fuzz-laws`), as zstd and serde_json are
//! with them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught here, and therefore reported by the caller.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`, and returns a panic of it as an error with its message. What `work` changed can then be inconsistent:
/// the caller must not use it again. Nothing is printed.
///
/// # Errors
/// The message of the panic.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    set_hook();
    let outer = IS_GUARDED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(outer);
    done.map_err(|panic| format!("the library that reads it failed: {}", message(&*panic)))
}

/// Lets a guarded thread print nothing when it panics.
fn set_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if !IS_GUARDED.get() {
                before(information);
            }
        }));
    });
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it gave no reason")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message_and_the_next_call_works() {
        type Work = fn() -> u32;
        let works: [(Work, Result<u32, &str>); 5] = [
            (|| panic!("no such type"), Err("no such type")),
            (|| 5, Ok(5)),
            (|| panic!("type {}", std::process::id().min(7)), Err("type 7")),
            (|| panic::panic_any(5), Err("it gave no reason")),
            (|| guarded(|| panic!("inner")).unwrap_or(6), Ok(6)),
        ];
        for (work, wanted) in works {
            let wanted = wanted.map_err(|text| format!("the library that reads it failed: {text}"));
            assert_eq!(guarded(work), wanted);
            assert!(!IS_GUARDED.get());
        }
    }
}
