//! The privilege level of execution.

/// The privilege level of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// CPL 3.
    User,
    /// CPL 0.
    Kernel,
}
