//! Stepping through calls into a driver.

use crate::{Answer, Command, StepPlan, StepReport};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::Step`].
    ///
    /// # Errors
    /// If no driver is loaded, or the call of the plan before does not return.
    pub fn step(&mut self, plan: StepPlan) -> Result<(), Error> {
        ask!(self, Command::Step(plan), Answer::Done => ())
    }

    /// Sends [`Command::Steps`].
    ///
    /// # Errors
    /// If the call does not return.
    pub fn steps(&mut self) -> Result<StepReport, Error> {
        ask!(self, Command::Steps, Answer::Steps(report) => report)
    }
}
