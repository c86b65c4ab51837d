//! What client and driver agree on, from documents and not from the constants. One program, because each is linked
//! anew.

mod numbers;
mod records;
mod security;
mod trace;
