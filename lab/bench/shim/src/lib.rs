//! shim.sys: a kernel service that loads lab.dll into the process in which Wine will run the driver.
//!
//! Services of one load-order group share a process. The shim loads `C:\lab\lab.dll` and calls its `lab_start`, and on
//! unload its `lab_stop`. Everything else is in lab.dll, which is ordinary Rust.

#![cfg(windows)]
#![no_std]
#![expect(unsafe_code, reason = "calls the loader, and a DLL by the address of its functions")]

use core::{
    ffi::{CStr, c_void},
    mem,
    panic::PanicInfo,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

type Pointer = *mut c_void;
type NtStatus = i32;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// UNICODE_STRING and ANSI_STRING: lengths in bytes.
#[repr(C)]
struct Text {
    length: u16,
    maximum: u16,
    buffer: *const c_void,
}

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn LdrLoadDll(path: *const u16, flags: u32, name: *const Text, base: *mut Pointer) -> NtStatus;
    fn LdrGetProcedureAddress(base: Pointer, name: *const Text, ordinal: u32, address: *mut Pointer) -> NtStatus;
    fn LdrUnloadDll(base: Pointer) -> NtStatus;
}

/// Length of the path in bytes, without the NUL, which Wine requires nevertheless.
const PATH_LENGTH: u16 = 2 * 14;
static PATH: [u16; 15] = wide(b"C:\\lab\\lab.dll\0");

/// Offset of `DRIVER_OBJECT.DriverUnload` (wdm.h, x64).
const DRIVER_UNLOAD: usize = 0x68;

/// The base address of lab.dll.
static LAB: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

#[expect(clippy::indexing_slicing, reason = "const evaluation: an index out of bounds does not compile")]
const fn wide<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut wide = [0; N];
    let mut at = 0;
    while at < N {
        wide[at] = text[at] as u16;
        at += 1;
    }
    wide
}

/// Calls a function of lab.dll that has no parameters and returns an NTSTATUS.
fn call(name: &CStr) -> NtStatus {
    let length = u16::try_from(name.count_bytes()).unwrap_or_default();
    let text = Text { length, maximum: length, buffer: name.as_ptr().cast() };
    let mut address = ptr::null_mut();
    // SAFETY: LAB is loaded, the name is a counted string, and `address` is writable.
    let status = unsafe { LdrGetProcedureAddress(LAB.load(Ordering::Acquire), &raw const text, 0, &raw mut address) };
    if status < 0 {
        return status;
    }
    // SAFETY: `lab_start` and `lab_stop`, which are looked up here, have this type.
    let function = unsafe { mem::transmute::<Pointer, extern "system" fn() -> NtStatus>(address) };
    function()
}

extern "system" fn unload(_driver: Pointer) {
    if call(c"lab_stop") >= 0 {
        // SAFETY: DriverEntry loaded it, and lab_stop has ended its threads and removed its callbacks.
        unsafe { LdrUnloadDll(LAB.load(Ordering::Acquire)) };
    }
}

/// Loads and starts the lab.
///
/// # Safety
/// Wine calls this with a DRIVER_OBJECT and the path of the service's registry key. Because the image imports ntdll,
/// Wine also calls it as `DllMain`, with a small number instead of the path.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DriverEntry(driver: Pointer, registry_path: Pointer) -> NtStatus {
    if registry_path.addr() < 4 {
        return 1;
    }
    let path = Text { length: PATH_LENGTH, maximum: PATH_LENGTH, buffer: PATH.as_ptr().cast() };
    let mut base = ptr::null_mut();
    // SAFETY: the path is a counted string, and `base` is writable.
    let status = unsafe { LdrLoadDll(ptr::null(), 0, &raw const path, &raw mut base) };
    if status < 0 {
        return status;
    }
    LAB.store(base, Ordering::Release);
    let status = call(c"lab_start");
    if status != 0 {
        // SAFETY: loaded above. If the start failed, nothing of the lab runs. If the lab was already running for an
        // earlier shim, that shim's reference keeps it loaded.
        unsafe { LdrUnloadDll(base) };
    }
    if status < 0 {
        return status;
    }
    // SAFETY: the offset is inside the DRIVER_OBJECT.
    let slot = unsafe { driver.byte_add(DRIVER_UNLOAD) };
    // SAFETY: the slot holds the address of a function of this type.
    unsafe { slot.cast::<extern "system" fn(Pointer)>().write(unload) };
    0
}
