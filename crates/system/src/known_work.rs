//! Work whose instructions, branches and callers are known.

/// Instructions that an iteration retires: six additions, the decrement and the branch.
pub const INSTRUCTIONS: u64 = 8;

/// Branches that an iteration retires.
pub const BRANCHES: u64 = 1;

/// Number of nested calls whose return addresses are known.
pub const CALLS: usize = 3;

/// One of two functions with the same loop at different addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// Iterations of the loop of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWork {
    /// The function.
    pub function: Function,
    /// Their number, at least 1.
    pub iterations: u64,
}
