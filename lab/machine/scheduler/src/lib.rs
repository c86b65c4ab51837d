//! Threads on the processors of a model: they are preempted, migrated, delayed and interrupted at random, and Windows
//! counts for them what it can. A [`Ledger`] has the events that each thread really executed.
//!
//! The processors are behind the trait [`Processors`], which executes events and reads counters. The program under test
//! sees a thread through four functions with the semantics of Windows ([`Scheduler::enable`], [`Scheduler::read`],
//! [`Scheduler::disable`], [`Scheduler::query`]), and a driver's requests through [`Scheduler::request`], on the
//! processor of the thread that sends it. All decisions depend on the seed of a
//! [`Scheduling`](bench_protocol::Scheduling) and on the order of the thread's own calls.
//!
//! | module | contents |
//! |---|---|
//! | `scheduler` | threads, processors, switches |
//! | `calls` | the functions of thread profiling, affinity, and requests to drivers |
//! | `profile` | what Windows keeps for a thread that profiles |
//! | `configuration` | the hardware counters that a driver configured |
//! | `ledger` | the events that a thread executed |
//!
//! ```
//! use bench_protocol::{Scheduling, UserRdpmc, Work};
//! use scheduler::{Mode, Processors, READ_COUNTERS, Scheduler, ThreadId};
//!
//! /// A processor that counts one event in user mode.
//! struct One(u64);
//!
//! impl Processors for One {
//!     fn execute(&mut self, _processor: u32, mode: Mode, events: &[bench_protocol::EventCount]) {
//!         let counted = events.iter().filter(|(event, ..)| *event == 0xC0 && mode == Mode::User);
//!         self.0 += counted.map(|(.., count)| count).sum::<u64>();
//!     }
//!
//!     fn read_counter(&mut self, _processor: u32, _index: u64) -> u64 {
//!         self.0
//!     }
//! }
//!
//! let (mut machine, thread) = (One(0), ThreadId(1));
//! let mut scheduler = Scheduler::new(Scheduling { preempt: 50, rdpmc: UserRdpmc::Works, ..Scheduling::default() }, 1);
//! scheduler.configure(&[0])?; // as KeSetHardwareCounterConfiguration
//! let profile = scheduler.enable(&mut machine, thread, thread, 0, 1)?;
//! let before = scheduler.read(&mut machine, thread, profile, READ_COUNTERS)?;
//! let truth = scheduler.ledger(thread).user(0xC0, 0);
//! scheduler.run(&mut machine, thread, &Work::user(&[(0xC0, 0, 1_000)]));
//! let after = scheduler.read(&mut machine, thread, profile, READ_COUNTERS)?;
//! let counted = after.counters[0] - before.counters[0];
//! assert_eq!(counted, scheduler.ledger(thread).user(0xC0, 0) - truth);
//! assert!(counted >= 1_000); // and what the calls themselves execute in user mode
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod calls;
mod configuration;
mod ledger;
mod performance_data;
mod profile;
mod scheduler;

pub use calls::{
    ALREADY_ENABLED, ENABLE_DISPATCH, Error, INVALID_HANDLE, INVALID_PARAMETER, PRIVILEGED_INSTRUCTION, READ_COUNTERS,
    READ_DISPATCH,
};
pub use configuration::{Configuration, ConfigureError, MAX_COUNTERS};
pub use ledger::Ledger;
pub use profile::{PERFORMANCE_DATA_SIZE, PerformanceData, ProfileHandle, ProfilingData};
pub use scheduler::{Scheduler, ThreadId};

use bench_protocol::EventCount;

/// The privilege level of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// CPL 3.
    User,
    /// CPL 0.
    Kernel,
}

/// The processors on which threads run.
pub trait Processors {
    /// Executes events on a processor.
    fn execute(&mut self, processor: u32, mode: Mode, events: &[EventCount]);

    /// Executes RDPMC on a processor. Windows does so at a switch and when a thread reads its profile.
    fn read_counter(&mut self, processor: u32, index: u64) -> u64;
}
