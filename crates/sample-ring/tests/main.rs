//! The ring, as its users see it. One program, because each is linked anew.

#![cfg(not(loom))]

mod aligned;
mod laws;
