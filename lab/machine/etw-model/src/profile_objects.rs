//! What NtCreateProfileEx accepts (studies of it; phnt, ntexapi.h).

/// NTSTATUS values.
const INVALID_PARAMETER: u32 = 0xC000_000D;
const BUFFER_TOO_SMALL: u32 = 0xC000_0023;
const BUFFER_OVERFLOW: u32 = 0x8000_0005;

/// The addresses of a profile object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileRange {
    /// The first address.
    pub base: u64,
    /// Number of bytes.
    pub size: u64,
    /// Bytes of a bucket, as a power of 2.
    pub shift: u32,
    /// Bytes of the buckets' buffer.
    pub length: u32,
    /// Number of groups of processors.
    pub groups: u16,
}

impl ProfileRange {
    /// Returns whether the addresses are the kernel's.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.base >= 1 << 63
    }

    /// Returns the number of buckets.
    ///
    /// # Errors
    /// The NTSTATUS of the refusal.
    pub fn buckets(&self) -> Result<usize, u32> {
        let Self { base, size, shift, length, groups } = *self;
        if !(2..=31).contains(&shift) || size == 0 || groups != 0 {
            return Err(INVALID_PARAMETER);
        }
        if base.checked_add(size).is_none() {
            return Err(BUFFER_OVERFLOW);
        }
        let buckets = size.div_ceil(1 << shift);
        if buckets * 4 > u64::from(length) {
            return Err(BUFFER_TOO_SMALL);
        }
        usize::try_from(buckets).map_err(|_| INVALID_PARAMETER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_counter_for_each_bucket_and_ends_before_the_last_address() {
        let whole = ProfileRange { base: 0, size: 1 << 47, shift: 31, length: 4 << 16, groups: 0 };
        assert_eq!(whole.buckets(), Ok(1 << 16));
        assert_eq!(ProfileRange { length: (4 << 16) - 1, ..whole }.buckets(), Err(BUFFER_TOO_SMALL));
        assert_eq!(ProfileRange { base: !0 << 47, ..whole }.buckets(), Err(BUFFER_OVERFLOW));
        for wrong in [ProfileRange { shift: 32, ..whole }, ProfileRange { shift: 1, ..whole }] {
            assert_eq!(wrong.buckets(), Err(INVALID_PARAMETER));
        }
        assert!(ProfileRange { base: !0 << 47, ..whole }.is_kernel() && !whole.is_kernel());
    }
}
