//! What is true of all errors, and of the document that quotes messages.

mod every_error;
mod quotations;
