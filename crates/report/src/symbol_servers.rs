//! Files from symbol servers and packed files of symbol stores ("Advanced SymSrv Use", Microsoft Learn).

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cab::Cabinet;
use ureq::Agent;

use crate::found_symbol::Reason;
use crate::guard::guarded;
use crate::symbol_path::{PathEntry, default_store};
use crate::symbol_stores::{TWO_TIERS, first_tier, packed_name};

/// Time for the connection to a server.
const CONNECT: Duration = Duration::from_secs(20);

/// Time that a server may be silent. A large file may take longer, as long as parts of it arrive.
const SILENCE: Duration = Duration::from_mins(1);

/// Gets files from symbol servers, and unpacks those of stores.
pub(crate) struct SymbolServers {
    entries: Vec<PathEntry>,
    agent: Agent,
    /// The addresses of servers with two tiers, after they were asked.
    two_tiers: OnceLock<Vec<String>>,
}

/// A file in a store with one tier: `NAME/KEY/NAME`, or packed as a cabinet beside it.
struct StoredFile<'a> {
    name: &'a str,
    key: &'a str,
    packed: Option<String>,
}

impl<'a> StoredFile<'a> {
    fn new(name: &'a str, key: &'a str) -> Self {
        Self { name, key, packed: packed_name(name) }
    }

    /// Returns the path in a store, as the file `name`.
    fn path(&self, store: &Path, name: &str) -> PathBuf {
        store.join(self.name).join(self.key).join(name)
    }

    /// Returns the address on a server, as the file `name`.
    fn url(&self, server: &str, name: &str) -> String {
        format!("{server}/{}/{}/{}", encoded(self.name), encoded(self.key), encoded(name))
    }

    /// Returns where the unpacked file is in `store`, after it was unpacked from `cabinet`.
    fn unpack(&self, cabinet: &Path, store: &Path) -> io::Result<PathBuf> {
        let path = self.path(store, self.name);
        let mut cabinet = Cabinet::new(BufReader::new(File::open(cabinet)?))?;
        let first = cabinet.folder_entries().find_map(|folder| folder.file_entries().next());
        let name = first.map(|entry| entry.name().to_owned()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut content = cabinet.read_file(&name)?;
        write(&path, |file| io::copy(&mut content, file))?;
        Ok(path)
    }
}

impl SymbolServers {
    /// Creates the access to the servers of a symbol path.
    pub fn new(entries: Vec<PathEntry>) -> Self {
        Self::with_patience(entries, CONNECT, SILENCE)
    }

    fn with_patience(entries: Vec<PathEntry>, connect: Duration, silence: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(connect))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .user_agent(concat!("halprof/", env!("CARGO_PKG_VERSION")));
        Self { entries, agent: config.build().new_agent(), two_tiers: OnceLock::new() }
    }

    /// Returns the path of a file from the servers.
    pub fn file(&self, name: &str, key: &str) -> Result<PathBuf, Reason> {
        let file = StoredFile::new(name, key);
        let one_tier = || self.find(&file, |server| Some(server.to_owned()));
        let two_tiers = || {
            let servers = self.two_tiers();
            let tier = encoded(&first_tier(name));
            self.find(&file, |server| servers.iter().any(|one| one == server).then(|| format!("{server}/{tier}")))
        };
        let found = guarded(|| one_tier().or_else(two_tiers));
        let unreadable = |cause| Reason::Unreadable { path: name.into(), cause };
        found.map_err(unreadable)?.ok_or(Reason::NotFound)
    }

    /// Returns the path of a file of the first entry that has it. `address` returns where the files of a server are.
    fn find(&self, file: &StoredFile<'_>, address: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let mut caches: Vec<&Path> = Vec::new();
        self.entries.iter().find_map(|entry| match entry {
            PathEntry::Folder(folder) => stored(file, folder, &caches),
            PathEntry::Cache(folder) => {
                let found = stored(file, folder, &caches);
                caches.push(folder);
                found
            }
            PathEntry::Chain { stores, servers } => {
                let mut before = caches.clone();
                for store in stores {
                    if let Some(found) = stored(file, store, &before) {
                        return Some(found);
                    }
                    before.push(store);
                }
                servers.iter().filter_map(|server| address(server)).find_map(|server| self.get(file, &server, &before))
            }
        })
    }

    /// Gets a file from a server. The last of `stores` keeps it as it came, the first one as it is read.
    fn get(&self, file: &StoredFile<'_>, server: &str, stores: &[&Path]) -> Option<PathBuf> {
        let default = default_store();
        let (first, last) = match stores {
            [] => (default.as_deref()?, default.as_deref()?),
            [first, .., last] => (*first, *last),
            [only] => (*only, *only),
        };
        let whole = file.path(last, file.name);
        if self.download(&file.url(server, file.name), &whole).is_ok() {
            keep(&whole, file, file.name, stores);
            return Some(whole);
        }
        let packed_name = file.packed.as_ref()?;
        let packed = file.path(last, packed_name);
        self.download(&file.url(server, packed_name), &packed).ok()?;
        keep(&packed, file, packed_name, stores.get(1..).unwrap_or_default());
        file.unpack(&packed, first).ok()
    }

    /// Downloads a file. Nothing is left of an answer that breaks off.
    fn download(&self, url: &str, path: &Path) -> io::Result<()> {
        let mut answer = self.agent.get(url).call().map_err(io::Error::other)?;
        // A body in gzip was unpacked, and its header removed. No server has a reason for another encoding.
        if answer.headers().contains_key(ureq::http::header::CONTENT_ENCODING) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        write(path, |file| io::copy(&mut answer.body_mut().as_reader(), file))
    }

    /// Returns the addresses of the servers that have the file that a store of two tiers has. Each is asked once.
    fn two_tiers(&self) -> &[String] {
        self.two_tiers.get_or_init(|| {
            let servers = self.entries.iter().flat_map(|entry| match entry {
                PathEntry::Chain { servers, .. } => servers.as_slice(),
                PathEntry::Cache(_) | PathEntry::Folder(_) => &[],
            });
            let has_two = |server: &&String| self.agent.get(format!("{server}/{TWO_TIERS}")).call().is_ok();
            servers.filter(has_two).cloned().collect()
        })
    }

    /// Unpacks the file `name` of a store of one tier, and returns its path. It is kept where those of servers are.
    ///
    /// # Errors
    /// Why that is impossible.
    pub fn unpack(&self, store: &Path, name: &str, key: &str) -> Result<PathBuf, String> {
        let file = StoredFile::new(name, key);
        let unpack = || {
            let cache = self.entries.iter().find_map(downstream_store).or_else(default_store);
            let cache = cache.ok_or("there is no folder to unpack it into")?;
            let unpacked = file.path(&cache, name);
            if unpacked.is_file() {
                return Ok(unpacked);
            }
            let packed = file.packed.as_ref().ok_or("it has no name as a packed file")?;
            file.unpack(&file.path(store, packed), &cache).map_err(|error| error.to_string())
        };
        guarded(unpack)?
    }
}

/// Returns the path of a file of a store, unpacked into the first of `caches`; `None` if the store does not have it.
fn stored(file: &StoredFile<'_>, store: &Path, caches: &[&Path]) -> Option<PathBuf> {
    let whole = file.path(store, file.name);
    if whole.is_file() {
        return Some(whole);
    }
    let packed_name = file.packed.as_ref()?;
    let packed = file.path(store, packed_name);
    if !packed.is_file() {
        return None;
    }
    keep(&packed, file, packed_name, caches.get(1..).unwrap_or_default());
    let default = default_store();
    file.unpack(&packed, caches.first().copied().or(default.as_deref())?).ok()
}

/// Copies a file, as the file `name`, into stores that do not have it.
fn keep(path: &Path, file: &StoredFile<'_>, name: &str, stores: &[&Path]) {
    for store in stores {
        let copy = file.path(store, name);
        if copy != path && !copy.exists() {
            // A store that cannot be written only makes the next search slower.
            drop(write(&copy, |copy| io::copy(&mut File::open(path)?, copy)));
        }
    }
}

/// Returns the folder of an entry in which files are kept that come from elsewhere.
fn downstream_store(entry: &PathEntry) -> Option<PathBuf> {
    match entry {
        PathEntry::Cache(folder) => Some(folder.clone()),
        // The last store of a chain is the one that files come from.
        PathEntry::Chain { stores, servers } if stores.len() + servers.len() > 1 => stores.first().cloned(),
        PathEntry::Chain { .. } | PathEntry::Folder(_) => None,
    }
}

/// Writes a file under another name until it is whole: no reader sees a part of it, and nothing is left of a failure.
fn write(path: &Path, content: impl FnOnce(&mut File) -> io::Result<u64>) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let part = folder.join(format!("{}-{}.part", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let written = File::create_new(&part).and_then(|mut file| content(&mut file));
    let renamed = written.and_then(|_| match fs::rename(&part, path) {
        // Windows renames over no file that is open: another worker, or program, has put it there.
        Err(_) if path.is_file() => fs::remove_file(&part),
        other => other,
    });
    renamed.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Encodes a part of a path for an address (RFC 3986, 2.1 and 3.3).
fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    part.bytes().map(one).collect()
}

#[cfg(test)]
mod tests;
