//! Hardware performance counters of Windows, from the halprof driver.
//!
//! halprof.sys counts and samples with the performance counters of the processor. This library opens the driver, sends
//! its requests and checks its replies, and knows the events by the names that `client.exe` accepts. `client install`
//! installs the driver; opening it needs an elevated process and the right "Profile system performance".
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
//! let header = StartHeader { flags: flags::MULTIPLEX, ring: 0, budget: 0, batch: 0, processors: all };
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

pub mod core_types;
mod device;
mod driver;
pub mod errata;
mod error;
pub mod event;
mod open;
mod refusal;
mod reply;
mod sample_stream;
pub mod sessions;
pub mod source;
pub mod text;
#[cfg(windows)]
pub mod windows;

pub use {events, pmu, protocol};

pub use self::device::Device;
pub use self::driver::{Driver, RequestError, Started, version};
pub use self::error::{Error, ErrorKind};
pub use self::open::{OpenError, SERVICE, ServiceState};
pub use self::refusal::{Refusal, SAME_VERSION};
pub use self::reply::InvalidReply;
pub use self::sample_stream::{Fetched, SampleStream};
