//! Dumps of CPUID. One program, because each is linked anew.

mod parse;
mod properties;
