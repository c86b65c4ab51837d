use thiserror::Error;

/// Error of [`Dump::parse`](crate::Dump::parse).
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The text contains no CPUID line.
    #[error("no CPUID line found")]
    NoLeaf,
    /// A CPUID line is malformed.
    #[error("line {line}: {cause}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The error in the line.
        cause: LineError,
    },
}

/// An error in one line.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// The leaf is malformed.
    #[error("the leaf is not eight hexadecimal digits")]
    Leaf,
    /// The subleaf is malformed, or the two subleaves of the line differ.
    #[error("the subleaf is not one to eight hexadecimal digits")]
    Subleaf,
    /// The colon after the leaf is missing.
    #[error("a colon is missing after the leaf")]
    Colon,
    /// The register values are malformed.
    #[error("the registers are not four groups of eight hexadecimal digits")]
    Registers,
    /// The dump has more leaves than any processor.
    #[error("more than {} leaves", crate::MAX_LEAVES)]
    TooMany,
}
