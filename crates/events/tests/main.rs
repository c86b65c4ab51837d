//! Names, metrics and tables of events. One program, because each is linked anew.

mod builtin;
mod common;
mod constraints;
mod expressions;
mod formulas;
mod generic;
mod import;
mod metrics;
mod models;
mod names;
