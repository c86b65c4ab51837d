//! Redirects functions of Wine.

#![expect(unsafe_code, reason = "changes code")]

use crate::{lookup, processor};
use redirect::Library;
use std::ffi::CStr;

/// Redirects GetProcAddress and the functions for the processor of a thread.
pub fn redirect() -> Result<(), String> {
    let (kernel32, kernelbase) = (Library::load("kernel32.dll")?, Library::load("kernelbase.dll")?);
    lookup::set_libraries(kernel32.address(), kernelbase.address());
    let lookup: [(&CStr, *const ()); 1] = [(c"GetProcAddress", lookup::get_proc_address as *const ())];
    let groups: [(&CStr, *const ()); 2] = [
        (c"SetThreadGroupAffinity", processor::set_group_affinity as *const ()),
        (c"GetThreadGroupAffinity", processor::group_affinity as *const ()),
    ];
    let others: [(&CStr, *const ()); 4] = [
        (c"SetThreadAffinityMask", processor::set_affinity_mask as *const ()),
        (c"GetActiveProcessorCount", processor::active_count as *const ()),
        (c"GetCurrentProcessorNumber", processor::current as *const ()),
        (c"GetCurrentProcessorNumberEx", processor::current_ex as *const ()),
    ];
    // GetProcAddress last, because it finds the others.
    for (library, functions) in [
        (kernelbase, &groups[..]),
        (kernel32, &groups),
        (kernel32, &others),
        (kernelbase, &lookup),
        (kernel32, &lookup),
    ] {
        for (name, function) in functions {
            // SAFETY: no other thread of the program runs yet. Each of our functions has the type of Wine's, whose code
            // is longer than a jump or padded to 16 bytes.
            unsafe { library.redirect(name, *function)? };
        }
    }
    Ok(())
}
