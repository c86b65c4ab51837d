//! The library against a model of the machine. One program, because each is linked anew.

mod driver;
mod groups;
mod lab;
mod precise_names;
mod regions;
