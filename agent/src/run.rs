//! The loop of the agent.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use agent::config::Config;

use super::counting::Counting;
use super::outputs::{ATTENTION, Outputs};
use super::points::{Begun, snapshot};
use system::System;
use user_error::Error;

/// Time between two looks at the driver.
const ATTEND: Duration = Duration::from_secs(1);

/// What the loop needs.
pub struct Agent<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The machine.
    pub system: &'a dyn System,
    /// Where numbers and profiles go.
    pub outputs: &'a Outputs,
    /// Returns whether to end.
    pub is_over: &'a dyn Fn() -> bool,
    /// Receives what an operator wants to know.
    pub note: &'a mut dyn FnMut(&str),
}

impl Agent<'_> {
    /// Counts and publishes until the end.
    ///
    /// # Errors
    /// If the configuration cannot be counted on this machine.
    pub fn run(&mut self) -> Result<(), Error> {
        let Self { config, system, .. } = *self;
        let mut counting = Counting::new(config, system)?;
        let start = Instant::now();
        let (mut begun, mut resets) = (Begun { agent: SystemTime::now(), driver: SystemTime::now() }, 0);
        let (mut attend, mut read) = (Duration::ZERO, Duration::ZERO);
        let (mut said, mut failed) = (None, Vec::<String>::new());
        while !(self.is_over)() {
            let now = start.elapsed();
            if now >= attend {
                attend = now + ATTEND;
                counting.attend(now)?;
                if now >= read {
                    read = next(read, config.counting.interval, now);
                    counting.read(now);
                }
                if counting.resets != resets {
                    (begun.driver, resets) = (SystemTime::now(), counting.resets);
                }
                let state = (counting.gaps.current().map(|gap| gap.reason), counting.error.clone());
                if said.as_ref() != Some(&state) {
                    (self.note)(&counting.describe());
                    said = Some(state);
                }
                let cpu_time = system.processor_time();
                let profiled = self.outputs.profiled();
                self.outputs.latest.set(snapshot(&counting, config, &profiled, begun, cpu_time));
                let errors = self.outputs.errors();
                if errors != failed {
                    errors.iter().filter(|error| !failed.contains(error)).for_each(|error| (self.note)(error));
                    failed = errors;
                }
            }
            thread::sleep(ATTENTION);
        }
        counting.finish(start.elapsed());
        Ok(())
    }
}

/// Returns the next multiple of the interval after `now`.
fn next(before: Duration, interval: Duration, now: Duration) -> Duration {
    let mut next = before;
    while next <= now {
        next += interval;
    }
    next
}
