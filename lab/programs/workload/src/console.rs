//! Standard output.

#![expect(unsafe_code, reason = "a foreign function")]

use crate::windows::{GetStdHandle, OUTPUT, WriteFile};
use core::{
    fmt::{self, Write},
    ptr,
    sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed},
};

const SIZE: usize = 4096;
static BYTES: [AtomicU8; SIZE] = [const { AtomicU8::new(0) }; SIZE];
static USED: AtomicUsize = AtomicUsize::new(0);

/// Standard output of this program's only thread, written when a line ends. Writing fails if there is none.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| {
            let used = USED.fetch_add(1, Relaxed);
            if let Some(place) = BYTES.get(used) {
                place.store(byte, Relaxed);
            }
            if used + 1 >= SIZE || byte == b'\n' { flush() } else { Ok(()) }
        })
    }
}

fn flush() -> fmt::Result {
    let mut written = 0;
    let length = u32::try_from(USED.swap(0, Relaxed)).map_err(|_| fmt::Error)?;
    let bytes = BYTES.as_ptr().cast();
    // SAFETY: the buffer has `length` bytes and `written` is writable. The function rejects an invalid handle.
    let done = unsafe { WriteFile(GetStdHandle(OUTPUT), bytes, length, &raw mut written, ptr::null_mut()) };
    if done == 0 || written != length { Err(fmt::Error) } else { Ok(()) }
}
