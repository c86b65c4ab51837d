//! thread-profiling.dll: a stand-in for thread profiling in user mode. `launcher` loads it into a program before its
//! first instruction.
//!
//! GetProcAddress finds EnableThreadProfiling, ReadThreadProfilingData, DisableThreadProfiling and
//! QueryThreadProfiling in kernel32.dll, which Wine lacks, and QueryInterruptTime in kernelbase.dll. They and the
//! functions for the processor of a thread ask the lab, which schedules the program's threads on its own processors.
//! A script in the environment ([`THREAD_SCRIPT`](bench_protocol::THREAD_SCRIPT)) says how, and which functions are
//! missing or fail.
//!
//! A program says by an export what its current thread executes, because Wine executes its instructions on the
//! processor of this machine, where they are not counted. It finds the exports with `GetProcAddress` in the module
//! `thread-profiling.dll`, which exists under the bench only:
//!
//! | export | effect |
//! |---|---|
//! | `bench_execute_event(event, umask, user, kernel)` | executes so many events of one kind in each mode |
//! | `bench_execute(user, user_count, kernel, kernel_count)` | executes arrays of events ([`exports::Event`]) |
//! | `bench_ledger(event, umask, mode)` | returns how many events of a kind the thread has executed in user mode (0), in kernel mode (1), or in interrupts (2) |
//! | `bench_switches()` | returns how often the thread was switched out |
//!
//! | module | contents |
//! |---|---|
//! | `hook` | redirects functions |
//! | `lookup` | GetProcAddress |
//! | `profiling` | the functions of thread profiling |
//! | `memory` | what the handle of a profile points to |
//! | `processor` | affinity and number of processors, and the interrupt time |
//! | `exports` | what a program executes |
//! | `lab` | the script and the connection to the lab |

#![cfg(windows)]

pub mod exports;
mod hook;
mod lab;
mod lookup;
mod memory;
mod processor;
mod profiling;

use std::ffi::c_void;
use windows_sys::Win32::{
    Foundation::{FALSE, HINSTANCE, TRUE},
    System::SystemServices::{DLL_PROCESS_ATTACH, DLL_THREAD_DETACH},
};
use windows_sys::core::BOOL;

/// The entry point. It runs under the loader lock, so it does not connect to the lab. Without a valid script, or
/// without one of the functions to redirect, the library is not loaded.
///
/// # Safety
/// Only the loader calls it.
#[expect(unsafe_code, reason = "the name is the loader's")]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DllMain(_library: HINSTANCE, reason: u32, _reserved: *mut c_void) -> BOOL {
    match reason {
        DLL_PROCESS_ATTACH => match lab::read_script().and_then(|()| hook::redirect()) {
            Ok(()) => TRUE,
            Err(why) => {
                eprintln!("thread-profiling.dll: {why}");
                FALSE
            }
        },
        DLL_THREAD_DETACH => {
            lab::end_thread();
            TRUE
        }
        _ => TRUE,
    }
}
