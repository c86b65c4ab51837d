//! The client as a program. One program, because each is linked anew.

mod closed_pipe;
mod without_driver;
