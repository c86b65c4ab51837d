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
//! The payload of a sample block has 1 to [`MAX_SAMPLES`] records as the driver returned them, in their order. A record
//! is a [`SampleRecord`](protocol::SampleRecord) of any content; one of an unknown kind or with invalid fields does not
//! affect the others. The payload of every other kind of block is a JSON object. Each block is written with one system
//! call, so if the writer is terminated, all earlier blocks stay readable.
//!
//! | bytes | start of a sample block |
//! |---|---|
//! | 8 | earliest time of a record |
//! | 8 | latest time of a record |
//! | 4 | number of records |
//! | 4 | number of places |
//! | 4 | size in bytes of the columns before compression |
//! | 4 | CRC-32 of the preceding 28 bytes |
//!
//! A reader can skip the rest if it needs other times ([`Reader::within`]). The rest is a zstd frame (RFC 8878) with
//! twelve columns. A column is one byte with its width `w`, then the lowest bytes of all its values, the next ones, and
//! so on to byte `w - 1`. The first seven columns have a value for each place, the others one for each record. Values
//! marked with ± are differences, doubled, and inverted if negative.
//!
//! | column | of each place |
//! |---|---|
//! | 1 to 5 | `kind`, `mode`, `source`, and the two words of a record at 16 and 20: process and thread |
//! | 6 | ± the word at 8, the address, from that of the preceding place |
//! | 7 | ± of a branch, its target at 40 from its address; 0 for other kinds |
//!
//! | column | of each record |
//! |---|---|
//! | 8, 9 | `processor`, number of its place |
//! | 10 | ± `time` from the preceding record of the same processor in the block, or from the earliest time |
//! | 11 | ± the word at 32, the interval, from the same record, or from 0 |
//! | 12 | ± the word at 40 from that of the preceding such record that is not a branch, or from 0; 0 for branches |
//!
//! Blocks do not depend on each other, so they can be decoded in parallel ([`Reader::next_encoded`]). A later version
//! can add a column for each place: the stack of its samples, by its number in blocks of a new kind.
//!
//! A recording with a limit ([`Parts`]) has several parts behind each other. Each begins with a file header and repeats
//! the session, with its number in `part`, and the blocks are counted from 0 again. A reader skips the repetition.
//!
//! Versions 2 and 3 have the records themselves as the payload of a sample block, 48 bytes each.
//!
//! | module | contents |
//! |---|---|
//! | `block` | contents of the blocks |
//! | `columns` | samples in columns |
//! | `parts`, `joined` | the newest samples of a recording with a limit, in files beside it; reads them with it |
//! | `frame` | the layouts above |
//! | `writer` | [`Writer`] and its errors |
//! | `reader` | [`Reader`] and its errors |

#![forbid(unsafe_code)]

mod block;
mod columns;
mod frame;
mod joined;
mod parts;
mod reader;
mod writer;

pub use block::{
    Block, CoreTypeProcessors, Count, DebugFile, Disturbed, KERNEL, Kept, Module, Process, RecordedEvent, Session,
    Summary,
};
pub use columns::SampleColumns;
pub use frame::{FORMAT_VERSION, MAX_SAMPLES, OLDEST_VERSION};
pub use joined::JoinedFile;
pub use parts::{Limits, Parts, existing_parts, move_parts, remove_parts};
pub use reader::{BlockError, EncodedBlock, EncodedSamples, ReadError, Reader};
pub use writer::{WriteError, Writer};
