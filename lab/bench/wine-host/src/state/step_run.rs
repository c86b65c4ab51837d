//! One stepped call: when counters overflow, and when their interrupt is delivered.

use bench_protocol::{StepOverflow, StepReport};
use std::{iter::Peekable, vec::IntoIter};

/// A call that is stepped, and what has happened in it.
#[derive(Debug)]
pub struct StepRun {
    planned: Peekable<IntoIter<u64>>,
    report: StepReport,
    counts_only: bool,
}

impl StepRun {
    /// Begins a call in which counters overflow before the instructions with these ascending numbers.
    #[must_use]
    pub fn new(overflow_at: Vec<u64>) -> Self {
        let counts_only = overflow_at.is_empty();
        let report = StepReport { entered: true, ..StepReport::default() };
        Self { planned: overflow_at.into_iter().peekable(), report, counts_only }
    }

    /// Returns the number of the instruction before which the thread stops next, after the one with the number
    /// `reached`: the next one, if an interrupt is pending. Returns None if nothing is left to do.
    pub fn next_stop(&mut self, reached: Option<u64>, is_pending: bool) -> Option<u64> {
        match reached {
            _ if self.counts_only => Some(u64::MAX),
            Some(reached) if is_pending => Some(reached + 1),
            _ => self.planned.peek().copied(),
        }
    }

    /// Returns whether counters overflow before this instruction.
    pub fn is_due(&mut self, instruction: u64) -> bool {
        let is_due = self.planned.peek().is_some_and(|planned| *planned <= instruction);
        while self.planned.next_if(|planned| *planned <= instruction).is_some() {}
        is_due
    }

    /// Records an overflow before an instruction, or that no counter ran.
    pub fn overflowed(&mut self, overflow: StepOverflow) {
        self.report.overflows.push(overflow);
    }

    /// Records that the handler ran before an instruction, for every overflow before it.
    pub fn delivered(&mut self, instruction: u64) {
        let overflows = self.report.overflows.iter_mut();
        let undelivered = overflows.filter(|overflow| overflow.overflowed && overflow.delivered.is_none());
        undelivered.for_each(|overflow| overflow.delivered = Some(instruction));
    }

    /// Returns the report at the end of the call.
    #[must_use]
    pub fn end(self, instructions: u64) -> StepReport {
        StepReport { instructions, ..self.report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow(instruction: u64) -> StepOverflow {
        StepOverflow { instruction, offset: 0, level: 0, overflowed: true, delivered: None }
    }

    #[test]
    fn a_call_without_a_plan_only_counts() {
        let mut run = StepRun::new(Vec::new());
        assert_eq!(run.next_stop(None, false), Some(u64::MAX));
        assert_eq!(run.end(123), StepReport { entered: true, instructions: 123, ..StepReport::default() });
    }

    #[test]
    fn a_masked_overflow_stops_at_every_instruction_until_it_is_delivered() {
        let mut run = StepRun::new(vec![10]);
        assert_eq!(run.next_stop(None, false), Some(10));
        assert!(run.is_due(10));
        run.overflowed(overflow(10));
        assert_eq!(run.next_stop(Some(10), true), Some(11));
        assert!(!run.is_due(11));
        run.delivered(11);
        assert_eq!(run.next_stop(Some(11), false), None);
        assert_eq!(run.end(12).overflows, [StepOverflow { delivered: Some(11), ..overflow(10) }]);
    }

    #[test]
    fn a_pair_stops_twice_even_at_one_instruction() {
        let mut run = StepRun::new(vec![3, 3, 5]);
        assert!(run.is_due(3));
        run.overflowed(StepOverflow { overflowed: false, ..overflow(3) });
        assert_eq!(run.next_stop(Some(3), false), Some(5));
        assert!(run.is_due(5));
        run.overflowed(overflow(5));
        run.delivered(5);
        assert_eq!(run.next_stop(Some(5), false), None);
        let delivered: Vec<_> = run.end(6).overflows.iter().map(|overflow| overflow.delivered).collect();
        assert_eq!(delivered, [None, Some(5)]);
    }

    #[test]
    fn an_interrupt_is_that_of_every_overflow_before_it() {
        let mut run = StepRun::new(vec![3, 5]);
        for instruction in [3, 5] {
            assert!(run.is_due(instruction));
            run.overflowed(overflow(instruction));
        }
        run.delivered(8);
        assert!(run.end(9).overflows.iter().all(|overflow| overflow.delivered == Some(8)));
    }
}
