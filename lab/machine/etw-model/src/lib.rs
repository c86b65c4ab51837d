//! Event Tracing for Windows without Windows, for the stand-in that the bench loads into client.exe.
//!
//! | module | contents |
//! |---|---|
//! | `sessions` | the sessions of a machine, and the errors that the documentation describes |
//! | `delivery` | when a written event arrives, with which stacks, and what is lost |
//! | `profile_sources` | the HAL's profile sources, and the rules of those that a session counts |
//! | `counter_samples` | samples of the counters, with stacks |
//! | `live_thread` | a thread that the scheduler can run |
//! | `switches` | a scheduler, and the counters of its CPUs at each context switch |
//! | `waits` | the times in which threads do not run, and what makes them ready |
//! | `system_events` | events of processes, threads and images in their binary form |

#![forbid(unsafe_code)]

mod counter_samples;
mod delivery;
mod live_thread;
mod profile_objects;
mod profile_sources;
mod sessions;
mod switches;
mod system_events;
mod waits;

pub use delivery::{DeliveredEvent, Delivery, STACK_WALK, StackItem};
pub use live_thread::LiveThread;
pub use profile_objects::ProfileRange;
pub use profile_sources::ProfileSources;
pub use sessions::{EnabledProvider, Session, SessionError, SessionRequest, Sessions};
pub use switches::SwitchModel;
pub use system_events::encode;
