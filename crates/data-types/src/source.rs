//! The file of a PDB, with a limit of what is read from it at once.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use pdb_addr2line::pdb::{Source, SourceSlice, SourceView};

/// What a PDB is read from.
pub(crate) trait Input: Read + Seek + Send {}

impl<T: Read + Seek + Send> Input for T {}

/// A PDB whose streams have no more bytes than the file. A damaged directory can name a page many times, and would
/// then make streams of any length from a small file.
pub(crate) struct BoundedSource {
    input: Box<dyn Input>,
    /// Length of the file in bytes.
    length: u64,
}

impl BoundedSource {
    pub fn new(mut input: impl Input + 'static) -> io::Result<Self> {
        let length = input.seek(SeekFrom::End(0))?;
        Ok(Self { input: Box::new(input), length })
    }
}

impl fmt::Debug for BoundedSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BoundedSource").field("length", &self.length).finish_non_exhaustive()
    }
}

impl<'s> Source<'s> for BoundedSource {
    fn view(&mut self, slices: &[SourceSlice]) -> Result<Box<dyn SourceView<'s> + Send + Sync>, io::Error> {
        let sum = slices.iter().try_fold(0_u64, |sum, slice| sum.checked_add(slice.size as u64));
        if sum.is_none_or(|sum| sum > self.length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a stream has more bytes than the file"));
        }
        let mut bytes = Vec::new();
        for slice in slices {
            self.input.seek(SeekFrom::Start(slice.offset))?;
            let read = (&mut self.input).take(slice.size as u64).read_to_end(&mut bytes)?;
            if read != slice.size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Box::new(Contents(bytes)))
    }
}

/// The bytes of a stream.
struct Contents(Vec<u8>);

impl fmt::Debug for Contents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}

impl SourceView<'_> for Contents {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}
