//! What a user sees: text, tables, colors and the progress of reading on a terminal, and JSON for programs.

pub mod color;
pub mod columns;
pub mod context;
pub mod document;
pub mod format;
pub mod id;
pub mod output;
pub mod read_progress;
pub mod status_line;
