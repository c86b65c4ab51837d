//! A recording and its parts, read as one file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use zerocopy::{FromZeros, IntoBytes};

use crate::block::RecordedSession;
use crate::frame::{BlockHeader, BlockKind, FileHeader, MAGIC, MAX_JSON};
use crate::parts::existing_parts;

/// A recording, with the parts beside it if it was terminated before they were appended.
#[derive(Debug)]
pub struct JoinedFile {
    segments: Vec<Segment>,
    /// Index of the segment that is being read.
    current: usize,
    /// Number of its bytes that were read.
    offset: u64,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// Number of bytes that are read of it; unlimited for the last one, which may be a pipe.
    length: u64,
}

impl JoinedFile {
    /// Opens a recording, also while it is written.
    ///
    /// # Errors
    /// If it or one of its parts cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut removed = None;
        loop {
            if let Some(opened) = Self::open_now(path, &mut removed)? {
                return Ok(opened);
            }
        }
    }

    /// Opens a recording with the parts that are beside it now. `None` if the recorder removed one of them meanwhile,
    /// whose number is in `removed` then.
    fn open_now(path: &Path, removed: &mut Option<u32>) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        // Without a look into the folder there are no parts: the recording can be read all the same.
        let parts = existing_parts(path).unwrap_or_default();
        let numbers: Vec<u32> = parts.iter().map(|(number, _)| *number).collect();
        let mut segments = Vec::new();
        match start_without(&mut file, &numbers)? {
            Some(length) if !parts.is_empty() => {
                segments.push(Segment { file, length });
                for (number, path) in parts {
                    let file = match File::open(path) {
                        // A part that was removed never returns: if the folder still lists it, this is an error.
                        Err(error) if error.kind() == io::ErrorKind::NotFound && *removed != Some(number) => {
                            *removed = Some(number);
                            return Ok(None);
                        }
                        opened => opened?,
                    };
                    let length = file.metadata()?.len();
                    segments.push(Segment { file, length });
                }
            }
            _ => segments.push(Segment { file, length: u64::MAX }),
        }
        Ok(Some(Self { segments, current: 0, offset: 0 }))
    }

    /// Returns the number of bytes.
    ///
    /// # Errors
    /// If the system does not tell it.
    pub fn length(&self) -> io::Result<u64> {
        match &*self.segments {
            [only] => Ok(only.file.metadata()?.len()),
            segments => Ok(segments.iter().map(|segment| segment.length).sum()),
        }
    }
}

impl Read for JoinedFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while let Some(segment) = self.segments.get_mut(self.current) {
            let left = segment.length.saturating_sub(self.offset);
            let wanted = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let length = segment.file.read(bytes.get_mut(..wanted).unwrap_or_default())?;
            self.offset += length as u64;
            if length > 0 || bytes.is_empty() || self.current + 1 == self.segments.len() {
                return Ok(length);
            }
            self.enter(self.current + 1, 0)?;
        }
        Ok(0)
    }
}

impl JoinedFile {
    /// Goes to a place in a segment.
    fn enter(&mut self, index: usize, offset: u64) -> io::Result<()> {
        if let Some(segment) = self.segments.get_mut(index) {
            segment.file.seek(SeekFrom::Start(offset))?;
            (self.current, self.offset) = (index, offset);
        }
        Ok(())
    }

    /// Returns the current place, from the start of the first segment.
    fn position(&self) -> u64 {
        let before: u64 = self.segments.iter().take(self.current).map(|segment| segment.length).sum();
        before + self.offset
    }
}

impl Seek for JoinedFile {
    /// Goes to a place that is given from the start, or from the current place.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(distance) => self.position().checked_add_signed(distance),
            SeekFrom::End(_) => None,
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        let (mut index, mut offset) = (0, target);
        while let Some(segment) = self.segments.get(index)
            && offset >= segment.length
            && index + 1 < self.segments.len()
        {
            offset -= segment.length;
            index += 1;
        }
        self.enter(index, offset)?;
        Ok(target)
    }
}

/// Returns the size of the whole blocks of a recording, up to the first part that is also in a file of its own. `None`
/// if it has no such file, if it is complete, or if it is not a recording; it is then at its start again.
fn start_without(file: &mut File, parts: &[u32]) -> io::Result<Option<u64>> {
    if parts.is_empty() {
        return Ok(None);
    }
    let mut end = 0;
    let found = loop {
        let mut header = FileHeader::new_zeroed();
        if !fill(file, header.as_mut_bytes())? || header.magic != MAGIC {
            break (end > 0).then_some(end);
        }
        match blocks(file, parts)? {
            Blocks::Listed => break Some(end),
            Blocks::Complete => break None,
            // A part that was being appended has no session yet.
            Blocks::End(next) if next == end + size_of::<FileHeader>() as u64 => break Some(end),
            Blocks::End(next) => end = next,
        }
        file.seek(SeekFrom::Start(end))?;
    };
    file.seek(SeekFrom::Start(0))?;
    Ok(found)
}

/// What follows a file header.
enum Blocks {
    /// A part that is also in a file of its own.
    Listed,
    /// Blocks up to the summary.
    Complete,
    /// Whole blocks up to this offset.
    End(u64),
}

/// Goes through the blocks behind a file header.
fn blocks(file: &mut File, parts: &[u32]) -> io::Result<Blocks> {
    let size = file.metadata()?.len();
    let mut end = file.stream_position()?;
    loop {
        let mut header = BlockHeader::new_zeroed();
        if !fill(file, header.as_mut_bytes())? || header.checksum() != header.header_crc {
            return Ok(Blocks::End(end));
        }
        let payload = end + size_of::<BlockHeader>() as u64;
        let next = payload + u64::from(header.length);
        if next > size {
            return Ok(Blocks::End(end));
        }
        match BlockKind::from_number(header.kind) {
            Some(BlockKind::Summary) => return Ok(Blocks::Complete),
            Some(BlockKind::Session) if header.length as usize <= MAX_JSON => {
                let mut text = vec![0; header.length as usize];
                file.read_exact(&mut text)?;
                let listed = |session: &RecordedSession| parts.contains(&session.part);
                if serde_json::from_slice(&text).is_ok_and(|session| listed(&session)) {
                    return Ok(Blocks::Listed);
                }
            }
            _ => {}
        }
        end = file.seek(SeekFrom::Start(next))?;
    }
}

/// Fills the bytes. Returns false if the file ends before.
fn fill(file: &mut File, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
