//! etw.dll: a stand-in for Event Tracing for Windows in user mode. `launcher` loads it into a program before its
//! first instruction. It redirects the functions of sechost.dll, of which Wine only has stubs, and takes the events of
//! drivers from the lab.
//!
//! A script in the environment ([`TRACE_SCRIPT`](bench_protocol::TRACE_SCRIPT)) says which functions fail, and in which
//! disorder events and stacks are delivered. `etw-model` has the behavior that the documentation describes, and is
//! tested without Windows.
//!
//! | module | contents |
//! |---|---|
//! | `hook` | redirects functions |
//! | `machine` | the script, the sessions, and the connection to the lab |
//! | `control` | StartTraceW, EnableTraceEx2, ControlTraceW |
//! | `information` | TraceSetInformation, TraceQueryInformation, NtSetSystemInformation |
//! | `consumer` | OpenTraceW, ProcessTrace, CloseTrace |
//! | `kernel` | NtQuerySystemInformation |
//! | `profile_objects` | NtCreateProfileEx, NtStartProfile, NtStopProfile, which Wine lacks |
//! | `record` | EVENT_RECORD |
//! | `foreign` | strings, GUIDs and clocks |
//!
//! It differs from Windows in this: a session ends with the program that started it, because the lab disables the
//! providers of a connection that closes. The file of a session that is not in real time is text, not a trace file.

#![cfg(windows)]

mod consumer;
mod control;
mod foreign;
mod hook;
mod information;
mod kernel;
mod machine;
mod profile_objects;
mod record;

use std::ffi::c_void;
use windows_sys::Win32::{
    Foundation::{FALSE, HINSTANCE, TRUE},
    System::SystemServices::DLL_PROCESS_ATTACH,
};
use windows_sys::core::BOOL;

/// The entry point. It runs under the loader lock, so it does not connect to the lab. Without a valid script, or
/// without one of the functions, the library is not loaded.
///
/// # Safety
/// Only the loader calls it.
#[expect(unsafe_code, reason = "the name is the loader's")]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DllMain(_library: HINSTANCE, reason: u32, _reserved: *mut c_void) -> BOOL {
    if reason != DLL_PROCESS_ATTACH {
        return TRUE;
    }
    match machine::read_script().and_then(|()| hook::redirect()) {
        Ok(()) => TRUE,
        Err(why) => {
            eprintln!("etw.dll: {why}");
            FALSE
        }
    }
}
