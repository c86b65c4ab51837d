//! Files from symbol servers and packed files of symbol stores ("Advanced SymSrv Use", Microsoft Learn).
//!
//! The crate symsrv knows stores of one tier only. Where a server has two, each of its addresses is extended by the
//! first tier, and the rest is a store of one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use symsrv::{CachePath, Error, NtSymbolPathEntry, SymsrvDownloader, get_home_sym_dir};
use tokio::runtime::{Builder, Runtime};

use crate::found_symbol::Reason;
use crate::guard::{guard_thread, guarded};
use crate::symbol_stores::{TWO_TIERS, first_tier};

/// Gets files from symbol servers, and unpacks those of stores.
pub(crate) struct SymbolServers {
    runtime: Runtime,
    entries: Vec<NtSymbolPathEntry>,
    servers: SymsrvDownloader,
    /// The addresses of servers with two tiers, after they were asked.
    two_tiers: OnceLock<Vec<String>>,
}

impl SymbolServers {
    /// Creates the access to the servers of a symbol path.
    ///
    /// # Errors
    /// If the system has no resources for the runtime.
    pub fn new(entries: Vec<NtSymbolPathEntry>) -> io::Result<Self> {
        // One thread of the runtime waits for the servers, for all workers.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(guard_thread).enable_all().build()?;
        let servers = downloader(entries.clone());
        Ok(Self { runtime, entries, servers, two_tiers: OnceLock::new() })
    }

    /// Returns the path of a file from the servers.
    pub fn file(&self, name: &str, key: &str) -> Result<PathBuf, Reason> {
        match served(name, || self.runtime.block_on(self.servers.get_file(name, key))) {
            Err(Reason::NotFound) => self.file_of_two_tiers(name, key),
            other => other,
        }
    }

    fn file_of_two_tiers(&self, name: &str, key: &str) -> Result<PathBuf, Reason> {
        let servers = self.two_tiers.get_or_init(|| {
            let urls = self.entries.iter().flat_map(urls).filter(|url| self.has_two_tiers(url));
            urls.cloned().collect()
        });
        if servers.is_empty() {
            return Err(Reason::NotFound);
        }
        let tier = first_tier(name);
        let in_tier = |entry: &NtSymbolPathEntry| {
            let NtSymbolPathEntry::Chain { dll, cache_paths, urls } = entry else { return entry.clone() };
            let urls = urls.iter().filter(|url| servers.contains(url));
            let urls = urls.map(|url| format!("{}/{tier}", url.trim_end_matches('/'))).collect();
            NtSymbolPathEntry::Chain { dll: dll.clone(), cache_paths: cache_paths.clone(), urls }
        };
        let servers = downloader(self.entries.iter().map(in_tier).collect());
        served(name, || self.runtime.block_on(servers.get_file(name, key)))
    }

    /// Asks a server for the file that a store of two tiers has.
    fn has_two_tiers(&self, url: &str) -> bool {
        let url = format!("{}/{TWO_TIERS}", url.trim_end_matches('/'));
        let answer = || self.runtime.block_on(reqwest::get(url)).is_ok_and(|answer| answer.status().is_success());
        guarded(answer).unwrap_or(false)
    }

    /// Unpacks the file `name` of a store of one tier, and returns its path. It is kept where those of servers are.
    ///
    /// # Errors
    /// Why that is impossible.
    pub fn unpack(&self, store: &Path, name: &str, key: &str) -> Result<PathBuf, String> {
        let cache = self.entries.iter().find_map(downstream_store).map(NtSymbolPathEntry::Cache);
        let store = downloader(cache.into_iter().chain([NtSymbolPathEntry::LocalOrShare(store.to_owned())]).collect());
        guarded(|| self.runtime.block_on(store.get_file_no_download(name, key)))?.map_err(|error| error.to_string())
    }
}

fn downloader(entries: Vec<NtSymbolPathEntry>) -> SymsrvDownloader {
    let mut downloader = SymsrvDownloader::new(entries);
    downloader.set_default_downstream_store(get_home_sym_dir());
    downloader
}

fn urls(entry: &NtSymbolPathEntry) -> &[String] {
    match entry {
        NtSymbolPathEntry::Chain { urls, .. } => urls,
        NtSymbolPathEntry::Cache(_) | NtSymbolPathEntry::LocalOrShare(_) => &[],
    }
}

/// Returns the folder of an entry in which files are kept that come from elsewhere.
fn downstream_store(entry: &NtSymbolPathEntry) -> Option<PathBuf> {
    match entry {
        NtSymbolPathEntry::Cache(folder) => Some(folder.clone()),
        // The last store of a chain is the one that files come from.
        NtSymbolPathEntry::Chain { cache_paths, urls, .. } if cache_paths.len() + urls.len() > 1 => {
            match cache_paths.first()? {
                CachePath::Path(folder) => Some(folder.clone()),
                CachePath::DefaultDownstreamStore => None,
            }
        }
        NtSymbolPathEntry::Chain { .. } | NtSymbolPathEntry::LocalOrShare(_) => None,
    }
}

/// Returns the path that `get` gets for the file `name`.
fn served(name: &str, get: impl FnOnce() -> Result<PathBuf, Error>) -> Result<PathBuf, Reason> {
    match guarded(get) {
        // A file that no server has is the normal case, and cannot be distinguished from other failures.
        Ok(found) => found.map_err(|_| Reason::NotFound),
        Err(failure) => Err(Reason::Unreadable { path: name.into(), cause: failure }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_fails_in_a_thread_of_its_own_is_told_and_the_next_file_is_read() {
        let servers = SymbolServers::new(Vec::new()).unwrap();
        let length = |packed: &'static str| {
            servers.runtime.spawn_blocking(move || packed.strip_prefix("MSCF").expect("a cabinet").len())
        };
        let unpack = |packed: &'static str| {
            served("a.pdb", || match servers.runtime.block_on(length(packed)) {
                Ok(length) => Ok(PathBuf::from(length.to_string())),
                Err(error) => Err(Error::JoinError(error.to_string())),
            })
        };
        let panics = |packed: &'static str| {
            served("a.pdb", || {
                let length = servers.runtime.block_on(length(packed)).expect("task panicked");
                Ok(PathBuf::from(length.to_string()))
            })
        };
        assert!(matches!(unpack("MZ"), Err(Reason::NotFound)));
        let failed = panics("MZ");
        let Err(Reason::Unreadable { path, cause }) = failed else { panic!("{failed:?}") };
        assert_eq!(path, Path::new("a.pdb"));
        assert!(cause.contains("task panicked"), "{cause}");
        assert_eq!(panics("MSCF1234").unwrap(), Path::new("4"));
    }
}
