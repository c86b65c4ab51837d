//! The loop that counters are tried with: a decrement and a branch that is taken while the result is not zero.

/// Iterations of the loop. Its 8,192 instructions are many more than those between the starts and the readings of the
/// counters, and take a few microseconds at HIGH_LEVEL, less than the accesses to the registers in a guest.
pub const ITERATIONS: u32 = 4096;

/// The least number of instructions by which a counter is judged: a sixteenth less than the loop has, because some
/// errata lose events.
pub const LEAST_INSTRUCTIONS: u64 = 2 * ITERATIONS as u64 - ITERATIONS as u64 / 8;
