//! Counted UTF-16 names for kernel functions.

use wdk_sys::UNICODE_STRING;

/// A name of `N` ASCII characters.
pub struct Text<const N: usize>([u16; N]);

impl<const N: usize> Text<N> {
    /// Converts a constant of `N` characters.
    pub const fn new(text: &str) -> Self {
        let mut wide = [0; N];
        let mut left: &[u8] = text.as_bytes();
        let mut to: &mut [u16] = &mut wide;
        while let ([byte, rest @ ..], [unit, others @ ..]) = (left, to) {
            *unit = *byte as u16;
            left = rest;
            to = others;
        }
        Self(wide)
    }

    /// Returns the form that kernel functions take; they only read through the pointer.
    pub fn counted(&'static self) -> UNICODE_STRING {
        let bytes = u16::try_from(size_of_val(&self.0)).unwrap_or(0);
        UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: self.0.as_ptr().cast_mut() }
    }
}
