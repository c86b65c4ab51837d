//! Symbols of a PE image: the symbol table of its file, or of the file with its debug information, and its exports.
//!
//! A name is shown only for code that is known to belong to it. The exception directory says where functions begin and
//! end. Where it does not, a symbol ends at the next one, but an exported function ends where its code does, because
//! most functions have no export. Public names of a PDB are treated in the same way.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use object::pe::{
    IMAGE_DIRECTORY_ENTRY_EXCEPTION, IMAGE_SCN_MEM_EXECUTE, IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_STATIC,
    IMAGE_SYM_DTYPE_FUNCTION, ImageNtHeaders32, ImageNtHeaders64, ImageSectionHeader,
};
use object::read::coff::Symbol as _;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile};
use object::read::{FileKind, ObjectSymbol as _, ReadCache, ReadRef};
use object::{LittleEndian, Object as _, ObjectSection as _};
use rustc_hash::FxHashMap;

use crate::code_flow::{MAX_CODE, function_length};
use crate::demangle::demangle;
use crate::dwarf::{CodeFrame, Dwarf};
use crate::found_symbol::{FoundName, FoundSymbol, inlined};
use crate::unwind_functions::UnwindFunctions;

/// Name of the section that names a file with debug information ("Debugging Information in Separate Files", GDB).
const DEBUG_LINK: &str = ".gnu_debuglink";

/// Where a name is from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A function of the symbol table.
    Function,
    /// A symbol of another type, such as those of Go 1.19 and of assemblers.
    Code,
    /// The export table. An export without a name has an empty one.
    Export,
}

/// The beginning of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    address: u32,
    origin: Origin,
    /// The name as the file has it.
    name: Box<str>,
}

/// A section with code.
#[derive(Debug, Clone, Copy)]
struct CodeSection {
    begin: u32,
    end: u32,
    /// Offset and number of its bytes in the file.
    file_offset: u32,
    file_size: u32,
}

/// The symbols of an image. Addresses are relative to its base.
pub(crate) struct ImageSymbols {
    path: PathBuf,
    /// The preferred base.
    base: u64,
    is_64_bit: bool,
    code: Vec<CodeSection>,
    functions: UnwindFunctions,
    /// In ascending order, the best name of an address first.
    names: Vec<Named>,
    dwarf: Option<Dwarf>,
    /// The ends of exported functions that were searched for.
    ends: Mutex<FxHashMap<u32, u32>>,
    /// The best names of the addresses that were looked up.
    found: Mutex<FxHashMap<u32, Option<FoundName>>>,
}

/// A file with debug information, which an image names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebugLink {
    /// Its name, without a folder.
    pub name: String,
    /// CRC-32 of its bytes.
    pub checksum: u32,
}

impl ImageSymbols {
    /// Reads the image at `path`. `debug_file` returns the path of the file with its debug information, if it is found.
    ///
    /// # Errors
    /// If one of the files cannot be read.
    pub fn read(path: &Path, debug_file: impl FnOnce(&DebugLink) -> Option<PathBuf>) -> io::Result<Self> {
        let file = ReadCache::new(File::open(path)?);
        match FileKind::parse(&file).map_err(io::Error::other)? {
            FileKind::Pe32 => Self::of::<ImageNtHeaders32>(path, &file, debug_file),
            FileKind::Pe64 => Self::of::<ImageNtHeaders64>(path, &file, debug_file),
            kind => Err(io::Error::other(format!("it is no PE image, but {kind:?}"))),
        }
    }

    fn of<Headers: ImageNtHeaders>(
        path: &Path,
        data: &ReadCache<File>,
        debug_file: impl FnOnce(&DebugLink) -> Option<PathBuf>,
    ) -> io::Result<Self> {
        let file = PeFile::<Headers, _>::parse(data).map_err(io::Error::other)?;
        let code: Vec<CodeSection> = file.section_table().iter().filter_map(code_section).collect();
        let functions = unwind_functions(&file, data);
        let (mut names, mut dwarf) = (Vec::new(), None);
        let separate = debug_link(&file).as_ref().and_then(debug_file);
        if let Some(separate) = separate {
            let data = ReadCache::new(File::open(separate)?);
            let file = PeFile::<Headers, _>::parse(&data).map_err(io::Error::other)?;
            (names, dwarf) = (symbol_table(&file, &code, &functions), Dwarf::load(&file));
        }
        if names.is_empty() {
            names = symbol_table(&file, &code, &functions);
        }
        names.extend(exports(&file, &code));
        names.sort_by_key(|named| (named.address, named.origin));
        Ok(Self {
            path: path.to_owned(),
            base: file.nt_headers().optional_header().image_base(),
            is_64_bit: file.nt_headers().is_type_64(),
            code,
            functions,
            names,
            dwarf: dwarf.or_else(|| Dwarf::load(&file)),
            ends: Mutex::default(),
            found: Mutex::default(),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file has symbols, apart from exports.
    pub fn has_symbols(&self) -> bool {
        self.names.iter().any(|named| named.origin != Origin::Export)
    }

    /// Returns whether the file has names of functions.
    pub fn has_names(&self) -> bool {
        self.names.iter().any(|named| !named.name.is_empty())
    }

    /// Returns the function at `offset`. It has no name if the file has none for it; `None` if not even the function is
    /// known.
    pub fn at(&self, offset: u32) -> Option<FoundSymbol> {
        let (address, name) = self.function_at(offset)?;
        Some(FoundSymbol { address, size: None, name, inlined: inlined(self.frames(offset)) })
    }

    fn function_at(&self, offset: u32) -> Option<(u32, Option<FoundName>)> {
        let section = *self.code.iter().find(|section| (section.begin..section.end).contains(&offset))?;
        let nearest = self.last_named(offset).filter(|address| *address >= section.begin);
        if let Some(part) = self.functions.part_at(offset) {
            let is_own = |address: &u32| {
                *address == part.function
                    || self.functions.part_at(*address).is_some_and(|other| other.function == part.function)
            };
            let first = || self.last_named(part.function);
            let address = nearest.filter(is_own).or_else(|| first().filter(is_own));
            return Some(address.map_or((part.function, None), |address| (address, self.name(address))));
        }
        let address = nearest?;
        let is_beyond = || self.is_export(address) && offset >= self.end(address, section);
        (!self.is_unwound_before(address, offset) && !is_beyond()).then(|| (address, self.name(address)))
    }

    /// Returns whether a function with unwind information begins at or after `address` and not after `offset`, or has
    /// `address`. `offset`, which has no such information, is in another one then.
    fn is_unwound_before(&self, address: u32, offset: u32) -> bool {
        self.functions.part_at(address).is_some()
            || self.functions.next_after(address).is_some_and(|begin| begin <= offset)
    }

    /// Returns what has `offset`: `public`, the last public name of a PDB before it, or another function without a
    /// name. Most PDBs of others have no names of static functions.
    pub fn function_of_public(&self, public: FoundSymbol, offset: u32) -> Option<FoundSymbol> {
        let Some(section) = self.code.iter().find(|section| (section.begin..section.end).contains(&offset)) else {
            return Some(public);
        };
        let address = public.address;
        if let Some(part) = self.functions.part_at(offset) {
            let is_own = address == part.function
                || self.functions.part_at(address).is_some_and(|other| other.function == part.function);
            let other = FoundSymbol { address: part.function, size: None, name: None, inlined: Vec::new() };
            return Some(if is_own { public } else { other });
        }
        let is_own = !self.is_unwound_before(address, offset) && offset < self.end(address, *section);
        is_own.then_some(public)
    }

    /// Returns the last address up to `offset` that has names.
    fn last_named(&self, offset: u32) -> Option<u32> {
        let after = self.names.partition_point(|named| named.address <= offset);
        self.names.get(after.checked_sub(1)?).map(|named| named.address)
    }

    fn named(&self, address: u32) -> &[Named] {
        let first = self.names.partition_point(|named| named.address < address);
        let after = self.names.partition_point(|named| named.address <= address);
        self.names.get(first..after).unwrap_or_default()
    }

    fn is_export(&self, address: u32) -> bool {
        self.named(address).first().is_some_and(|named| named.origin == Origin::Export)
    }

    /// Returns the best name at `address`, which is demangled once.
    fn name(&self, address: u32) -> Option<FoundName> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(address).or_insert_with(|| self.best_name(address)).clone()
    }

    /// Chooses the best name at `address`. Functions in a symbol table with the same address were folded into one.
    fn best_name(&self, address: u32) -> Option<FoundName> {
        let named = self.named(address);
        let best = named.iter().find(|named| !named.name.is_empty())?;
        let alike = named.iter().filter(|one| one.origin == best.origin && best.origin != Origin::Export);
        Some(FoundName::of(&demangle(&best.name), alike.map(|one| demangle(&one.name))))
    }

    /// Returns the end of an exported function that has no unwind information.
    fn end(&self, address: u32, section: CodeSection) -> u32 {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        *ends.entry(address).or_insert_with(|| {
            let code = self.read_code(address, section).unwrap_or_default();
            let length = function_length(&code, self.is_64_bit);
            address.saturating_add(u32::try_from(length).unwrap_or(u32::MAX))
        })
    }

    fn read_code(&self, address: u32, section: CodeSection) -> io::Result<Vec<u8>> {
        let skipped = address - section.begin;
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(u64::from(section.file_offset) + u64::from(skipped)))?;
        let length = section.file_size.saturating_sub(skipped).min(u32::try_from(MAX_CODE).unwrap_or(u32::MAX));
        let mut code = Vec::new();
        file.take(length.into()).read_to_end(&mut code)?;
        Ok(code)
    }

    /// Returns the functions of the source code at `offset`, the innermost first.
    pub fn frames(&self, offset: u32) -> Vec<CodeFrame> {
        self.dwarf.as_ref().map_or_else(Vec::new, |dwarf| dwarf.frames(self.base.saturating_add(offset.into())))
    }

    /// Returns the beginning of the first function with a name after `address`.
    pub fn next_after(&self, address: u32) -> Option<u32> {
        self.names.get(self.names.partition_point(|named| named.address <= address)).map(|named| named.address)
    }
}

fn code_section(header: &ImageSectionHeader) -> Option<CodeSection> {
    let is_code = header.characteristics.get(LittleEndian).0 & IMAGE_SCN_MEM_EXECUTE.0 != 0;
    let begin = header.virtual_address.get(LittleEndian);
    is_code.then(|| CodeSection {
        begin,
        end: begin.saturating_add(header.virtual_size.get(LittleEndian)),
        file_offset: header.pointer_to_raw_data.get(LittleEndian),
        file_size: header.size_of_raw_data.get(LittleEndian),
    })
}

/// Returns the file with debug information that an image names, if it does.
fn debug_link<'data, Headers: ImageNtHeaders, Data: ReadRef<'data>>(
    file: &PeFile<'data, Headers, Data>,
) -> Option<DebugLink> {
    let data = file.section_by_name(DEBUG_LINK)?.data().ok()?;
    let length = data.iter().position(|byte| *byte == 0)?;
    let name = str::from_utf8(data.get(..length)?).ok()?;
    let checksum = data.get((length + 1).next_multiple_of(4)..)?.first_chunk()?;
    Some(DebugLink { name: name.to_owned(), checksum: u32::from_le_bytes(*checksum) })
}

fn unwind_functions<'data, Headers: ImageNtHeaders>(
    file: &PeFile<'data, Headers, &'data ReadCache<File>>,
    data: &'data ReadCache<File>,
) -> UnwindFunctions {
    let directory = file.data_directories().get(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
    let Some(directory) = directory.filter(|_| file.nt_headers().is_type_64()) else {
        return UnwindFunctions::default();
    };
    // Each section is read once.
    let sections: Vec<(u32, &[u8])> = file
        .section_table()
        .iter()
        .filter(|section| code_section(section).is_none())
        .filter_map(|section| {
            section.pe_data(data).ok().map(|bytes| (section.virtual_address.get(LittleEndian), bytes))
        })
        .collect();
    let at = |address: u32| {
        sections.iter().find_map(|(begin, bytes)| {
            let skipped = usize::try_from(address.checked_sub(*begin)?).ok()?;
            bytes.get(skipped..).filter(|rest| !rest.is_empty())
        })
    };
    let size = usize::try_from(directory.size.get(LittleEndian)).unwrap_or_default();
    let entries = at(directory.virtual_address.get(LittleEndian)).and_then(|bytes| bytes.get(..size));
    UnwindFunctions::read(entries.unwrap_or_default(), &at)
}

/// Returns the names of code in the symbol table of `file`.
fn symbol_table<'data, Headers: ImageNtHeaders, Data: ReadRef<'data>>(
    file: &PeFile<'data, Headers, Data>,
    code: &[CodeSection],
    functions: &UnwindFunctions,
) -> Vec<Named> {
    let base = file.nt_headers().optional_header().image_base();
    let named = |symbol: object::read::coff::CoffSymbol<'data, '_, Data>| {
        let raw = symbol.coff_symbol();
        if !matches!(raw.storage_class(), IMAGE_SYM_CLASS_EXTERNAL | IMAGE_SYM_CLASS_STATIC) || raw.has_aux_section() {
            return None;
        }
        let address = u32::try_from(symbol.address().checked_sub(base)?).ok()?;
        let is_code = code.iter().any(|section| (section.begin..section.end).contains(&address));
        let is_function = raw.derived_type() == IMAGE_SYM_DTYPE_FUNCTION;
        // A symbol of another type within a function is a label.
        let is_label = || functions.part_at(address).is_some_and(|part| part.begin != address);
        if !is_code || (!is_function && is_label()) {
            return None;
        }
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?);
        let origin = if is_function { Origin::Function } else { Origin::Code };
        Some(Named { address, origin, name: name.into() }).filter(|named| !named.name.is_empty())
    };
    file.symbols().filter_map(named).collect()
}

/// Returns the exported functions of `file`.
fn exports<'data, Headers: ImageNtHeaders, Data: ReadRef<'data>>(
    file: &PeFile<'data, Headers, Data>,
    code: &[CodeSection],
) -> Vec<Named> {
    let Ok(Some(table)) = file.export_table() else { return Vec::new() };
    let Ok(exports) = table.exports() else { return Vec::new() };
    let named = |export: object::read::pe::Export<'data>| {
        let object::read::pe::ExportTarget::Address(address) = export.target else { return None };
        let is_code = code.iter().any(|section| (section.begin..section.end).contains(&address));
        let name = String::from_utf8_lossy(export.name.unwrap_or_default()).into();
        is_code.then_some(Named { address, origin: Origin::Export, name })
    };
    exports.into_iter().filter_map(named).collect()
}
