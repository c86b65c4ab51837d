//! The known functions. Each has a loop that the compiler cannot remove and calls another function, so that it has
//! unwind information, from which Windows knows its size.

use core::hint::black_box;

/// Returns the number of rounds: enough to take every branch. More would take long, because the program executes one
/// instruction at a time. The compiler does not know the number, but that it is odd, so it makes no code for 0 rounds.
#[inline]
fn rounds() -> u64 {
    black_box(17) | 1
}

/// Multiplies in each step.
#[inline(never)]
pub fn alpha(seed: u64) -> u64 {
    let mut value = black_box(seed);
    for round in 0..rounds() {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
        value ^= opaque(value) >> 29;
    }
    value
}

/// Branches on the data in each step.
#[inline(never)]
pub fn beta(seed: u64) -> u64 {
    let mut value = black_box(seed);
    let mut steps = 0;
    for round in 1..=rounds() {
        value = if opaque(value) & 1 == 0 { value >> 1 } else { value.wrapping_mul(3).wrapping_add(round) };
        steps += value & 7;
    }
    value ^ steps
}

/// Reads and writes a table in each step.
#[inline(never)]
pub fn gamma(seed: u64) -> u64 {
    let mut table = black_box([seed; 16]);
    for round in 0..rounds() {
        let place = opaque(round) & 15;
        let mut sum = 0_u64;
        for (number, entry) in (0..).zip(&mut table) {
            sum = sum.wrapping_add(*entry).rotate_left(3);
            if number == place {
                *entry ^= sum;
            }
        }
    }
    table.iter().fold(0, |sum, entry| sum ^ entry)
}

/// Returns a value that the compiler does not know.
#[inline(never)]
pub fn opaque(value: u64) -> u64 {
    black_box(value)
}
