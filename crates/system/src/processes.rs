//! The lists of processes and modules, as Windows gives them.

pub mod loader_list;
pub mod nt_modules;
pub mod nt_processes;
