//! Redirects the functions for sessions and consumers.

#![expect(unsafe_code, reason = "changes code")]

use crate::{consumer, control, information, kernel, profile_objects};
use redirect::Library;
use std::{ffi::CStr, mem};

/// Libraries that export the functions. The second forwards to the first, or has functions of its own.
const LIBRARIES: [&str; 2] = ["sechost.dll", "advapi32.dll"];

/// Redirects the functions for sessions and consumers.
pub fn redirect() -> Result<(), String> {
    let functions: [(&CStr, *const ()); 7] = [
        (c"StartTraceW", control::start as *const ()),
        (c"EnableTraceEx2", control::enable as *const ()),
        (c"ControlTraceW", control::control as *const ()),
        (c"TraceSetInformation", information::set as *const ()),
        (c"OpenTraceW", consumer::open as *const ()),
        (c"ProcessTrace", consumer::process as *const ()),
        (c"CloseTrace", consumer::close as *const ()),
    ];
    for library in LIBRARIES {
        let library = Library::load(library)?;
        for (name, function) in functions {
            // SAFETY: no other thread of the program runs yet. Each of our functions has the type of Wine's, whose code
            // is longer than a jump or padded to 16 bytes.
            unsafe { library.redirect(name, function)? };
        }
    }
    // Only the first library exports it.
    let query = information::query as *const ();
    // SAFETY: as above.
    unsafe { Library::load(LIBRARIES[0])?.redirect(c"TraceQueryInformation", query)? };
    let set = information::change_sources as *const ();
    // SAFETY: the program does not run yet, and the functions have the same type.
    unsafe { Library::load("ntdll.dll")?.replace_import(c"NtSetSystemInformation", set)? };
    let find = profile_objects::find as *const ();
    // SAFETY: the program does not run yet, and the functions have the same type.
    let original = unsafe { Library::load("kernel32.dll")?.replace_import(c"GetProcAddress", find)? };
    // SAFETY: it is the function of this name.
    profile_objects::set_original(unsafe { mem::transmute::<*const (), profile_objects::Find>(original) });
    let query = kernel::query as *const ();
    // SAFETY: the program does not run yet, and the functions have the same type.
    let original = unsafe { Library::load("ntdll.dll")?.replace_import(c"NtQuerySystemInformation", query)? };
    // SAFETY: it is the function of this name.
    kernel::set_original(unsafe { mem::transmute::<*const (), kernel::Query>(original) })
}
