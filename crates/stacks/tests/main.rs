//! The joiner of samples and frames. One program, because each is linked anew.

mod joining;
mod simulated;
