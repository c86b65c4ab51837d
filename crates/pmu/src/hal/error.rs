//! Refusals of the HAL functions.

use crate::interface::Support;
use crate::source::Source;

/// Number of different raw events that can be in use at a time.
pub const MAX_RAW: u16 = 256;

/// Reason for which a HAL function refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HalError {
    /// No table has this source.
    #[error("no profile source has the number {0}")]
    UnknownSource(Source),
    /// The source is unsupported here.
    #[error("profile source {0} is unsupported on this machine: {1:?}")]
    Unsupported(Source, Support),
    /// The source is a raw event. Each start states the interval of a raw event.
    #[error("raw event {0} has no interval of its own")]
    NoInterval(Source),
    /// All slots of raw events are in use.
    #[error("no more than {MAX_RAW} different raw events can be in use at a time")]
    TooManyRaw(Source),
    /// No counter counts the source.
    #[error("profile source {0} is served by a timer, not by a counter")]
    NoCounter(Source),
    /// The counters of the source do not interrupt.
    #[error("profile source {0} can be counted here and not sampled: the counters do not interrupt")]
    NoInterrupt(Source),
    /// Another owner has registered the interrupt handler.
    #[error("the interrupt handler is registered by another owner")]
    HandlerTaken,
    /// The information class does not concern profiling.
    #[error("information class {0} has nothing to do with profiling")]
    InvalidClass(u32),
    /// The length of the buffer differs from that of the structure of the class.
    #[error("the buffer has {found} bytes, the structure {wanted}")]
    LengthMismatch {
        /// Bytes of the structure.
        wanted: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// There is no memory for the state of the counters.
    #[error("no memory for the counters' state")]
    NoMemory,
}
