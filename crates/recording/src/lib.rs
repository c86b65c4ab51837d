//! The file that `record` writes and `report` reads.
//!
//! A file header, then blocks: one [`Session`], any number of [`Process`]es and of samples in the order in which they
//! became known, one [`Summary`]. All integers are little-endian.
//!
//! | bytes | the file header |
//! |---|---|
//! | 8 | 0x89, `HALPRF`, line feed |
//! | 4 | [`FORMAT_VERSION`] |
//! | 4 | zero |
//!
//! | bytes | the head of a block |
//! |---|---|
//! | 4 | kind: 1 session, 2 process, 3 samples, 4 summary |
//! | 4 | bytes of the payload that follows the head |
//! | 8 | number of the block, from 0 |
//! | 4 | CRC-32 of the payload |
//! | 4 | CRC-32 of the 20 bytes before |
//!
//! The payload of samples is an array of [`Sample`](protocol::Sample), 48 bytes each, that of the other kinds a JSON
//! object. A block reaches the system in one write: whatever ends the writer, every block before it can be read.
//!
//! | module | what it holds |
//! |---|---|
//! | `block` | what the blocks say |
//! | `frame` | the layouts above |
//! | `writer` | [`Writer`] |
//! | `reader` | [`Reader`], and what it does not take |

#![forbid(unsafe_code)]

mod block;
mod frame;
mod reader;
mod writer;

pub use block::{Block, Count, DebugFile, Event, KERNEL, Module, Process, Session, Summary};
pub use frame::{FORMAT_VERSION, MOST_SAMPLES};
pub use reader::{Damage, ReadError, Reader};
pub use writer::{WriteError, Writer};
