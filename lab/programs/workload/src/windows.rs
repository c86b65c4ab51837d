//! Functions and structures of Windows.

#![expect(unsafe_code, reason = "foreign functions")]

use core::{
    arch::asm,
    ffi::{CStr, c_void},
    mem::MaybeUninit,
    ptr, slice,
};

/// STD_INPUT_HANDLE.
pub const INPUT: u32 = 10_u32.wrapping_neg();
/// STD_OUTPUT_HANDLE.
pub const OUTPUT: u32 = 11_u32.wrapping_neg();

const GENERIC_WRITE: u32 = 1 << 30;
/// FILE_SHARE_READ and FILE_SHARE_DELETE. Only one program at a time can write.
const SHARE: u32 = 1 | 4;
const CREATE_ALWAYS: u32 = 2;
/// FILE_FLAG_DELETE_ON_CLOSE. Windows closes the file when the program ends, in whatever way.
const DELETE_ON_CLOSE: u32 = 1 << 26;

#[link(name = "kernel32.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    pub safe fn ExitProcess(code: u32) -> !;
    pub safe fn GetCurrentProcessId() -> u32;
    pub safe fn GetCurrentThreadId() -> u32;
    pub safe fn GetStdHandle(which: u32) -> *mut c_void;
    pub safe fn SetStdHandle(which: u32, file: *mut c_void) -> i32;
    pub safe fn GetTickCount64() -> u64;
    fn CreateFileA(
        name: *const u8,
        access: u32,
        share: u32,
        security: *const c_void,
        creation: u32,
        flags: u32,
        template: *mut c_void,
    ) -> *mut c_void;
    pub fn ReadFile(file: *mut c_void, bytes: *mut u8, length: u32, read: *mut u32, overlapped: *mut c_void) -> i32;
    pub fn WriteFile(
        file: *mut c_void,
        bytes: *const u8,
        length: u32,
        written: *mut u32,
        overlapped: *mut c_void,
    ) -> i32;
    safe fn GetCommandLineA() -> *const u8;
    fn lstrlenA(text: *const u8) -> i32;
    safe fn GetCurrentThreadStackLimits(low: &mut usize, high: &mut usize);
    pub safe fn AddVectoredExceptionHandler(first: u32, handler: ExceptionHandler) -> *mut c_void;
    fn RtlLookupFunctionEntry(address: u64, base: *mut u64, history: *mut c_void) -> *const FunctionEntry;
    fn RtlVirtualUnwind(
        kind: u32,
        base: u64,
        address: u64,
        function: *const FunctionEntry,
        context: *mut Context,
        handler_data: *mut *mut c_void,
        establisher_frame: *mut u64,
        context_pointers: *mut c_void,
    ) -> *const c_void;
}

/// PVECTORED_EXCEPTION_HANDLER.
pub type ExceptionHandler = unsafe extern "system" fn(*const ExceptionPointers) -> i32;

/// RUNTIME_FUNCTION: offsets in the image.
#[repr(C)]
pub struct FunctionEntry {
    begin: u32,
    end: u32,
    unwind: u32,
}

/// EXCEPTION_POINTERS.
#[repr(C)]
pub struct ExceptionPointers {
    /// EXCEPTION_RECORD, which begins with the code.
    pub code: *const u32,
    pub context: *mut Context,
}

/// CONTEXT.
#[repr(C, align(16))]
pub struct Context {
    home: [u64; 6],
    flags: u32,
    mxcsr: u32,
    segments: [u16; 6],
    pub eflags: u32,
    debug: [u64; 6],
    /// The general-purpose registers in the order of their numbers in instructions.
    pub registers: [u64; 16],
    pub ip: u64,
    vectors: [u8; 0x3D0],
}

const _: () = assert!(size_of::<Context>() == 0x4D0);

impl Context {
    /// Number of RSP.
    const RSP: usize = 4;

    /// Copies the context to `copy`. The compiler would call the memcpy of the C runtime, which this program lacks.
    pub fn copy<'a>(&self, copy: &'a mut MaybeUninit<Self>) -> &'a mut Self {
        // SAFETY: both have this size, and every part of the structure is valid for any bytes.
        unsafe {
            asm!(
                "rep movsb",
                inout("rsi") &raw const *self => _,
                inout("rdi") copy.as_mut_ptr() => _,
                inout("rcx") size_of::<Self>() => _,
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: the instruction above wrote every byte.
        unsafe { copy.assume_init_mut() }
    }

    /// Returns RSP.
    pub const fn stack_pointer(&self) -> u64 {
        self.registers[Self::RSP]
    }

    /// Returns the base of the image with the code, or 0 if the code has no unwind information.
    pub fn image(&self) -> u64 {
        let mut base = 0;
        // SAFETY: `base` is writable, and the history is optional.
        unsafe { RtlLookupFunctionEntry(self.ip, &raw mut base, ptr::null_mut()) };
        base
    }

    /// Replaces the registers by those of the caller, and returns whether the stack has another frame.
    pub fn unwind(&mut self, stack: &Stack) -> bool {
        let mut base = 0;
        // SAFETY: `base` is writable, and the history is optional.
        let entry = unsafe { RtlLookupFunctionEntry(self.ip, &raw mut base, ptr::null_mut()) };
        if entry.is_null() {
            // A leaf function, which changes no nonvolatile register, RSP included.
            let Some(caller) = stack.word(self.stack_pointer()) else { return false };
            self.ip = caller;
            self.registers[Self::RSP] += 8;
        } else {
            let (mut data, mut frame) = (ptr::null_mut(), 0);
            let (ip, data, frame) = (self.ip, &raw mut data, &raw mut frame);
            // SAFETY: the context is that of code in the function of the entry, and the results are writable.
            unsafe { RtlVirtualUnwind(0, base, ip, entry, self, data, frame, ptr::null_mut()) };
        }
        self.ip != 0 && stack.contains(self.stack_pointer())
    }
}

/// Returns the size of a function in bytes, from Windows' function table.
pub fn size(address: usize) -> u32 {
    let mut base = 0;
    // SAFETY: `base` is writable, and the history is optional.
    let entry = unsafe { RtlLookupFunctionEntry(address as u64, &raw mut base, ptr::null_mut()) };
    // SAFETY: the pointer is null or points to an entry of this image.
    unsafe { entry.as_ref() }.map_or(0, |entry| entry.end - entry.begin)
}

/// Creates a file that exists until the program ends. Returns an invalid handle if it cannot be created.
pub fn create(name: &CStr) -> *mut c_void {
    let (name, none) = (name.as_ptr().cast(), ptr::null_mut());
    // SAFETY: the name ends with a zero, and the other pointers may be null.
    unsafe { CreateFileA(name, GENERIC_WRITE, SHARE, none, CREATE_ALWAYS, DELETE_ON_CLOSE, none) }
}

/// Returns what follows the name of the program in the command line.
pub fn arguments() -> &'static [u8] {
    let line = GetCommandLineA();
    // SAFETY: the command line ends with a zero byte.
    let length = unsafe { lstrlenA(line) };
    // SAFETY: the command line has this many bytes and is never changed.
    let line = unsafe { slice::from_raw_parts(line, usize::try_from(length).unwrap_or(0)) };
    let (end, line) = line.strip_prefix(b"\"").map_or((b' ', line), |name| (b'"', name));
    let name_ends = |byte: &u8| *byte == end;
    line.splitn(2, name_ends).nth(1).unwrap_or_default().trim_ascii()
}

/// The stack of the current thread.
pub struct Stack {
    low: u64,
    high: u64,
}

impl Stack {
    pub fn current() -> Self {
        let (mut low, mut high) = (0, 0);
        GetCurrentThreadStackLimits(&mut low, &mut high);
        Self { low: low as u64, high: high as u64 }
    }

    fn contains(&self, address: u64) -> bool {
        address.is_multiple_of(8) && address >= self.low && address <= self.high - 8
    }

    /// Reads the word at `address`, which is at or above the current stack pointer.
    pub fn word(&self, address: u64) -> Option<u64> {
        let place = usize::try_from(address).ok().filter(|_| self.contains(address))?;
        // SAFETY: the word is aligned and in the part of the stack that is in use.
        Some(unsafe { ptr::with_exposed_provenance::<u64>(place).read_volatile() })
    }
}
