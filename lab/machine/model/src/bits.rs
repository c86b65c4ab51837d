//! Reading fields of registers.

/// Returns a mask of the lowest `count` bits.
pub(crate) fn ones(count: u32) -> u64 {
    1u64.checked_shl(count).map_or(u64::MAX, |first_above| first_above - 1)
}

/// Returns bits `[high:low]` of `value`.
pub(crate) fn field(value: u64, high: u32, low: u32) -> u64 {
    (value >> low) & ones(high - low + 1)
}

/// Returns bit `number` of `value`.
pub(crate) fn bit(value: u64, number: u32) -> bool {
    field(value, number, number) == 1
}

/// Returns bits `[high:low]` of a 32-bit register. The field must be at most eight bits wide.
pub(crate) fn byte(value: u32, high: u32, low: u32) -> u8 {
    field(u64::from(value), high, low).to_le_bytes()[0]
}
