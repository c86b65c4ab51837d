//! What a trace session delivers.

use protocol::trace;

/// Maximum number of frames of a stack. Windows leaves out the outermost frames of a longer one.
pub const MAX_FRAMES: usize = 192;

/// Which frames a call stack has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraph {
    /// Those in kernel mode, as `perf record --kernel-callchains`. The stack of a sample in user mode is empty: it is
    /// known without an event, and is neither waited for nor missing.
    Kernel,
    /// Those in user mode, as `perf record --user-callchains`. A sample in kernel mode has the user-mode callers of the
    /// system call or exception.
    User,
    /// All.
    Both,
}

/// The item with a stack that Windows adds to an event (EVENT_EXTENDED_ITEM_STACK_TRACE64).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackItem {
    /// Zero if the item has the frames of both modes; else the number that the item with those in user mode has too.
    pub match_id: u64,
    /// Addresses, from the innermost frame to the outermost.
    pub frames: Box<[u64]>,
}

/// An event of the driver for a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleEvent {
    /// Payload of the event.
    pub payload: trace::Sample,
    /// Process in which the event was written, if it is known.
    pub process: Option<u32>,
    /// Thread in which the event was written, if it is known.
    pub thread: Option<u32>,
    /// The stack, if Windows added one.
    pub stack: Option<StackItem>,
}

/// An item with frames in user mode, which can come with any event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPart {
    /// Process of the event, if it is known.
    pub process: Option<u32>,
    /// Thread of the event, if it is known.
    pub thread: Option<u32>,
    /// Time of the event, in units of the clock of samples.
    pub time: u64,
    /// The item.
    pub stack: StackItem,
}
