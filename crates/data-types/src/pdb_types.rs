//! The types and variables of a PDB.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pdb_addr2line::pdb::{
    AddressMap, DebugInformation, Error, FallibleIterator as _, MachineType, PDB, StreamIndex, SymbolTable,
};

use crate::bytes::text;
use crate::data::{Datum, datum_at};
use crate::module::{Module, relative};
use crate::place::{self, End, Place, Search};
use crate::source::BoundedSource;
use crate::symbol_records::Symbol;
use crate::type_table::TypeTable;

/// Number of the stream of types.
const TYPE_STREAM: StreamIndex = StreamIndex(2);

/// A PDB that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(#[from] Error);

/// A part of a section that one module has made.
#[derive(Clone, Copy)]
struct Contribution {
    /// Relative to the image.
    start: u32,
    /// In bytes.
    size: u32,
    module: usize,
}

/// The types and variables of a PDB. Addresses are relative to the base of its image.
pub struct DataTypes {
    pdb: Mutex<PDB<'static, BoundedSource>>,
    debug: DebugInformation<'static>,
    map: AddressMap<'static>,
    types: TypeTable,
    /// Variables outside of functions, in ascending order.
    data: Vec<Datum>,
    /// In ascending order.
    contributions: Vec<Contribution>,
    /// Those that were read.
    modules: Mutex<BTreeMap<usize, Arc<Module>>>,
    is_64_bit: bool,
}

impl DataTypes {
    /// Opens the PDB at `path`. The variables of functions are read when they are asked for.
    ///
    /// # Errors
    /// If it cannot be read, or is no PDB.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::read(BoundedSource::new(File::open(path).map_err(Error::from)?).map_err(Error::from)?)
    }

    /// Reads a PDB from its bytes.
    ///
    /// # Errors
    /// If it is no PDB.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ReadError> {
        Self::read(BoundedSource::new(Cursor::new(bytes)).map_err(Error::from)?)
    }

    fn read(source: BoundedSource) -> Result<Self, ReadError> {
        let mut pdb = PDB::open(source)?;
        let debug = pdb.debug_information()?;
        let map = pdb.address_map()?;
        let types = pdb.raw_stream(TYPE_STREAM)?.ok_or(Error::StreamNotFound(TYPE_STREAM.0.into()))?;
        let types = TypeTable::new(Box::new(types));
        let data = data(&pdb.global_symbols()?, &map);
        let contributions = contributions(&debug, &map).unwrap_or_default();
        let machine = debug.machine_type()?;
        Ok(Self {
            pdb: Mutex::new(pdb),
            debug,
            map,
            types,
            data,
            contributions,
            modules: Mutex::default(),
            is_64_bit: machine == MachineType::Amd64,
        })
    }

    pub(crate) fn table(&self) -> &TypeTable {
        &self.types
    }

    /// Names the datum at `address`, of which `size` bytes are accessed; 0 if that is unknown. The address must be that
    /// of a variable of the image.
    #[must_use]
    pub fn global(&self, address: u32, size: u32) -> Option<Place> {
        self.global_end(address, size).map(End::into_place)
    }

    pub(crate) fn global_end(&self, address: u32, size: u32) -> Option<End> {
        let ((name, kind), offset) = self.datum(address)?;
        let path = place::Path::new(name, false);
        Some(Search::new(&self.types, size, false).find(kind, offset, path))
    }

    /// Returns name and type of the datum at `address`, and the offset in it.
    pub(crate) fn datum(&self, address: u32) -> Option<((String, u32), u64)> {
        let named = |(datum, offset): (&Datum, u64)| ((datum.name.to_string(), datum.kind), offset);
        datum_at(&self.data, address, &self.types).map(named).or_else(|| {
            let module = self.module_at(address)?;
            datum_at(&module.data, address, &self.types).map(named)
        })
    }

    /// Returns the module that made the code or data at `address`.
    pub(crate) fn module_at(&self, address: u32) -> Option<Arc<Module>> {
        let end = self.contributions.partition_point(|part| part.start <= address);
        let part = self.contributions.get(end.checked_sub(1)?)?;
        if address - part.start >= part.size {
            return None;
        }
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(&part.module) {
            return Some(Arc::clone(module));
        }
        let module = Arc::new(self.read_module(part.module).unwrap_or_default());
        modules.insert(part.module, Arc::clone(&module));
        Some(module)
    }

    fn read_module(&self, index: usize) -> Option<Module> {
        let module = self.debug.modules().ok()?.nth(index).ok()??;
        let mut pdb = self.pdb.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = pdb.module_info(&module).ok()??;
        Some(Module::read(&contents, &self.map, self.is_64_bit))
    }
}

/// Returns the variables outside of functions, in ascending order. A damaged record ends them.
fn data(symbols: &SymbolTable<'_>, map: &AddressMap<'_>) -> Vec<Datum> {
    let mut data = Vec::new();
    let mut records = symbols.iter();
    while let Ok(Some(record)) = records.next() {
        if let Some(Symbol::Data { kind, address, name }) = Symbol::parse(record.raw_bytes())
            && let Some(address) = relative(address, map)
        {
            data.push(Datum { address, kind, name: text(name).into() });
        }
    }
    data.sort_by_key(|datum| datum.address);
    data
}

fn contributions(debug: &DebugInformation<'_>, map: &AddressMap<'_>) -> Result<Vec<Contribution>, Error> {
    let mut contributions = Vec::new();
    let mut parts = debug.section_contributions()?;
    while let Some(part) = parts.next()? {
        if let Some(start) = part.offset.to_rva(map) {
            contributions.push(Contribution { start: start.0, size: part.size, module: part.module });
        }
    }
    contributions.sort_by_key(|part| part.start);
    Ok(contributions)
}
