//! Clients, sessions and policy between the requests of clients and [`pmu`].
//!
//! | module | contents |
//! |---|---|
//! | `engine` | all state between a request and the processors |
//! | `platform` | what the engine needs of the system it runs on |
//! | [`sampler`](Sampler) | the interrupt: from an overflow to a sample in a ring |
//! | `rings` | the reading ends of the rings: from there to the client |
//! | `event` | an event of a session, and how it is served |
//! | `session` | events on processors, from their start to their final counts |
//! | `processor_set` | the processors that a request addresses |
//! | `plan` | the checks of a session before a register is touched |
//! | `sessions` | start, read and stop, on every processor at once |
//! | `resources` | counters, timers and the interrupt, which sessions share |
//! | `areas` | the control areas of processors |
//! | `registers` | the registers of a processor as they are |
//! | `hardware_recording` | events that processors record themselves |
//! | `last_branches` | last branches of the samples of a session |
//! | `ibs` | ops that a session samples by Instruction-Based Sampling |
//! | `parked` | what a session has for each processor, while the processor does not use it |
//! | `time` | times and durations, by their units |
//! | `suspend_time` | how long the machine slept |
//! | `sync` | core's atomics, or loom's |
//! | `clients` | open handles of the device |
//! | `requests` | one function for each request of [`protocol`] |
//! | `reply` | replies: header and records |
//! | `try_vec`, `boxed` | allocations that can fail |
//!
//! An [`Engine`] is protected by one lock: its functions take it exclusively, at APC_LEVEL at most, where memory can be
//! allocated and chosen processors can be called. Two parts run elsewhere: the closures for
//! [`Platform::on_processors`], and the [`Sampler`], which [`Platform::begin_sampling`] lends to the interrupt. Nothing
//! panics, and a request is refused if memory is short.

#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod areas;
mod boxed;
mod clients;
mod engine;
mod event;
mod first_failure;
mod hardware_recording;
mod ibs;
mod identity;
mod last_branches;
pub mod machine_frame;
mod parked;
mod perf_metrics;
mod plan;
mod platform;
mod processor_set;
mod registers;
mod reply;
mod requests;
mod reservation;
mod resources;
mod rings;
mod rotation;
mod rounds;
mod sampler;
mod session;
mod session_events;
mod sessions;
mod suspend_time;
mod sync;
mod time;
mod try_vec;

pub use clients::ClientId;
pub use engine::{Engine, Version};
pub use event::Condition;
pub use platform::{AreaAllocator, AreaRefused, ControlArea, Platform};
pub use requests::{Completion, Request, Samples};
pub use sampler::{
    CpuSampleStats, Deferred, Hal, Interrupted, MAX_SAMPLERS, SampleProducer, Sampler, Subscriber, Subscribers,
    TICKS_PER_SECOND, TraceEvent,
};
pub use suspend_time::SuspendTime;
pub use time::{Duration100ns, Ticks};
