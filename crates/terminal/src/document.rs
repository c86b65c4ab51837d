//! The JSON objects that the client prints for programs.
//!
//! Each names its schema in the member `schema`, such as `halprof.stat/1`. docs/schemas has the JSON Schema of each,
//! and says what can change without a new version.

use std::io::{BufWriter, Write};

use halprof::source::SourceInfo;
use serde::Serialize;

use user_error::Error;

/// An object that is printed as JSON.
pub trait Document: Serialize {
    /// Name and version of the schema.
    const SCHEMA: &'static str;
}

impl Document for SourceInfo {
    const SCHEMA: &'static str = "halprof.source/1";
}

/// A document with the name of its schema.
#[derive(Serialize)]
struct Named<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Document> Named<'a, T> {
    fn new(document: &'a T) -> Self {
        Self { schema: T::SCHEMA, document }
    }
}

/// Writes a document, followed by a line feed.
///
/// # Errors
/// If the output cannot be written.
pub fn write_json<T: Document>(out: &mut dyn Write, document: &T) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, &Named::new(document))?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Writes a document in one line.
///
/// # Errors
/// If the output cannot be written.
pub fn write_json_line<T: Document>(out: &mut dyn Write, document: &T) -> Result<(), Error> {
    serde_json::to_writer(&mut *out, &Named::new(document))?;
    Ok(writeln!(out)?)
}
