//! The recording that is read. It is one type for every kind of file, so its readers are compiled only once.

use std::io::{Read, Seek};

use recording::{ReadError, Reader};

/// A recording: a file, or its bytes.
pub trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// The blocks of a recording.
pub(crate) type Blocks<'a> = Reader<&'a mut dyn Input>;

/// Returns the blocks of a recording.
pub(crate) fn blocks(input: &mut dyn Input) -> Result<Blocks<'_>, ReadError> {
    Reader::new(input)
}
