//! The recording file that `record` writes and `report` reads.
//!
//! A file header is followed by blocks: one [`Session`], then [`Process`] and sample blocks in the order in which they
//! became known, then one [`Summary`]. All integers are little-endian.
//!
//! | bytes | file header |
//! |---|---|
//! | 8 | 0x89, `HALPRF`, line feed |
//! | 4 | [`FORMAT_VERSION`]; from [`OLDEST_VERSION`] on it can be read |
//! | 4 | zero |
//!
//! | bytes | block header |
//! |---|---|
//! | 4 | kind: 1 session, 2 process, 3 samples, 4 summary |
//! | 4 | size in bytes of the payload that follows the header |
//! | 8 | sequence number of the block, from 0 |
//! | 4 | CRC-32 of the payload |
//! | 4 | CRC-32 of the preceding 20 bytes |
//!
//! The payload of a sample block is an array of [`SampleRecord`](protocol::SampleRecord), 48 bytes each, as the driver
//! returned them. Their kinds have the layouts of [`Record`](protocol::Record). A record of an unknown kind or with
//! invalid fields does not affect the others. The payload of every other kind of block is a JSON object. Each
//! block is written with one system call, so if the writer is terminated, all earlier blocks stay readable.
//!
//! | module | contents |
//! |---|---|
//! | `block` | contents of the blocks |
//! | `frame` | the layouts above |
//! | `writer` | [`Writer`] and its errors |
//! | `reader` | [`Reader`] and its errors |

#![forbid(unsafe_code)]

mod block;
mod frame;
mod reader;
mod writer;

pub use block::{
    Block, CoreTypeProcessors, Count, DebugFile, Disturbed, KERNEL, Module, Process, RecordedEvent, Session, Summary,
};
pub use frame::{FORMAT_VERSION, MAX_SAMPLES, OLDEST_VERSION};
pub use reader::{BlockError, ReadError, Reader};
pub use writer::{WriteError, Writer};
