//! Finding the symbols of modules.
//!
//! wholesym reads them: from PDBs, from the DWARF and the COFF symbols of an image, or else from its export table; and
//! it is the one library that also asks symbol servers, without which the kernel and Windows' own modules have no
//! names. Where it looks, and that nothing but the very build that was recorded is used, is decided here.

mod identity;

use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::path::{Path, PathBuf};

use recording::Module;
use tokio::runtime::{Builder, Runtime};
use wholesym::debugid::DebugId;
use wholesym::{Error, LookupAddress, SymbolManager, SymbolManagerConfig, SymbolMap};

use self::identity::Identity;
use crate::modules::{ModuleId, file_name};

/// As much of an image as its headers can take: section alignment of one page, and room for a large DOS stub.
const HEADERS: u64 = 1 << 16;

/// A module whose symbols were not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub module: ModuleId,
    /// Why.
    pub reason: Reason,
}

/// Why symbols were not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is no file with them.
    #[error("no file with symbols was found")]
    NotFound,
    /// The recording does not say which build it was, so that no file can be the right one.
    #[error("the recording does not tell which build it is")]
    NotTold,
    /// There is one, but of another build than the one that was recorded.
    #[error("{} is of another build", .0.display())]
    OtherBuild(PathBuf),
    /// There is one, and it can not be read.
    #[error("{} can not be read: {cause}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}

/// Where symbols are looked for.
pub struct SymbolFinder {
    runtime: Runtime,
    given: Vec<PathBuf>,
    beside: Option<PathBuf>,
    servers: Option<SymbolManager>,
}

impl SymbolFinder {
    /// Looks in the folders `given` first, then at the paths that were recorded and beside them, then in the folder
    /// `beside` the recording, and at last where `symbol_path` says, which is written as in `_NT_SYMBOL_PATH` and can
    /// name symbol servers. An image without debug information comes after all those.
    ///
    /// # Errors
    /// When the system has no resources for what asks the servers.
    pub fn new(given: Vec<PathBuf>, beside: Option<PathBuf>, symbol_path: Option<String>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let servers = symbol_path
            .filter(|path| !path.trim().is_empty())
            .map(|path| SymbolManager::with_config(SymbolManagerConfig::new().default_nt_symbol_path(path)));
        Ok(Self { runtime, given, beside, servers })
    }

    /// The symbols of `module`.
    pub(crate) fn find(&self, module: &Module) -> Result<Symbols, Reason> {
        let mut reason = Reason::NotFound;
        if let Some((path, id)) = debug_file(module) {
            let name = file_name(path);
            let folders = self.folders(&[&module.path, path]);
            let local = folders.iter().map(|folder| self.debug_file(folder, name, id));
            let served = iter::once_with(|| self.served_debug_file(name, id));
            if let Some(symbols) = first(local.chain(served), &mut reason) {
                return Ok(symbols);
            }
        }
        if module.image_size == 0 {
            return Err(if module.debug.is_some() { reason } else { Reason::NotTold });
        }
        let folders = self.folders(&[&module.path]);
        let images = folders.iter().map(|folder| self.image(&folder.join(file_name(&module.path)), module));
        first(images, &mut reason).ok_or(reason)
    }

    /// The folders to look in, those of the `recorded` paths among them if they can be paths of this system.
    fn folders(&self, recorded: &[&str]) -> Vec<PathBuf> {
        let recorded = recorded.iter().map(Path::new).filter(|path| path.is_absolute()).filter_map(Path::parent);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in self.given.iter().map(PathBuf::as_path).chain(recorded).chain(self.beside.as_deref()) {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
        folders
    }

    /// The symbols in the PDB `name` in `folder`.
    fn debug_file(&self, folder: &Path, name: &str, id: DebugId) -> Result<Symbols, Reason> {
        let path = folder.join(name);
        if !path.is_file() {
            return Err(Reason::NotFound);
        }
        let manager = SymbolManager::with_config(SymbolManagerConfig::new().extra_symbols_directory(folder));
        let found = self.runtime.block_on(manager.load_symbol_map(name, id));
        found.map(Symbols).map_err(|error| no_debug_file(path, error))
    }

    fn served_debug_file(&self, name: &str, id: DebugId) -> Result<Symbols, Reason> {
        let manager = self.servers.as_ref().ok_or(Reason::NotFound)?;
        // What a server does not have is the usual case, and looks like every other failure.
        self.runtime.block_on(manager.load_symbol_map(name, id)).map(Symbols).map_err(|_| Reason::NotFound)
    }

    /// The symbols in the image `path`.
    fn image(&self, path: &Path, module: &Module) -> Result<Symbols, Reason> {
        if !path.is_file() {
            return Err(Reason::NotFound);
        }
        let unreadable = |cause: String| Reason::Unreadable { path: path.to_owned(), cause };
        let data = headers(path).map_err(|error| unreadable(error.to_string()))?;
        let identity = Identity::of_image(&data).ok_or_else(|| unreadable("it is no image".to_owned()))?;
        if identity != (Identity { timestamp: module.timestamp, image_size: module.image_size }) {
            return Err(Reason::OtherBuild(path.to_owned()));
        }
        let manager = SymbolManager::with_config(SymbolManagerConfig::new());
        let found = self.runtime.block_on(manager.load_symbol_map_for_binary_at_path(path, None));
        found.map(Symbols).map_err(|error| unreadable(error.to_string()))
    }
}

/// The PDB of a module and which build of it.
fn debug_file(module: &Module) -> Option<(&str, DebugId)> {
    let debug = module.debug.as_ref()?;
    Some((&debug.name, DebugId::from_breakpad(&debug.id).ok()?))
}

/// Why the PDB that is at `path` gives no symbols.
fn no_debug_file(path: PathBuf, error: Error) -> Reason {
    match error {
        Error::UnmatchedDebugId(..) => Reason::OtherBuild(path),
        // The last file that was tried is the one at `path`; the library tried others that can not be there.
        Error::NoSuccessfulCandidate(mut errors) => match errors.pop() {
            Some(last) => no_debug_file(path, last),
            None => Reason::NotFound,
        },
        error => Reason::Unreadable { path, cause: error.to_string() },
    }
}

/// The first symbols that there are. Why the others are none is worth telling if there is more to tell than that they
/// are not there.
fn first(tried: impl Iterator<Item = Result<Symbols, Reason>>, reason: &mut Reason) -> Option<Symbols> {
    for one in tried {
        match one {
            Ok(symbols) => return Some(symbols),
            Err(Reason::NotFound) => {}
            Err(other) => *reason = other,
        }
    }
    None
}

/// The beginning of an image.
fn headers(path: &Path) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.take(HEADERS).read_to_end(&mut data)?;
    Ok(data)
}

/// The symbols of a module.
pub(crate) struct Symbols(SymbolMap);

/// A symbol, its address relative to the module's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub address: u32,
    pub size: Option<u32>,
    pub name: String,
}

impl Symbols {
    /// The symbol at `offset` from the module's base.
    pub(crate) fn at(&self, offset: u64) -> Option<Found> {
        let address = LookupAddress::Relative(offset.try_into().ok()?);
        let symbol = self.0.lookup_sync(address)?.symbol;
        Some(Found { address: symbol.address, size: symbol.size, name: symbol.name })
    }
}
