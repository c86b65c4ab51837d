//! The plan for the next stepped call, and its report.

use crate::state::{step_route::Trace, stepper::Stepper};
use bench_protocol::{StepPlan, StepReport};
use std::sync::{Arc, Condvar, Mutex};

/// The plan, the stepping thread, and the report.
#[derive(Default)]
pub struct Stepping {
    pub stepper: Stepper,
    /// The instructions of the last call that was only counted.
    pub trace: Mutex<Option<Arc<Trace>>>,
    pub phase: Mutex<Phase>,
    pub changed: Condvar,
}

/// How far the plan is.
#[derive(Default)]
pub enum Phase {
    /// There is no plan.
    #[default]
    Idle,
    /// The plan waits for its call.
    Armed(StepPlan),
    /// The call is in progress.
    Running,
    /// The call has ended.
    Done(StepReport),
}
