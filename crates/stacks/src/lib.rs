//! Joins samples with the call stacks that Event Tracing for Windows delivers for them.
//!
//! Samples come from the driver's rings, and stacks come with the driver's events in a trace session. The two take
//! different ways, so each can be late, and events can be lost or repeated. [`Joiner`] holds a sample until its stack
//! is known, or until it gives up, and then returns it in the order of the rings with exactly one
//! [`SampleStack`](recording::SampleStack).
//!
//! 1. A sample and its event have the same CPU, source and number of the interrupt ([`SampleEvent`]). Numbers begin
//!    anew when the driver is loaded, and wrap, so the time, the instruction pointer and the mode must be the same too.
//! 2. The event has the frames in kernel mode: those of the driver's DPC, and from the instruction pointer on those of
//!    the interrupted code. Without it in them, Windows walked the stack of other code.
//! 3. The frames in user mode follow in another event, with the same MatchId ([`UserPart`]). Windows can use a MatchId
//!    again, so process, thread and time must fit too, and the part of a sample in user mode must contain its
//!    instruction pointer.
//!
//! A sample waits for [`Limits::wait`] since it arrived, by the clock of the caller: the clock of samples stands still
//! while nothing is sampled, and jumps when the machine slept. Events and user parts are forgotten after the same time.
//! What waits is bounded by the other [`Limits`]; beyond them the oldest sample goes without a stack.
//!
//! | module | contents |
//! |---|---|
//! | `input` | what the trace session delivers |
//! | `rules` | which event and which part fit a sample, and the stack that results |
//! | `joiner` | [`Joiner`] |
//! | `queue` | samples that wait, in order |
//! | `recent` | events and parts of the last seconds |
//! | `counts` | [`StackCounts`] |

#![forbid(unsafe_code)]

mod counts;
mod input;
mod joiner;
mod queue;
mod recent;
mod rules;

pub use counts::StackCounts;
pub use input::{CallGraph, MAX_FRAMES, SampleEvent, StackItem, UserPart};
pub use joiner::{Held, Joiner, Limits};
pub use rules::KERNEL_ONLY;
