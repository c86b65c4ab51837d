//! The recording file that `record` writes and `report` reads.
//!
//! A file header is followed by blocks: one [`RecordedSession`], then [`Process`], [`Methods`] and sample blocks in the
//! order in which they became known, then one [`Summary`]. Before the samples that need them come blocks of call
//! stacks. All integers are little-endian.
//!
//! | bytes | file header |
//! |---|---|
//! | 8 | 0x89, `HALPRF`, line feed |
//! | 4 | [`FORMAT_VERSION`] |
//! | 4 | zero |
//!
//! | bytes | block header |
//! |---|---|
//! | 4 | kind: 1 session, 2 process, 3 samples, 4 summary, 5 stacks, 6 methods |
//! | 4 | size in bytes of the payload that follows the header |
//! | 8 | sequence number of the block, from 0 |
//! | 4 | CRC-32 of the payload |
//! | 4 | CRC-32 of the preceding 20 bytes |
//!
//! The payload of a sample block has 1 to [`MAX_SAMPLES`] records as the driver returned them, in their order. A record
//! is a [`SampleRecord`](protocol::SampleRecord) of any content; one of an unknown kind or with invalid fields does not
//! affect the others. The payload of a block of another kind, except stacks, is a JSON object. Each block is written
//! with one system call, so if the writer is terminated, all earlier blocks stay readable.
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
//! thirteen columns. A column is one byte with its width `w`, then the lowest bytes of all its values, the next ones,
//! and so on to byte `w - 1`. The first eight columns have a value for each place, the others one for each record.
//! Values marked with ± are differences, doubled, and inverted if negative.
//!
//! | column | of each place |
//! |---|---|
//! | 1 to 5 | `kind`, `mode`, `event`, and the two words of a record at 16 and 20: process and thread |
//! | 6 | ± the word at 8, the address, from that of the preceding place |
//! | 7 | ± of a branch, its target at 40 from its address; 0 for other kinds |
//! | 8 | ± number of the call stack, from that of the preceding place |
//!
//! | column | of each record |
//! |---|---|
//! | 9, 10 | `processor`, number of its place |
//! | 11 | ± `time` from the preceding record of the same processor in the block, or from the earliest time |
//! | 12 | ± the word at 32, the interval, from the same record, or from 0 |
//! | 13 | ± the word at 40 from that of the preceding such record that is not a branch, or from 0; 0 for branches |
//!
//! The word at 44 of a sample, its cookie, is written as 0: it has joined the sample and its stack.
//!
//! # Call stacks
//!
//! Stacks are a tree. A node is a caller: its return address and its parent, the next caller outward. The number of a
//! stack is that of its innermost caller. Some numbers are common to all recordings:
//!
//! | number | meaning |
//! |---|---|
//! | 0 | call stacks were not recorded |
//! | 1 to 3 | a [`StackEnd`]: the parent of an outermost caller, and a stack without callers |
//! | 4 to 10 | a [`MissingStack`]: why the sample has no stack |
//! | 11 to 15 | reserved |
//! | from 16 | nodes |
//!
//! Nodes are numbered in the order of the file, parents before their children. When a writer has too many nodes in
//! memory, it forgets them, and the numbering begins at 16 again. A reader adds the numbers of nodes before, so that a
//! [`StackId`] is valid in the whole recording.
//!
//! | bytes | start of a block of stacks |
//! |---|---|
//! | 4 | number of the first node: the next one, or 16 |
//! | 4 | number of nodes, 1 to 65,536 |
//! | 4 | size in bytes of the columns before compression |
//! | 4 | CRC-32 of the preceding 12 bytes |
//!
//! The rest is a zstd frame with two columns, as those of samples:
//!
//! | column | of each node |
//! |---|---|
//! | 1 | number of the node minus number of its parent |
//! | 2 | ± address, from that of the preceding node in the block |
//!
//! # Parts
//!
//! Blocks can be decoded in parallel ([`Reader::next_encoded`]): their columns do not depend on other blocks.
//!
//! A recording with a limit ([`Parts`]) has several parts behind each other. Each begins with a file header and repeats
//! the session, with its number in `part`. Blocks are counted from 0 again, and stacks numbered from 16. A reader skips
//! the repeated session.
//!
//! | module | contents |
//! |---|---|
//! | `block` | contents of the blocks |
//! | `stack`, `tree` | call stacks of samples; their tree, and its blocks |
//! | `columns`, `divided_columns`, `differences`, `sample_place` | samples in columns |
//! | `decompressed`, `place_counts` | blocks of samples of which not all columns are decoded; their samples by place |
//! | `parts`, `joined` | the newest samples of a recording with a limit, in files beside it; reads them with it |
//! | `frame` | the layouts above |
//! | `writer` | [`Writer`] and its errors |
//! | `reader`, `encoded` | [`Reader`] and its errors; blocks that are not decoded yet |

#![forbid(unsafe_code)]

mod block;
mod column;
mod columns;
mod decompressed;
mod differences;
mod divided_columns;
mod encoded;
mod error;
mod frame;
mod joined;
mod parts;
mod place_counts;
mod reader;
mod sample_place;
mod stack;
mod text;
mod tree;
mod writer;

pub use block::{
    Block, CoreTypeProcessors, Count, DebugFile, Disturbed, KERNEL, Kept, Method, Methods, Module, OffCpuSummary,
    Process, RecordedEvent, RecordedSession, RecordedTasks, Summary,
};
pub use columns::SampleColumns;
pub use decompressed::DecompressedSamples;
pub use encoded::{EncodedBlock, EncodedSamples, EncodedStacks, SamplesPosition};
pub use error::{BlockError, ReadError};
pub use frame::{FORMAT_VERSION, MAX_SAMPLES};
pub use joined::JoinedFile;
pub use parts::{Limits, Parts, existing_parts, move_parts, remove_parts};
pub use place_counts::{CountedPlace, PlaceCounts};
pub use reader::Reader;
pub use stack::{CallStack, MissingStack, SampleStack, StackEnd, StackId};
pub use text::printable;
pub use tree::{StackNode, StackNodes, StackTree};
pub use writer::{WriteError, Writer};
