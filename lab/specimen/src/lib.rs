//! specimen.sys: a driver that does, on demand, what no driver may do, so that tests see that the lab notices; and some
//! things that all may, so that they see that it lets them.
//!
//! | request | what it does |
//! |---|---|
//! | [`BEGIN`](code::BEGIN) | registers a handler of the profile interrupt, and makes counter 0 of every processor interrupt |
//! | [`REPORT`](code::REPORT) | tells what the handler saw |
//! | [`END`](code::END) | takes the handler away, and tells whether it ran before and after KeIpiGenericCall |
//! | [`HOLD`](code::HOLD) | waits for the handler to complete it |
//! | [`FATE`](code::FATE) | completes in a wrong way |
//!
//! The counters are those of AMD's first interface.

#![cfg(windows)]
#![no_std]
#![expect(unsafe_code, reason = "a driver")]

mod handler;
mod kernel;

use core::{panic::PanicInfo, ptr};
use kernel::{Irp, NtStatus, Pointer, STATUS_PENDING, STATUS_SUCCESS, STATUS_UNSUCCESSFUL, Text};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Control codes: METHOD_BUFFERED, any access.
mod code {
    const fn of(function: u32) -> u32 {
        0x8000 << 16 | function << 2
    }

    /// In: a deed of the handler, by its number in `handler::DEEDS`, and milliseconds that it takes.
    pub const BEGIN: u32 = of(0x800);
    /// Out: a `handler::Report`.
    pub const REPORT: u32 = of(0x801);
    /// Out: on how many processors the handler ran before KeIpiGenericCall, and after.
    pub const END: u32 = of(0x802);
    /// Nothing.
    pub const HOLD: u32 = of(0x803);
    /// In: which way.
    pub const FATE: u32 = of(0x804);
}

static NAME: [u16; 17] = wide(b"\\Device\\specimen\0");
static LINK: [u16; 21] = wide(b"\\DosDevices\\specimen\0");

#[expect(clippy::indexing_slicing, reason = "evaluated when compiled, where an index out of bounds is an error")]
const fn wide<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut wide = [0; N];
    let mut at = 0;
    while at < N {
        wide[at] = text[at] as u16;
        at += 1;
    }
    wide
}

/// The I/O manager's first call.
///
/// # Safety
/// With a DRIVER_OBJECT.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DriverEntry(driver: Pointer, _registry_path: Pointer) -> NtStatus {
    // SAFETY: an import that the lab is to notice, and that takes nothing.
    unsafe { kernel::IoGetCurrentProcess() };
    let mut device = ptr::null_mut();
    let (name, link) = (Text::new(&NAME), Text::new(&LINK));
    // SAFETY: the name is counted and only read; the device may be written.
    let status = unsafe { kernel::IoCreateDevice(driver, 0, &raw const name, 0x8000, 0, 0, &raw mut device) };
    if status < 0 {
        return status;
    }
    // SAFETY: both names are counted and only read.
    let status = unsafe { kernel::IoCreateSymbolicLink(&raw const link, &raw const name) };
    if status < 0 {
        // SAFETY: made above.
        unsafe { kernel::IoDeleteDevice(device) };
        return status;
    }
    handler::initialize();
    // SAFETY: the I/O manager's driver object.
    unsafe { kernel::set_routines(driver, dispatch, unload) };
    STATUS_SUCCESS
}

unsafe extern "system" fn unload(driver: Pointer) {
    let link = Text::new(&LINK);
    // SAFETY: the name is counted and only read.
    unsafe { kernel::IoDeleteSymbolicLink(&raw const link) };
    // SAFETY: the I/O manager's driver object.
    let device = unsafe { kernel::device_of(driver) };
    // SAFETY: DriverEntry made it.
    unsafe { kernel::IoDeleteDevice(device) };
}

unsafe extern "system" fn dispatch(_device: Pointer, irp: *mut Irp) -> NtStatus {
    // SAFETY: the I/O manager's request, which is this driver's now.
    let request = unsafe { &mut *irp };
    let Some((code, [first, second])) = request.control() else { return request.complete(STATUS_SUCCESS, &[]) };
    match code {
        code::BEGIN => {
            let status = handler::begin(first, second);
            request.complete(status, &[])
        }
        code::REPORT => {
            let report = handler::report();
            request.complete(STATUS_SUCCESS, &report)
        }
        code::END => {
            let ran = handler::end();
            request.complete(STATUS_SUCCESS, &ran)
        }
        code::HOLD => {
            request.mark_pending();
            handler::hold(irp);
            STATUS_PENDING
        }
        code::FATE => fate(request, first),
        _ => request.complete(STATUS_UNSUCCESSFUL, &[]),
    }
}

fn fate(request: &mut Irp, which: u32) -> NtStatus {
    match which {
        0 => {
            request.complete(STATUS_SUCCESS, &[]);
            STATUS_PENDING
        }
        1 => {
            request.mark_pending();
            request.complete(STATUS_SUCCESS, &[])
        }
        2 => {
            request.leave_cancel_routine();
            request.complete(STATUS_SUCCESS, &[])
        }
        _ => request.complete(STATUS_PENDING, &[]),
    }
}
