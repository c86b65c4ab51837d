//! Finds the code that an interrupt found, from the DPC that runs before the interrupt returns.
//!
//! A DPC gets no trap frame. It is called by the kernel's dispatcher, which an interrupt has entered, and the interrupt
//! has pushed a machine frame: RIP, CS, RFLAGS, RSP and SS (SDM Vol. 3A, "64-Bit Mode Stack Frame"). The unwind data of
//! x64, which exceptions need as well, say how to get from the DPC to that frame, and which frame it is. Nothing here
//! depends on a structure of the kernel. The walk ends at the first machine frame, and so it reads only the frames of
//! this driver and of the dispatcher.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;

use engine::machine_frame;
use wdk_sys::CONTEXT;
use wdk_sys::ntddk::RtlCaptureContext;

const _: () = assert!(size_of::<CONTEXT>() == 0x4D0 && align_of::<CONTEXT>() == 16);

/// Maximum number of frames between the DPC routine and the interrupt. Fewer than ten are known.
const MAX_FRAMES: u32 = 32;

/// Maximum number of function entries in a chain.
const MAX_CHAIN: u32 = 8;

/// UNW_FLAG_NHANDLER: no handler is called.
const NO_HANDLER: u32 = 0;

/// RUNTIME_FUNCTION: offsets in an image.
#[repr(C)]
#[derive(Clone, Copy)]
struct RuntimeFunction {
    begin: u32,
    end: u32,
    unwind_info: u32,
}

// Documented for user mode (winnt.h); the kernel exports them, and its exception dispatcher uses them.
unsafe extern "C" {
    fn RtlLookupFunctionEntry(pc: u64, base: *mut u64, history: *mut c_void) -> *const RuntimeFunction;
    fn RtlVirtualUnwind(
        kind: u32,
        base: u64,
        pc: u64,
        function: *const RuntimeFunction,
        context: *mut CONTEXT,
        data: *mut *mut c_void,
        frame: *mut u64,
        pointers: *mut c_void,
    ) -> *mut c_void;
}

/// Memory for the registers of the walk, which are too large for the stack. Each DPC has its own, since a DPC does not
/// run twice at a time.
pub struct Scratch(UnsafeCell<MaybeUninit<CONTEXT>>);

impl Default for Scratch {
    fn default() -> Self {
        Self(UnsafeCell::new(MaybeUninit::zeroed()))
    }
}

impl Scratch {
    /// Returns the address of the code to which the processor returns after this DPC and the interrupt that led to it,
    /// or `None` if no interrupt did, as on an idle processor, or if the unwind data do not tell.
    ///
    /// If the interrupt came above APC_LEVEL, that code is where the IRQL was lowered. If a driver lowered it by a call
    /// that ran the DPC without another interrupt, it is the place in that driver.
    ///
    /// # Safety
    /// The caller is the DPC that has this memory, or a function that it called.
    ///
    /// # IRQL
    /// DISPATCH_LEVEL.
    pub unsafe fn interrupted_address(&self) -> Option<u64> {
        let context: *mut CONTEXT = self.0.get().cast();
        // SAFETY: non-paged memory of the right size, which only this DPC uses
        unsafe { RtlCaptureContext(context) };
        // SAFETY: it was just captured
        let context = unsafe { &mut *context };
        let (mut driver, mut dispatcher) = (None, None);
        for _ in 0..MAX_FRAMES {
            let mut base = 0;
            // SAFETY: the function may write to `base`; the history is optional
            let function = unsafe { RtlLookupFunctionEntry(context.Rip, &raw mut base, core::ptr::null_mut()) };
            // SAFETY: null, or an entry in the function table of a loaded image
            let entry = *unsafe { function.as_ref() }?;
            match (driver, dispatcher) {
                (None, _) => driver = Some(base),
                (Some(own), None) if own != base => dispatcher = Some(base),
                (Some(_), Some(kernel)) if kernel != base => return Some(context.Rip),
                _ => {}
            }
            // SAFETY: the entry is of the image at `base`
            let is_interrupt = unsafe { is_entered_by_interrupt(base, entry) }?;
            let (mut data, mut frame) = (core::ptr::null_mut(), 0);
            // SAFETY: the context is that of a frame of this function, and every frame so far was unwound by the data
            // of its own function. The stack of the current thread is not paged out.
            unsafe {
                RtlVirtualUnwind(
                    NO_HANDLER,
                    base,
                    context.Rip,
                    function,
                    context,
                    &raw mut data,
                    &raw mut frame,
                    core::ptr::null_mut(),
                )
            };
            if is_interrupt {
                return Some(context.Rip);
            }
        }
        None
    }
}

/// Returns whether a function was entered by an interrupt or an exception, or nothing if its unwind data are of a
/// version that is not known.
///
/// # Safety
/// The entry is of the function table of the image at `base`.
unsafe fn is_entered_by_interrupt(base: u64, mut entry: RuntimeFunction) -> Option<bool> {
    for _ in 0..MAX_CHAIN {
        let info = core::ptr::with_exposed_provenance::<u8>((base + u64::from(entry.unwind_info)) as usize);
        // SAFETY: an UNWIND_INFO begins with four bytes: version and flags, size of the prolog, number of codes, frame
        let [first, _, count, _] = unsafe { info.cast::<[u8; 4]>().read() };
        let is_chained = machine_frame::is_chained(first)?;
        // SAFETY: the codes follow, and an UNWIND_INFO is aligned to four bytes
        let codes = unsafe { core::slice::from_raw_parts(info.add(4).cast::<u16>(), count.into()) };
        if machine_frame::is_pushed(codes) {
            return Some(true);
        }
        if !is_chained {
            return Some(false);
        }
        let after = 4 + 2 * usize::from(count).next_multiple_of(2);
        // SAFETY: the entry to which it is chained follows an even number of codes
        entry = unsafe { info.add(after).cast::<RuntimeFunction>().read_unaligned() };
    }
    None
}
