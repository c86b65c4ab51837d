//! The callers of the known functions. Each uses the result of every call, so that no call becomes a jump.

use crate::functions::{alpha, beta, gamma};

/// Number of [`descend`]'s calls of itself.
const DEPTH: u64 = 3;

/// Calls the known functions on five paths.
#[inline(never)]
pub fn run(seed: u64) -> u64 {
    let forth = forward(seed);
    let back = backward(forth);
    forth.wrapping_sub(back) ^ descend(seed.wrapping_add(back), DEPTH)
}

/// Calls `alpha`, then `beta`.
#[inline(never)]
pub fn forward(seed: u64) -> u64 {
    let first = alpha(seed);
    beta(first).wrapping_add(first)
}

/// Calls `beta`, then `alpha`.
#[inline(never)]
pub fn backward(seed: u64) -> u64 {
    let first = beta(seed);
    seed ^ first.wrapping_mul(alpha(first.rotate_left(7)))
}

/// Calls itself `depth` times, then `gamma`.
#[inline(never)]
pub fn descend(seed: u64, depth: u64) -> u64 {
    let below = if depth == 0 { gamma(seed) } else { descend(seed.rotate_left(11), depth - 1) };
    below.wrapping_mul(3) ^ seed
}
