//! The test of Windows' own HAL, which counts this process at its context switches, in both modes.

use std::process;

use halprof::Task;
use halprof::event::role::Role;
use protocol::{EventRequest, modes};

use super::tester::{ITERATIONS, NO_SOURCE, Tester};
use super::{BRANCHES_OF_HAL, Check, INSTRUCTIONS_OF_HAL, Unit};
use system::known_work::{BRANCHES, Function, INSTRUCTIONS, KnownWork};
use terminal::format::real;
use user_error::Error;

/// How many times the work of the other tests is executed: a slice has also the interrupts in it, and the switches.
const TIMES: u64 = 80;

/// Largest deviation of a count, as a part of what is expected.
const TOLERANCE: f64 = 0.02;

impl Tester<'_> {
    /// Counts known work. It is compared with what the driver counted of it in user mode, if it did: all of it is
    /// executed there.
    pub fn own_hal(&self, of_driver: &[Check]) -> Result<Vec<Check>, Error> {
        let (mut checks, mut events) = (Vec::new(), Vec::new());
        for (name, role, each, other) in [
            (INSTRUCTIONS_OF_HAL, Role::Instructions, INSTRUCTIONS, "instructions, user mode"),
            (BRANCHES_OF_HAL, Role::Branches, BRANCHES, "branches, user mode"),
        ] {
            let counted = of_driver.iter().find(|check| check.name == other).and_then(|check| check.measured);
            let expected = real(TIMES) * counted.unwrap_or(real(ITERATIONS * each));
            let check = self.check(name, Unit::Events, expected, expected * TOLERANCE);
            let Some((event, source)) = self.source(role)? else {
                checks.push(check.untested(NO_SOURCE.to_owned()));
                continue;
            };
            events.push(EventRequest { event, modes: modes::BOTH, ..EventRequest::EMPTY });
            checks.push(Check { event: Some(source), ..check });
        }
        let counts = self.counts_of_this_process(&events).map_err(|error| error.in_one_line());
        let remarks = self.connection.remarks().join("; ");
        let mut counts_of_events = counts.iter().flatten();
        let counted = checks.into_iter().map(|check| match &counts {
            _ if check.event.is_none() => check,
            Err(reason) => check.failed(reason.clone()),
            Ok(_) => {
                let check = check.with(Ok(counts_of_events.next().copied().map_or(0.0, real)));
                if remarks.is_empty() { check } else { check.because(|| remarks.clone()) }
            }
        });
        Ok(counted.collect())
    }

    /// Counts events of the work executed once and twice, in a session each. Returns the differences.
    fn counts_of_this_process(&self, events: &[EventRequest]) -> Result<Vec<u64>, Error> {
        let mut counts = vec![[0_u64; 2]; events.len()];
        for (times, round) in [(TIMES, 0), (2 * TIMES, 1)] {
            let work = KnownWork { function: Function::First, iterations: times * ITERATIONS };
            let ((), records) = self.session(0, events, |started| {
                self.connection.follow(started.session, Task::Process(process::id()))?;
                self.execute(&[work])
            })?;
            for record in records {
                if let Some(sum) = counts.get_mut(record.index as usize).and_then(|both| both.get_mut(round)) {
                    *sum += record.count;
                }
            }
        }
        Ok(counts.into_iter().map(|[once, twice]| twice.saturating_sub(once)).collect())
    }
}
