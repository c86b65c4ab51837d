//! Symbols of a PDB.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use debugid::DebugId;
use pdb_addr2line::pdb::{FallibleIterator as _, PDB, SymbolData};
use pdb_addr2line::{Context, ContextPdbData, Error, FunctionFrames};
use rustc_hash::FxHashMap;
use self_cell::self_cell;

use crate::demangle::demangle;
use crate::dwarf::CodeFrame;
use crate::found_symbol::{FoundName, FoundSymbol, inlined};

type Data = ContextPdbData<'static, 'static, File>;
type Functions<'a> = Context<'a, 'static>;

self_cell!(
    /// The functions and lines of a PDB, which are read as they are asked for.
    struct Contents {
        owner: Data,
        #[not_covariant]
        dependent: Functions,
    }
);

/// The symbols of a PDB. Addresses are relative to the base of its image.
pub(crate) struct PdbSymbols {
    contents: Mutex<Contents>,
    /// The public names of addresses that have several.
    shared: FxHashMap<u32, Vec<Box<str>>>,
    path: PathBuf,
    /// The public names, if nothing else of the file can be read.
    public: OnceLock<Vec<(u32, Box<str>)>>,
}

impl PdbSymbols {
    /// Opens the PDB at `path`. The result is its build, and its symbols.
    ///
    /// # Errors
    /// If it cannot be read, or is no PDB.
    pub fn read(path: &Path) -> Result<(DebugId, Self), Error> {
        let mut pdb = PDB::open(File::open(path).map_err(pdb_addr2line::pdb::Error::from)?)?;
        let information = pdb.pdb_information()?;
        let age = pdb.debug_information()?.age().unwrap_or(information.age);
        let build = DebugId::from_parts(information.guid, age);
        let shared = shared_names(&mut pdb)?;
        let contents = Contents::try_new(Data::try_from_pdb(pdb)?, Data::make_context)?;
        let (contents, path) = (Mutex::new(contents), path.to_owned());
        Ok((build, Self { contents, shared, path, public: OnceLock::new() }))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the function at `offset` by the public names alone, which are in a table of their own. It extends to the
    /// next one.
    pub fn public_at(&self, offset: u32) -> Option<FoundSymbol> {
        let names = self.public.get_or_init(|| public_names(&self.path).unwrap_or_default());
        let next = names.partition_point(|(address, _)| *address <= offset);
        let (address, name) = names.get(next.checked_sub(1)?)?;
        let size = names.get(next).map(|(end, _)| end - address);
        Some(FoundSymbol { address: *address, size, name: Some(self.name(*address, name)), inlined: Vec::new() })
    }

    fn with_frames<T>(&self, offset: u32, read: impl FnOnce(&FunctionFrames<'_>) -> T) -> Option<T> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.with_dependent(|_, functions| functions.find_frames(offset).ok().flatten().map(|found| read(&found)))
    }

    /// Returns the function at `offset`. It has no name if the PDB has none for its code, and no size if only a public
    /// name is known: that one extends to the next, and has no lines of source code.
    pub fn at(&self, offset: u32) -> Option<FoundSymbol> {
        self.with_frames(offset, |found| {
            let name = found.frames.last().and_then(|frame| frame.function.as_deref());
            let end = found.end_rva.filter(|_| found.frames.iter().any(|frame| frame.line.is_some()));
            FoundSymbol {
                address: found.start_rva,
                size: end.and_then(|end| end.checked_sub(found.start_rva)),
                name: name.map(|name| self.name(found.start_rva, name)),
                inlined: inlined(code_frames(found)),
            }
        })
    }

    /// Returns a name with the number of functions that were folded into this one.
    fn name(&self, address: u32, name: &str) -> FoundName {
        let names = self.shared.get(&address).map_or(&[][..], Vec::as_slice);
        FoundName::of(&demangle(name), names.iter().map(|name| demangle(name)))
    }

    /// Returns the functions of the source code at `offset`, the innermost first.
    pub fn frames(&self, offset: u32) -> Vec<CodeFrame> {
        self.with_frames(offset, code_frames).unwrap_or_default()
    }

    /// Returns the beginning of the first function after `address`.
    pub fn next_after(&self, address: u32) -> Option<u32> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.with_dependent(|_, functions| {
            functions.functions().map(|function| function.start_rva).filter(|start| *start > address).min()
        })
    }
}

fn code_frames(found: &FunctionFrames<'_>) -> Vec<CodeFrame> {
    let frame = |frame: &pdb_addr2line::Frame<'_>| {
        let name = frame.function.as_deref().map(demangle);
        CodeFrame::new(name.as_deref(), frame.file.as_deref(), frame.line)
    };
    found.frames.iter().map(frame).collect()
}

/// Returns the first public name of each address with code, in ascending order.
fn public_names(path: &Path) -> Result<Vec<(u32, Box<str>)>, Error> {
    let mut pdb = PDB::open(File::open(path).map_err(pdb_addr2line::pdb::Error::from)?)?;
    let mut names = Vec::new();
    each_public(&mut pdb, |address, name| names.push((address, name)))?;
    names.sort_by_key(|(address, _)| *address);
    names.dedup_by_key(|(address, _)| *address);
    Ok(names)
}

/// Returns the public names of code at addresses that have several of them.
fn shared_names(pdb: &mut PDB<'static, File>) -> Result<FxHashMap<u32, Vec<Box<str>>>, Error> {
    let mut names: FxHashMap<u32, Vec<Box<str>>> = FxHashMap::default();
    let mut first: FxHashMap<u32, Box<str>> = FxHashMap::default();
    each_public(pdb, |address, name| match first.get(&address) {
        None => drop(first.insert(address, name)),
        Some(known) => names.entry(address).or_insert_with(|| vec![known.clone()]).push(name),
    })?;
    Ok(names)
}

/// Passes each public name of code with its address.
fn each_public(pdb: &mut PDB<'static, File>, mut each: impl FnMut(u32, Box<str>)) -> Result<(), Error> {
    let (map, table) = (pdb.address_map()?, pdb.global_symbols()?);
    let mut symbols = table.iter();
    while let Some(symbol) = symbols.next()? {
        let Ok(SymbolData::Public(public)) = symbol.parse() else { continue };
        let Some(address) = public.offset.to_rva(&map).filter(|_| public.code || public.function) else { continue };
        each(address.0, public.name.to_string().into());
    }
    Ok(())
}
