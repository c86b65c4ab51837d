//! What the scheduler can run.

/// A thread of the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveThread {
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// The process that started its process.
    pub parent: u32,
    /// File name of the program.
    pub name: String,
}
