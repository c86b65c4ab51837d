//! The way to an instruction of a call whose instructions are known: by breakpoints, because a single step takes about
//! 11 microseconds and a breakpoint 2.5.

use std::collections::{BTreeMap, btree_map::Entry};

/// The cost of a single step, and of passing a breakpoint, which is a breakpoint, a single step and two changes of the
/// code, in tenths of a microsecond.
const STEP: u64 = 110;
const PASS: u64 = 150;

/// The instructions that a call executed, by their offsets in the image.
#[derive(Debug, Default)]
pub struct Trace {
    offsets: Vec<u32>,
    /// For each instruction, the last one up to it that had not been executed before.
    landmarks: Vec<usize>,
    /// The numbers of the executions of each instruction.
    executions: BTreeMap<u32, Vec<usize>>,
}

/// A breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakpoint {
    /// The offset of its instruction.
    pub offset: u32,
    /// How often it is passed before it stops.
    pub passes: u64,
    /// The number of the instruction at which it stops.
    pub instruction: u64,
}

impl Trace {
    /// Records the instructions of a call.
    #[must_use]
    pub fn new(offsets: Vec<u32>) -> Self {
        let (mut landmarks, mut last) = (Vec::with_capacity(offsets.len()), 0);
        let mut executions: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, offset) in offsets.iter().enumerate() {
            match executions.entry(*offset) {
                Entry::Vacant(first) => {
                    first.insert(vec![number]);
                    last = number;
                }
                Entry::Occupied(mut more) => more.get_mut().push(number),
            }
            landmarks.push(last);
        }
        Self { offsets, landmarks, executions }
    }

    /// Returns the numbers of the instructions that had not been executed before in the call.
    #[must_use]
    pub fn first_executions(&self) -> Vec<u64> {
        let numbers = self.landmarks.iter().enumerate().filter(|(number, landmark)| number == *landmark);
        numbers.map(|(number, _)| number as u64).collect()
    }

    /// Returns the breakpoints, in their order, from the instruction with the number `from` to that with the number
    /// `to`. The thread steps from the last one. None are worth their cost if the way is short.
    #[must_use]
    pub fn route(&self, from: Option<u64>, to: u64) -> Vec<Breakpoint> {
        self.find(from, to).unwrap_or_default()
    }

    fn find(&self, from: Option<u64>, to: u64) -> Option<Vec<Breakpoint>> {
        // The instruction at which the thread stands is still to be executed.
        let first = usize::try_from(from.unwrap_or_default()).ok()?;
        let target = usize::try_from(to).ok()?;
        let (offset, landmark) = (*self.offsets.get(target)?, *self.landmarks.get(target)?);
        let between = |start: usize| {
            let numbers = self.executions.get(&offset).into_iter().flatten();
            numbers.filter(|number| (start..target).contains(*number)).count() as u64
        };
        let at = |offset, passes, number: usize| Breakpoint { offset, passes, instruction: number as u64 };
        let mut ways = vec![(STEP * target.saturating_sub(first) as u64, Vec::new())];
        let passes = between(first);
        ways.push((PASS * (passes + 1), vec![at(offset, passes, target)]));
        if landmark >= first {
            let to_landmark = at(*self.offsets.get(landmark)?, 0, landmark);
            ways.push((PASS + STEP * (target - landmark) as u64, vec![to_landmark]));
            if landmark < target && to_landmark.offset != offset {
                let passes = between(landmark);
                ways.push((PASS * (passes + 2), vec![to_landmark, at(offset, passes, target)]));
            }
        }
        ways.into_iter().min_by_key(|(cost, _)| *cost).map(|(_, breakpoints)| breakpoints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn stop(offset: u32, passes: u64, instruction: u64) -> Breakpoint {
        Breakpoint { offset, passes, instruction }
    }

    #[test]
    fn an_instruction_that_is_executed_once_has_one_breakpoint() {
        let trace = Trace::new(vec![10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(trace.route(None, 5), [stop(15, 0, 5)]);
        assert_eq!(trace.route(None, 1), [], "a step is cheaper");
        assert_eq!(trace.route(Some(3), 4), [], "a step is cheaper");
        assert_eq!(trace.route(Some(0), 5), [stop(15, 0, 5)]);
        assert_eq!(trace.route(None, 99), [], "the call has no such instruction");
    }

    #[test]
    fn a_loop_is_reached_by_its_landmark_and_then_by_passes() {
        let body = [20, 21, 22, 23, 24];
        let before: Vec<u32> = body.repeat(50);
        let trace = Trace::new([before, vec![30], body.repeat(2)].concat());
        assert_eq!(trace.route(None, 250 + 1 + 7), [stop(30, 0, 250), stop(22, 1, 258)]);
        assert_eq!(trace.route(None, 251), [stop(30, 0, 250)], "one step behind the landmark");
        assert_eq!(trace.first_executions(), [0, 1, 2, 3, 4, 250]);
    }

    proptest! {
        /// Follows the breakpoints through the trace.
        #[test]
        fn every_route_leads_to_its_instruction(
            offsets in prop::collection::vec(0..30_u32, 1..300),
            from in prop::option::of(0..300_u64),
            to in 0..300_u64,
        ) {
            let trace = Trace::new(offsets.clone());
            let to = to % offsets.len() as u64;
            prop_assume!(from.is_none_or(|from| from < to));
            let mut next = usize::try_from(from.unwrap_or_default()).unwrap();
            for Breakpoint { offset, passes, instruction } in trace.route(from, to) {
                let mut hits = (next..offsets.len()).filter(|number| offsets[*number] == offset);
                let hit = hits.nth(usize::try_from(passes).unwrap()).unwrap();
                prop_assert_eq!(hit as u64, instruction);
                next = hit;
            }
            prop_assert!(next as u64 <= to, "not beyond it");
        }
    }
}
