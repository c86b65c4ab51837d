//! Tests of the ABI as a C program calls it, on groups of the test instead of the library's.

mod abi;
mod fake;
mod header;
