//! Which counters have a part in a sample besides the interrupt.

/// Kind of a counter that records precisely, or decides on samples. The protocol uses these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u32)]
pub enum Recorder {
    /// None does.
    #[default]
    None = 0,
    /// A general counter: the event after the overflow writes the record.
    General = 1,
    /// A general counter with precise distribution, which writes the record at the overflow itself.
    Distributed = 2,
    /// Fixed counter 0, which has precise distribution wherever it records.
    Fixed = 3,
    /// Nothing is recorded. The counter and another one [reload each other](crate::state::CounterState::reloaded), and
    /// so decide on the condition of its samples.
    Reloaded = 4,
}

impl Recorder {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::General, Self::Distributed, Self::Fixed, Self::Reloaded];

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|recorder| *recorder as u32 == number)
    }
}
