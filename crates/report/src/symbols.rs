//! Search for the symbols of modules.
//!
//! Symbols are in PDBs and in images. Without symbol servers, the kernel and Windows' own modules have no names. This
//! module decides where to search, and uses only files of the recorded build. A file that another one names is searched
//! for by its name, and never opened by its path.

use std::fs;
use std::io::{self, Read as _};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use debugid::DebugId;
use rayon::{ThreadPool, ThreadPoolBuilder};
use recording::Module;
use rustc_hash::FxHashMap;

use crate::dwarf::CodeFrame;
use crate::found_symbol::{FoundSymbol, Reason, SourceLine, unreadable};
use crate::guard::guarded;
use crate::image_symbols::{DebugLink, ImageSymbols};
use crate::modules::file_name;
use crate::pdb_symbols::PdbSymbols;
use crate::perf_map::PerfMap;
use crate::recorded_build::{UnverifiedFile, check_image, debug_file};
use crate::symbol_servers::SymbolServers;
use crate::{symbol_path, symbol_stores};

/// Number of modules whose symbols are looked up at a time. Most of the time a worker waits for a file or a server.
const WORKERS: usize = 8;

/// Searches for symbols.
pub struct SymbolFinder {
    /// Looks up the symbols of modules.
    pub(crate) workers: ThreadPool,
    given: Vec<PathBuf>,
    beside: Option<PathBuf>,
    /// The folders of the symbol path.
    stores: Vec<PathBuf>,
    servers: SymbolServers,
    perf_maps: Vec<PathBuf>,
    /// Symbols that were searched for before, if they are kept. Those of an unverified file hold until it changes.
    cache: Option<Mutex<FxHashMap<ImageKey, Result<Symbols, Reason>>>>,
}

/// Identity of a module: path, time stamp, size and build.
type ImageKey = (String, u32, u32, Option<String>);

impl SymbolFinder {
    /// Creates a finder. It searches the folders `given` first, then the folders of the recorded paths, then the folder
    /// `beside` the recording, and finally `symbol_path`, which has the syntax of `_NT_SYMBOL_PATH` and can name symbol
    /// servers. The image itself is used only if no PDB has the symbols.
    ///
    /// # Errors
    /// If the system has no resources for the threads that look up symbols.
    pub fn new(given: Vec<PathBuf>, beside: Option<PathBuf>, symbol_path: Option<String>) -> io::Result<Self> {
        let workers = ThreadPoolBuilder::new().num_threads(WORKERS).build().map_err(io::Error::other)?;
        let entries = symbol_path::parse(&symbol_path.unwrap_or_default());
        let stores = symbol_stores::folders(&entries);
        let servers = SymbolServers::new(entries);
        Ok(Self { workers, given, beside, stores, servers, perf_maps: Vec::new(), cache: None })
    }

    /// Searches also these folders for perf maps, after all others.
    #[must_use]
    pub fn with_perf_maps(self, perf_maps: Vec<PathBuf>) -> Self {
        Self { perf_maps, ..self }
    }

    /// Reads the perf map of a process; `None` if no folder has one. A map that is larger than [`MAX_PERF_MAP`] is
    /// refused.
    pub(crate) fn perf_map(&self, process: u32) -> Option<(PathBuf, io::Result<PerfMap>)> {
        let folders = self.given.iter().chain(&self.beside).chain(&self.perf_maps);
        let path = folders.map(|folder| folder.join(format!("perf-{process}.map"))).find(|path| path.is_file())?;
        let map = read_perf_map(&path);
        Some((path, map))
    }

    /// Keeps the symbols of every module in memory, for programs that resolve addresses again and again.
    #[must_use]
    pub fn with_cache(self) -> Self {
        Self { cache: Some(Mutex::default()), ..self }
    }

    /// Returns the lines of source code at these offsets in a module, as far as its symbols have them.
    #[must_use]
    pub fn source_lines(&self, module: &Module, offsets: &[u32]) -> Vec<Option<SourceLine>> {
        let symbols = self.find(module).ok();
        offsets.iter().map(|offset| symbols.as_ref()?.source_line(*offset)).collect()
    }

    /// Returns the symbols of `module`.
    pub(crate) fn find(&self, module: &Module) -> Result<Symbols, Reason> {
        let Some(cache) = &self.cache else { return self.search(module) };
        let build = module.debug.as_ref().map(|debug| debug.id.clone());
        let key = (module.path.clone(), module.timestamp, module.image_size, build);
        let cache = || cache.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |found: &&Result<Symbols, Reason>| {
            let unverified = found.as_ref().ok().and_then(|symbols| symbols.unverified.as_ref());
            unverified.is_none_or(UnverifiedFile::is_unchanged)
        };
        let known = cache().get(&key).filter(is_current).cloned();
        known.unwrap_or_else(|| {
            let found = self.search(module);
            cache().insert(key, found.clone());
            found
        })
    }

    fn search(&self, module: &Module) -> Result<Symbols, Reason> {
        let mut reason = Reason::NotFound;
        if let Some((path, id)) = debug_file(module)
            && let Some(name) = plain_name(path)
        {
            let key = id.breakpad().to_string();
            let folders = self.folders(&[&module.path, path]);
            let local = folders.iter().flat_map(|folder| self.candidates(folder, name, &key));
            let served = iter::once_with(|| self.servers.file(name, &key));
            let symbols = local.chain(served).map(|path| {
                let path = path?;
                let unverified = UnverifiedFile::of(&path, module);
                Ok((debug_file_symbols(path, id)?, unverified))
            });
            if let Some((symbols, unverified)) = first_found(symbols, &mut reason) {
                // Without the image, a public name extends to the next one.
                let mut images = self.image_files(module).into_iter().filter_map(Result::ok);
                let image = images.find_map(|path| self.image(&path, module, &mut Reason::NotFound).ok());
                return Ok(Symbols { unverified, ..Symbols::of_pdb(symbols, image) });
            }
        }
        if module.image_size == 0 {
            return Err(if module.debug.is_some() { reason } else { Reason::UnknownBuild });
        }
        for path in self.image_files(module) {
            let read = path.and_then(|path| {
                let unverified = UnverifiedFile::of(&path, module);
                Ok((self.image(&path, module, &mut reason)?, unverified))
            });
            match read {
                Ok((symbols, unverified)) => return Ok(Symbols { unverified, ..Symbols::of_image(symbols, reason) }),
                Err(Reason::NotFound) => {}
                Err(other) => reason = other,
            }
        }
        Err(reason)
    }

    /// Returns where the image of `module` can be.
    fn image_files(&self, module: &Module) -> Vec<Result<PathBuf, Reason>> {
        let Some(name) = plain_name(&module.path) else { return Vec::new() };
        let key = format!("{:08X}{:x}", module.timestamp, module.image_size);
        self.folders(&[&module.path]).iter().flat_map(|folder| self.candidates(folder, name, &key)).collect()
    }

    /// Returns where the file `name` can be in `folder`.
    fn candidates(&self, folder: &Path, name: &str, key: &str) -> Vec<Result<PathBuf, Reason>> {
        symbol_stores::candidates(folder, name, key, |store| self.servers.unpack(store, name, key))
    }

    /// Returns the folders to search, with those of the `recorded` paths that are absolute on this system.
    fn folders(&self, recorded: &[&str]) -> Vec<PathBuf> {
        let recorded = recorded.iter().map(Path::new).filter(|path| path.is_absolute()).filter_map(Path::parent);
        let others = self.beside.iter().chain(&self.stores).map(PathBuf::as_path);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in self.given.iter().map(PathBuf::as_path).chain(recorded).chain(others) {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
        folders
    }

    /// Returns the symbols of the image `path`. If the file with its debug information is from another build, `reason`
    /// says so.
    fn image(&self, path: &Path, module: &Module, reason: &mut Reason) -> Result<ImageSymbols, Reason> {
        let read = || self.read_image(path, module, reason);
        guarded(read).unwrap_or_else(|failure| Err(unreadable(path, failure)))
    }

    fn read_image(&self, path: &Path, module: &Module, reason: &mut Reason) -> Result<ImageSymbols, Reason> {
        check_image(path, module)?;
        let separate = |link: &DebugLink| {
            let folder = path.parent().unwrap_or(Path::new(""));
            let folders = [folder.to_owned(), folder.join(".debug")].into_iter().chain(self.folders(&[]));
            let name = plain_name(&link.name)?;
            let checked = folders.map(|folder| check_debug_link(folder.join(name), link.checksum));
            first_found(checked, reason)
        };
        ImageSymbols::read(path, separate).map_err(|error| unreadable(path, error.to_string()))
    }

    /// Returns the path of the image of `module`.
    ///
    /// # Errors
    /// If no image of the recorded build is found.
    pub fn image_file(&self, module: &Module) -> Result<PathBuf, Reason> {
        if module.image_size == 0 {
            return Err(Reason::UnknownBuild);
        }
        let mut reason = Reason::NotFound;
        let checked = |path: Result<PathBuf, Reason>| {
            let path = path?;
            let checked = guarded(|| check_image(&path, module));
            checked.unwrap_or_else(|failure| Err(unreadable(&path, failure))).map(|()| path)
        };
        first_found(self.image_files(module).into_iter().map(checked), &mut reason).ok_or(reason)
    }

    /// Reads a source file of `module`: at its recorded path, or in one of the folders.
    #[must_use]
    pub fn source_file(&self, path: &str) -> Option<Vec<String>> {
        let name = plain_name(path)?;
        let given = self.folders(&[path]).into_iter().map(|folder| folder.join(name));
        let text = given.filter(|path| path.is_file()).find_map(|path| fs::read(path).ok())?;
        Some(String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned).collect())
    }
}

/// Maximum size of a perf map in bytes: about a million functions. It is read whole, and the folder of temporary files,
/// where it is searched for, can hold a file of any size with that name.
const MAX_PERF_MAP: u64 = 64 << 20;

fn read_perf_map(path: &Path) -> io::Result<PerfMap> {
    let file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    // The size that the system reports can be that of a file that grows.
    file.take(MAX_PERF_MAP + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_PERF_MAP {
        let problem = format!("it has more than {} MiB", MAX_PERF_MAP >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(PerfMap::parse(bytes))
}

/// Returns the symbols of the PDB at `path` if it is of this build.
fn debug_file_symbols(path: PathBuf, build: DebugId) -> Result<PdbSymbols, Reason> {
    if !path.is_file() {
        return Err(Reason::NotFound);
    }
    match guarded(|| PdbSymbols::read(&path)) {
        Ok(Ok((found, symbols))) if found == build => Ok(symbols),
        Ok(Ok(_)) => Err(Reason::OtherBuild(path)),
        Ok(Err(error)) => Err(unreadable(&path, error.to_string())),
        Err(failure) => Err(unreadable(&path, failure)),
    }
}

/// Returns the first success. Stores the last failure other than `NotFound` in `reason`.
fn first_found<T>(tried: impl Iterator<Item = Result<T, Reason>>, reason: &mut Reason) -> Option<T> {
    for one in tried {
        match one {
            Ok(found) => return Some(found),
            Err(Reason::NotFound) => {}
            Err(other) => *reason = other,
        }
    }
    None
}

/// Returns the file name of a path that a file has, if it names a file in a folder that it is joined to. `C:a.pdb` and
/// `..` do not: they would name a file elsewhere.
fn plain_name(path: &str) -> Option<&str> {
    let name = file_name(path);
    let is_plain = !matches!(name, "" | "." | "..") && !name.contains([':', '\0']);
    is_plain.then_some(name)
}

/// Checks that the file with debug information at `path` has this checksum.
fn check_debug_link(path: PathBuf, checksum: u32) -> Result<PathBuf, Reason> {
    if !path.is_file() {
        return Err(Reason::NotFound);
    }
    let bytes = fs::read(&path).map_err(|error| unreadable(&path, error.to_string()))?;
    if crc32fast::hash(&bytes) == checksum { Ok(path) } else { Err(Reason::OtherBuild(path)) }
}

/// The symbols of a module.
#[derive(Clone)]
pub(crate) struct Symbols {
    table: Arc<SymbolTable>,
    /// Why better symbols were not found, if they should have been.
    lack: Option<Reason>,
    /// The file with the symbols, if it can be of another build.
    unverified: Option<UnverifiedFile>,
    /// The failure of the library that reads the file, after which it is not called again: what it left is
    /// inconsistent.
    failure: Arc<OnceLock<String>>,
}

enum SymbolTable {
    /// With the image, if it is found: it says which function has code without private symbols.
    Pdb(PdbSymbols, Option<Box<ImageSymbols>>),
    Image(ImageSymbols),
    /// A library that does what a test wants.
    #[cfg(test)]
    StandIn(fn(u32) -> Option<FoundSymbol>),
}

/// Returns what has `offset`, whose last public name before it is `public`.
fn cut(public: FoundSymbol, image: Option<&ImageSymbols>, offset: u32) -> Option<FoundSymbol> {
    match image {
        Some(image) => image.function_of_public(public, offset),
        None => Some(public),
    }
}

impl Symbols {
    fn of_pdb(symbols: PdbSymbols, image: Option<ImageSymbols>) -> Self {
        Self::of(SymbolTable::Pdb(symbols, image.map(Box::new)), None)
    }

    fn of_image(symbols: ImageSymbols, lack: Reason) -> Self {
        Self::of(SymbolTable::Image(symbols), Some(lack))
    }

    fn of(table: SymbolTable, lack: Option<Reason>) -> Self {
        Self { table: Arc::new(table), lack, unverified: None, failure: Arc::default() }
    }

    /// Returns the path of the PDB, if the symbols are from one.
    pub(crate) fn pdb(&self) -> Option<&Path> {
        match &*self.table {
            SymbolTable::Pdb(pdb, _) => Some(pdb.path()),
            SymbolTable::Image(_) => None,
            #[cfg(test)]
            SymbolTable::StandIn(_) => None,
        }
    }

    /// Reads the table; `None` after a failure of its library.
    fn read<T>(&self, read: impl FnOnce(&SymbolTable) -> T) -> Option<T> {
        if self.failure.get().is_some() {
            return None;
        }
        let done = guarded(|| read(&self.table));
        done.map_err(|failure| self.failure.get_or_init(|| failure)).ok()
    }

    /// Returns the function at `offset` by the public names, which are used after a failure.
    fn public_at(&self, offset: u32) -> Option<FoundSymbol> {
        match &*self.table {
            SymbolTable::Pdb(pdb, image) => {
                guarded(|| cut(pdb.public_at(offset)?, image.as_deref(), offset)).ok().flatten()
            }
            SymbolTable::Image(_) => None,
            #[cfg(test)]
            SymbolTable::StandIn(_) => None,
        }
    }

    /// Returns why the symbols are not all that a report needs. `is_nameless` says that an address had no name.
    pub(crate) fn lacks(&self, is_nameless: bool) -> impl Iterator<Item = Reason> {
        let unverified = self.unverified.as_ref().map(|file| Reason::Unverified(file.path.clone()));
        self.lack(is_nameless).into_iter().chain(unverified)
    }

    fn lack(&self, is_nameless: bool) -> Option<Reason> {
        if let Some(failure) = self.failure.get() {
            let (path, rest) = match &*self.table {
                SymbolTable::Pdb(pdb, _) => (pdb.path(), "only its public names are shown"),
                SymbolTable::Image(image) => (image.path(), "none of its names is shown after that"),
                #[cfg(test)]
                SymbolTable::StandIn(_) => (Path::new("stand-in"), "nothing is shown"),
            };
            return Some(unreadable(path, format!("{failure}; {rest}")));
        }
        match (&*self.table, &self.lack) {
            (_, Some(lack)) if *lack != Reason::NotFound => Some(lack.clone()),
            (SymbolTable::Image(image), _) if is_nameless && !image.has_symbols() => {
                Some(if image.has_names() { Reason::OnlyExports } else { Reason::NotFound })
            }
            _ => None,
        }
    }

    /// Returns the function at `offset` from the base of the module.
    pub(crate) fn at(&self, offset: u32) -> Option<FoundSymbol> {
        let found = self.read(|table| match table {
            SymbolTable::Image(image) => image.at(offset),
            SymbolTable::Pdb(pdb, image) => match pdb.at(offset)? {
                // A function with private symbols has a size.
                found if found.size.is_some() => Some(found),
                public => cut(public, image.as_deref(), offset),
            },
            #[cfg(test)]
            SymbolTable::StandIn(at) => at(offset),
        });
        found.unwrap_or_else(|| self.public_at(offset))
    }

    /// Returns the functions of the source code at `offset`, the innermost first.
    fn frames(&self, offset: u32) -> Vec<CodeFrame> {
        let found = self.read(|table| match table {
            SymbolTable::Image(image) => image.frames(offset),
            SymbolTable::Pdb(pdb, _) => pdb.frames(offset),
            #[cfg(test)]
            SymbolTable::StandIn(_) => Vec::new(),
        });
        found.unwrap_or_default()
    }

    /// Returns the beginning of the first symbol after `address`.
    pub(crate) fn next_after(&self, address: u32) -> Option<u32> {
        let found = self.read(|table| match table {
            SymbolTable::Image(image) => image.next_after(address),
            SymbolTable::Pdb(pdb, _) => pdb.next_after(address),
            #[cfg(test)]
            SymbolTable::StandIn(_) => None,
        });
        found.flatten()
    }

    /// Returns the line of source code at `address`, in the innermost function.
    pub(crate) fn source_line(&self, address: u32) -> Option<SourceLine> {
        let frames = self.frames(address);
        let (innermost, outer) = frames.split_first()?;
        Some(SourceLine {
            file: innermost.file.clone()?,
            line: innermost.line?,
            inlined: innermost.function.clone().filter(|_| !outer.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustc_hash::FxHashSet;

    use super::*;
    use crate::found_symbol::FoundName;

    static CALLS: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_library_that_fails_is_told_once_and_not_called_again() {
        let symbols = Symbols::of(
            SymbolTable::StandIn(|offset| {
                CALLS.fetch_add(1, Ordering::Relaxed);
                assert_ne!(offset, 2, "an unknown type");
                let name = Some(FoundName { text: "one".to_owned(), folded: 0 });
                Some(FoundSymbol { address: offset, size: None, name, inlined: Vec::new() })
            }),
            None,
        );
        let found = [1, 2, 3].map(|offset| symbols.at(offset).map(|found| found.address));
        assert_eq!(found, [Some(1), None, None]);
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
        let lack = symbols.lack(false);
        let Some(Reason::Unreadable { path, cause }) = lack else { panic!("{lack:?}") };
        assert_eq!(path, Path::new("stand-in"));
        assert!(
            cause.starts_with("the library that reads it failed: ") && cause.contains("an unknown type"),
            "{cause}"
        );
    }

    #[test]
    fn the_public_names_of_a_pdb_are_read_without_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions.pdb");
        let packed = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/functions.pdb.gz")).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        fs::write(&path, bytes).unwrap();
        let (_, pdb) = PdbSymbols::read(&path).unwrap();
        let symbols = Symbols::of_pdb(pdb, None);
        let both = |offset| Some((symbols.at(offset)?, symbols.public_at(offset)?));
        let both = (0x1000..0x1400).filter_map(both).filter(|(whole, public)| whole.address == public.address);
        let names: FxHashSet<String> = both.filter_map(|(_, public)| Some(public.name?.text)).collect();
        assert_eq!(names, FxHashSet::from_iter(["alpha", "entry"].map(str::to_owned)), "those that the linker exports");
    }
}
