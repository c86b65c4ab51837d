//! Event Tracing for Windows without Windows, for the stand-in that the bench loads into client.exe.
//!
//! | module | contents |
//! |---|---|
//! | `sessions` | the sessions of a machine, and the errors that the documentation describes |
//! | `delivery` | when a written event arrives, with which stacks, and what is lost |
//! | `system_events` | events of processes, threads and images in their binary form |

#![forbid(unsafe_code)]

mod delivery;
mod sessions;
mod system_events;

pub use delivery::{DeliveredEvent, Delivery, STACK_WALK, StackItem};
pub use sessions::{EnabledProvider, Session, SessionError, SessionRequest, Sessions};
pub use system_events::encode;
