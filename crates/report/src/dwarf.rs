//! Lines and inlined functions from the DWARF of an image.

use std::sync::{Arc, Mutex, PoisonError};

use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian};
use object::{Object, ObjectSection};
use recording::printable;
use rustc_hash::FxHashMap;

use crate::demangle::demangle;

type Reader = EndianArcSlice<LittleEndian>;

/// A function at an address, and the place in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CodeFrame {
    /// The function, if it has a name.
    pub function: Option<String>,
    /// Path of the source file, as the compiler recorded it.
    pub file: Option<String>,
    /// Number of the line, from 1.
    pub line: Option<u32>,
}

impl CodeFrame {
    /// Creates a frame from texts of a file.
    pub fn new(function: Option<&str>, file: Option<&str>, line: Option<u32>) -> Self {
        let text = |text: &str| printable(text).into_owned();
        Self { function: function.map(text), file: file.map(text), line: line.filter(|line| *line > 0) }
    }
}

/// The DWARF of an image.
pub(crate) struct Dwarf(Mutex<Readers>);

struct Readers {
    context: Context<Reader>,
    /// Names that were demangled, which takes longer than to find them.
    demangled: FxHashMap<Box<str>, String>,
}

impl Dwarf {
    /// Copies the sections with debug information; `None` if there are none. Parts in other files, which "split DWARF"
    /// names by their paths, are not read.
    pub fn load<'data>(file: &impl Object<'data>) -> Option<Self> {
        file.section_by_name(".debug_info")?;
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok(EndianArcSlice::new(Arc::from(data.unwrap_or_default()), LittleEndian))
        };
        let context = Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()?;
        Some(Self(Mutex::new(Readers { context, demangled: FxHashMap::default() })))
    }

    /// Returns the functions at `address`, the innermost first. The address has the preferred base of the image.
    pub fn frames(&self, address: u64) -> Vec<CodeFrame> {
        let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Readers { context, demangled } = &mut *readers;
        let Ok(mut found) = context.find_frames(address).skip_all_loads() else { return Vec::new() };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = name.map(|name| match demangled.get(&*name) {
                Some(known) => known.clone(),
                None => demangled.entry((*name).into()).or_insert_with(|| demangle(&name)).clone(),
            });
            let location = frame.location;
            let file = location.as_ref().and_then(|location| location.file);
            frames.push(CodeFrame::new(name.as_deref(), file, location.as_ref().and_then(|location| location.line)));
        }
        frames
    }
}
