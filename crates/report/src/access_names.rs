//! The data of accesses, by the types of PDBs.

use std::cell::OnceCell;
use std::fs;

use data_types::{Code, DataTypes, Member, MemoryOperand, Operation, Place};
use protocol::AccessOperation;
use recording::printable;
use rustc_hash::FxHashMap;

use crate::accesses::{Access, Accesses, DataAddress};
use crate::function_code::{FunctionCode, function_code};
use crate::guard::guarded;
use crate::modules::ModuleId;
use crate::process_keys::ProcessKey;
use crate::read::Contents;
use crate::symbol_index::SymbolIndex;
use crate::symbols::SymbolFinder;

/// What says which data an access was of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamedBy {
    /// A variable has its address.
    Address,
    /// A variable of the function has the memory, or points to it.
    Instruction,
    /// Nothing: only the operand of the instruction is known.
    Operand,
    /// Nothing, and the instruction is unknown.
    #[default]
    Nothing,
}

/// The type of data without a name.
const UNKNOWN: &str = "[unknown]";

/// Index of a text in [`AccessNames`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId(u32);

/// Name of the data of an access.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AccessName {
    pub named_by: NamedBy,
    /// The structure; of data outside of structures, the type.
    pub type_name: TextId,
    /// The member and its offset in bytes; of data without a name, the operand.
    pub member: TextId,
    /// The variable and the member, as C writes it.
    pub variable: TextId,
}

/// What makes the names of two accesses the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NameKey {
    address: DataAddress,
    process: ProcessKey,
    ip: u64,
    operation: OperationKey,
}

/// Whether the operand is one that is written, and whether the address of the instruction is exact.
type OperationKey = (bool, bool);

impl NameKey {
    fn of(access: &Access) -> Self {
        let operation = (!access.is_load(), access.is_exact);
        Self { address: access.address, process: access.process, ip: access.ip, operation }
    }
}

/// Names of the data of accesses.
#[derive(Debug, Default)]
pub struct AccessNames {
    texts: Vec<String>,
    ids: FxHashMap<String, TextId>,
    names: FxHashMap<NameKey, AccessName>,
}

impl AccessNames {
    /// Names the data of all accesses, as far as the PDBs and images that `finder` finds say it.
    #[must_use]
    pub fn new(accesses: &Accesses, contents: &Contents, symbol_index: &SymbolIndex, finder: &SymbolFinder) -> Self {
        let mut names = Self::default();
        let mut search = Search { contents, symbol_index, finder, modules: FxHashMap::default() };
        for access in accesses.all() {
            let key = NameKey::of(access);
            if !names.names.contains_key(&key) {
                let name = names.intern(&search.find(access));
                names.names.insert(key, name);
            }
        }
        names
    }

    /// Returns what says which data an access was of.
    #[must_use]
    pub fn named_by(&self, access: &Access) -> NamedBy {
        self.name(access).named_by
    }

    pub(crate) fn name(&self, access: &Access) -> AccessName {
        self.names.get(&NameKey::of(access)).copied().unwrap_or_default()
    }

    /// Returns the variable of an access, if its data has a name.
    pub(crate) fn variable(&self, access: &Access) -> Option<TextId> {
        let AccessName { named_by, variable, .. } = self.name(access);
        matches!(named_by, NamedBy::Address | NamedBy::Instruction).then_some(variable)
    }

    pub(crate) fn text(&self, TextId(index): TextId) -> &str {
        self.texts.get(index as usize).map_or(UNKNOWN, String::as_str)
    }

    fn intern(&mut self, found: &Found) -> AccessName {
        match found {
            Found::Place(named_by, place) => {
                let (type_name, member) = match &place.member {
                    Some(Member { structure, name, offset }) => (structure.clone(), format!("{name} +{offset:#x}")),
                    None => (place.type_name.clone(), String::new()),
                };
                let [type_name, member, variable] = [&type_name, &member, &place.path].map(|text| self.id(text));
                AccessName { named_by: *named_by, type_name, member, variable }
            }
            Found::Operand(text) => {
                let [type_name, operand] = [UNKNOWN, text].map(|text| self.id(text));
                AccessName { named_by: NamedBy::Operand, type_name, member: operand, variable: operand }
            }
            Found::Nothing => {
                let [type_name, member] = [UNKNOWN, ""].map(|text| self.id(text));
                AccessName { named_by: NamedBy::Nothing, type_name, member, variable: type_name }
            }
        }
    }

    fn id(&mut self, text: &str) -> TextId {
        let text = printable(text);
        if let Some(id) = self.ids.get(&*text) {
            return *id;
        }
        // More texts than this do not fit into memory.
        let id = TextId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.clone().into_owned());
        self.ids.insert(text.into_owned(), id);
        id
    }
}

/// What is known of the data of an access.
enum Found {
    Place(NamedBy, Place),
    /// The operand of the instruction.
    Operand(String),
    Nothing,
}

/// An operand of an instruction, and what its registers lead to.
type NamedOperand = (MemoryOperand, Option<Place>);

/// What is needed of a module.
#[derive(Default)]
struct ModuleData {
    types: Option<DataTypes>,
    /// The image, which is searched for once.
    image: OnceCell<Option<Vec<u8>>>,
    /// The code of functions, by an address in them.
    functions: FxHashMap<u32, Option<FunctionCode>>,
    /// The operands of instructions, by their addresses and whether they are written.
    operands: FxHashMap<(u32, bool), Option<NamedOperand>>,
}

impl ModuleData {
    /// Uses the types. After a failure of the library that reads them they are not used again.
    fn with_types<T>(&mut self, name: impl FnOnce(&DataTypes) -> Option<T>) -> Option<T> {
        let types = self.types.as_ref()?;
        guarded(|| name(types)).unwrap_or_else(|_| {
            self.types = None;
            None
        })
    }
}

struct Search<'a> {
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    finder: &'a SymbolFinder,
    modules: FxHashMap<ModuleId, ModuleData>,
}

impl Search<'_> {
    fn find(&mut self, access: &Access) -> Found {
        let operand = if access.is_exact { self.operand(access) } else { None };
        let size = operand.as_ref().map_or(0, |(operand, _)| operand.size());
        match (self.variable(access.address, size), operand) {
            (Some(place), _) => Found::Place(NamedBy::Address, place),
            (None, Some((_, Some(place)))) => Found::Place(NamedBy::Instruction, place),
            (None, Some((operand, None))) => Found::Operand(operand.to_string()),
            (None, None) => Found::Nothing,
        }
    }

    /// Names the data at an address in a module.
    fn variable(&mut self, address: DataAddress, size: u32) -> Option<Place> {
        let (module, offset) = match address {
            DataAddress::User(process, address) => self.contents.processes.module_at(process, false, address)?,
            DataAddress::Kernel(address) => self.contents.processes.module_at(ProcessKey::default(), true, address)?,
            DataAddress::Unattributed | DataAddress::NotReported => return None,
        };
        let offset = u32::try_from(offset).ok()?;
        self.module(module).with_types(|types| types.global(offset, size))
    }

    /// Returns the operand of the instruction of an access, and names what its registers lead to.
    fn operand(&mut self, access: &Access) -> Option<NamedOperand> {
        if access.operation == AccessOperation::Fetch {
            return None;
        }
        let location = access.location();
        let (module, address) = self.contents.processes.module_at(access.process, location.kernel, access.ip)?;
        let address = u32::try_from(address).ok()?;
        let is_written = !access.is_load();
        if let Some(known) = self.module(module).operands.get(&(address, is_written)) {
            return known.clone();
        }
        let symbol = self.symbol_index.known_symbol(&location).filter(|symbol| symbol.module == module);
        let start = symbol.map_or(address, |symbol| symbol.address);
        let limit = symbol.and_then(|symbol| start.checked_add(symbol.size.filter(|size| *size > 0)?));
        let operation = if is_written { Operation::Store } else { Operation::Load };
        let found = self.function(module, start, limit).and_then(|function| {
            let FunctionCode { address: start, bytes, is_64_bit } = function;
            let code = Code { address: start, bytes: &bytes, is_64_bit };
            let operand = guarded(|| code.operand(address, operation)).ok().flatten()?;
            let place = self.module(module).with_types(|types| types.place(&code, address, &operand));
            Some((operand, place))
        });
        self.module(module).operands.insert((address, is_written), found.clone());
        found
    }

    /// Returns the code of the function that begins at `start`, or that has this address.
    fn function(&mut self, module: ModuleId, start: u32, limit: Option<u32>) -> Option<FunctionCode> {
        let (recorded, finder) = (self.contents.processes.modules().get(module)?, self.finder);
        let data = self.module(module);
        let ModuleData { image, functions, .. } = data;
        let image = image.get_or_init(|| fs::read(finder.image_file(recorded).ok()?).ok());
        let read = || guarded(|| function_code(image.as_ref()?, start, limit).ok()).ok().flatten();
        functions.entry(start).or_insert_with(read).clone()
    }

    fn module(&mut self, id: ModuleId) -> &mut ModuleData {
        let (modules, finder) = (self.contents.processes.modules(), self.finder);
        self.modules.entry(id).or_insert_with(|| {
            let symbols = modules.get(id).and_then(|module| finder.find(module).ok());
            let path = symbols.as_ref().and_then(|symbols| symbols.pdb());
            let types = path.and_then(|path| guarded(|| DataTypes::open(path)).ok()?.ok());
            ModuleData { types, ..ModuleData::default() }
        })
    }
}
