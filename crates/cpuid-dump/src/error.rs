use thiserror::Error;

/// Why a text is no CPUID dump.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// Nothing in the text is a CPUID line.
    #[error("no CPUID line found")]
    NoLeaf,
    /// A line is meant as a CPUID line but cannot be read.
    #[error("line {line}: {cause}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        cause: Cause,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The leaf cannot be read.
    #[error("the leaf is not eight hexadecimal digits")]
    Leaf,
    /// The subleaf cannot be read.
    #[error("the subleaf is not one to eight hexadecimal digits")]
    Subleaf,
    /// No colon after the leaf.
    #[error("a colon is missing after the leaf")]
    Colon,
    /// The four registers cannot be read.
    #[error("the registers are not four times eight hexadecimal digits")]
    Registers,
    /// The dump is longer than any processor's.
    #[error("more than {} leaves", crate::MAX_LEAVES)]
    TooMany,
}
