//! Hardware performance counters of Windows, from the halprof driver.
//!
//! halprof.sys counts and samples with the performance counters of the processor. This library measures parts of a
//! program with them: `.\client install` installs the driver; opening it needs an elevated process and the right
//! "Profile system performance".
//!
//! ```no_run
//! # fn work() {}
//! # fn main() -> Result<(), halprof::Error> {
//! let mut group = halprof::Builder::new().event("instructions")?.event("cycles")?.user().build_for_thread()?;
//! group.calibrate()?;
//! let counts = group.measure(|| work())?;
//! println!("{:?} instructions in {:?}: {}", counts.get("instructions"), counts.time_running, counts.quality);
//! # Ok(())
//! # }
//! ```
//!
//! [`Builder`] takes events by the names that `.\client stat -e` accepts, and builds a [`ThreadGroup`] for the current
//! thread, or a [`CpuGroup`] for one CPU or all.
//!
//! # Three grades of truth
//!
//! A counter belongs to a CPU and not to a thread. It counts whatever runs there. So the count of a region is exact
//! only if something proves that nothing else was counted and nothing is missing. Every [`Counts`] says in
//! [`quality`](Counts::quality) whether that is so:
//!
//! | grade | what it means | what proves it |
//! |---|---|---|
//! | [virtualized](Quality::Virtualized) | Windows read the counters at each context switch and added up what belongs to this thread. The thread may be switched out and may move. | Windows' own thread profiling (EnableThreadProfiling), and that no counter was changed on any CPU on which the thread may have run. |
//! | [undisturbed](Quality::Undisturbed) | The counters of the CPU, read before and after. The thread is restricted to this CPU. User mode only. | Windows counted no context switch of the thread between the readings, so nothing else ran in user mode. |
//! | [disturbed](Quality::Disturbed) | The values are there and may be wrong. | Nothing; the [`Disturbance`] is the reason. |
//!
//! A group has the best grade that the machine offers, and [`ThreadGroup::availability`] says why it has no better one.
//! [`Builder::require`] refuses to build a worse one. A single region of a group can always be graded disturbed:
//! measure it again.
//!
//! Four things to know:
//!
//! - *Virtualized* relies on a part of Windows that little software uses. Until `.\client selftest` has compared it
//!   with known work on a machine, its counts are marked as unverified there.
//! - Windows may keep only 32 bits of what a counter counts between two context switches. A region that is too long to
//!   exclude a loss is compared with the driver's own 64-bit counts. If they cannot decide, it is graded
//!   [`MayHaveTruncated`](Disturbance::MayHaveTruncated). [`ThreadGroup::checkpoint`] splits long regions, and a passed
//!   `.\client selftest` settles the question for the machine.
//! - In kernel mode interrupts count for the thread that they interrupt. Only virtualized groups count kernel mode.
//! - A change of a register by another program is found by comparing registers before and after a region. A register
//!   that is changed and changed back within the region, or a counter that is set to a larger value, leaves no trace.
//!
//! # Overhead
//!
//! A region contains the few instructions of this crate and of Windows between its two readings.
//! [`ThreadGroup::calibrate`] measures and subtracts them; [`EventOverhead::bound`] is what remains uncertain.
//!
//! # The driver itself
//!
//! [`Driver`] is the open handle, with one method per request:
//!
//! ```no_run
//! use halprof::protocol::{ProcessorSet, StartHeader, flags, modes};
//!
//! # fn main() -> Result<(), halprof::Error> {
//! let driver = halprof::Driver::open()?;
//! let all = ProcessorSet::EMPTY;
//! let events = driver.events("instructions", modes::USER, &all)?;
//! let requests: Vec<_> = events.iter().map(|event| event.request).collect();
//! let header = StartHeader { flags: flags::MULTIPLEX, processors: all, ..StartHeader::EMPTY };
//! let session = driver.start(&header, &requests)?.session;
//! for count in driver.stop_all(session)? {
//!     println!("CPU {}: {}", count.processor, count.count);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An [`Error`] has a [kind](Error::kind) for programs, a text, its sources, and a [remedy](Error::remedy) for people.
//! The layouts of requests and replies are those of the crate [`protocol`], which this crate exports, as it does
//! [`pmu`] and [`events`], whose types name encodings and the events of makers.

mod availability;
mod builder;
pub mod core_types;
pub mod counting;
mod counts;
mod cpu_group;
mod device;
mod driver;
pub mod errata;
mod error;
mod error_kind;
pub mod event;
mod group_error;
mod guards;
mod hal_error;
mod machine;
mod named_requests;
mod open;
mod overhead;
pub mod precise;
pub mod protected;
mod quality;
mod refusal;
mod reply;
mod request;
mod request_error;
mod sample_stream;
pub mod sessions;
pub mod source;
pub mod system;
pub mod text;
mod thread_group;
mod thread_memory;
mod truncation;
pub mod verification;
#[cfg(windows)]
pub mod windows;

pub use {events, pmu, protocol};

pub use self::availability::{Availability, Unavailable};
pub use self::builder::Builder;
pub use self::counts::Counts;
pub use self::cpu_group::CpuGroup;
pub use self::device::{Backend, Device, Task};
pub use self::driver::{Driver, Reading, Started, version};
pub use self::error::Error;
pub use self::error_kind::ErrorKind;
pub use self::group_error::GroupError;
pub use self::hal_error::HalError;
pub use self::machine::Machine;
pub use self::open::{OpenError, SERVICE, ServiceState};
pub use self::overhead::{EventOverhead, Overhead};
pub use self::quality::{Disturbance, Grade, Quality};
pub use self::refusal::{Refusal, SAME_VERSION};
pub use self::reply::InvalidReply;
pub use self::request_error::RequestError;
pub use self::sample_stream::{Fetched, SampleStream};
pub use self::thread_group::ThreadGroup;
