//! How many samples have a stack.

use recording::{MissingStack, SampleStack, StackEnd};

/// Numbers of samples by what is known of their stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// By the end of the stack, in the order of [`StackEnd::ALL`].
    ends: [u64; StackEnd::ALL.len()],
    /// By the reason, in the order of [`MissingStack::ALL`].
    missing: [u64; MissingStack::ALL.len()],
}

impl StackCounts {
    /// Adds a sample.
    pub fn add(&mut self, stack: &SampleStack) {
        let count = match stack {
            SampleStack::NotRecorded => None,
            SampleStack::Stack(stack) => {
                StackEnd::ALL.iter().position(|end| *end == stack.end).and_then(|place| self.ends.get_mut(place))
            }
            SampleStack::Missing(reason) => {
                MissingStack::ALL.iter().position(|one| one == reason).and_then(|place| self.missing.get_mut(place))
            }
        };
        if let Some(count) = count {
            *count += 1;
        }
    }

    /// Returns the number of stacks with an end.
    #[must_use]
    pub fn with_end(&self, end: StackEnd) -> u64 {
        StackEnd::ALL.iter().zip(&self.ends).filter(|(one, _)| **one == end).map(|(_, count)| count).sum()
    }

    /// Returns the number of samples without a stack for a reason.
    #[must_use]
    pub fn missing_for(&self, reason: MissingStack) -> u64 {
        MissingStack::ALL.iter().zip(&self.missing).filter(|(one, _)| **one == reason).map(|(_, count)| count).sum()
    }

    /// Returns the number of samples without a stack.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing.iter().sum()
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.ends.iter().sum::<u64>() + self.missing()
    }
}
