//! Random numbers as requests need them.

use bench_protocol::Random;

/// Returns a number up to `most`.
pub fn number(random: &mut Random, most: u32) -> u32 {
    u32::try_from(random.up_to(most.into())).unwrap_or(most)
}

/// Returns one of several values. `None` if there are none: unlike [`Random::pick`], a number is drawn nevertheless, so
/// that what a machine lacks does not change later decisions.
pub fn pick<T: Copy>(random: &mut Random, values: &[T]) -> Option<T> {
    let place = random.up_to(values.len().saturating_sub(1) as u64);
    values.get(usize::try_from(place).ok()?).copied()
}
