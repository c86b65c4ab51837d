//! The cache of imported events: one file for the whole machine or for an account, whose name has the version of its
//! form.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::Identity;
use events::import::{FORMAT, Imported, ImportedEvent};
use thiserror::Error;

use crate::error_kind::ErrorKind;
use crate::protected::{self, Unprotected, Volume};

/// Why the cache cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// No variable of the environment names a folder.
    #[error("there is no folder for imported events: LOCALAPPDATA, XDG_CACHE_HOME and HOME are not set")]
    NoFolder,
    /// The file cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The file is damaged.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and how.
        #[source]
        cause: serde_json::Error,
    },
}

impl CacheError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        matches!(self, Self::Damaged { .. }).then(|| ".\\client events import DIR   (writes it again)".to_owned())
    }
}

/// Largest size of a file of the whole machine. The events of all of Intel's processors have less than 100 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Where imported events are: in a folder for the whole machine that only administrators can change, and in one of the
/// account. A service runs under another account than its operator, so it finds those of the machine only.
#[derive(Clone, Default)]
pub struct EventCache {
    machine: Option<(PathBuf, Arc<dyn Volume + Send + Sync>)>,
    own: Option<PathBuf>,
}

/// Where imported events were stored.
#[derive(Debug)]
pub struct Stored {
    /// The file.
    pub path: PathBuf,
    /// Whether every account uses it.
    pub is_for_machine: bool,
    /// Why the folder of the machine was not used although the program could write to it.
    pub unprotected: Option<io::Error>,
    /// The file that is used instead, because the machine has events of its own.
    pub hidden_by: Option<PathBuf>,
}

impl fmt::Debug for EventCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.machine.as_ref().map(|(folder, _)| folder);
        f.debug_struct("EventCache").field("machine", &machine).field("own", &self.own).finish()
    }
}

impl EventCache {
    /// Uses these folders.
    #[must_use]
    pub fn new(machine: Option<(PathBuf, Arc<dyn Volume + Send + Sync>)>, own: Option<PathBuf>) -> Self {
        Self { machine, own }
    }

    /// Returns the folders of this machine and of this account.
    #[must_use]
    pub fn of_this_account() -> Self {
        #[cfg(windows)]
        let machine = crate::windows::program_data().map(|folder| {
            let volume: Arc<dyn Volume + Send + Sync> = Arc::new(crate::windows::WindowsVolume::new());
            (folder, volume)
        });
        #[cfg(not(windows))]
        let machine = None;
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || variable("HOME").map(|home| home.join(".cache"));
        let caches = variable("LOCALAPPDATA").or_else(|| variable("XDG_CACHE_HOME")).or_else(home);
        Self { machine, own: caches.map(|folder| folder.join("halprof")) }
    }

    /// Reads the events of the machine, or else those of the account; `None` if nothing was imported.
    ///
    /// # Errors
    /// If the file is damaged, or cannot be read.
    pub fn load(&self) -> Result<Option<Imported>, CacheError> {
        match self.load_for_machine()? {
            Some(imported) => Ok(Some(imported)),
            None => self.load_own(),
        }
    }

    /// Reads the events of the machine, which a service finds. A file that others than administrators can change is
    /// ignored, and so is one that this account may not read: any user can put one there before an administrator does,
    /// and it must not keep the account from its own.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_for_machine(&self) -> Result<Option<Imported>, CacheError> {
        let Some((folder, volume)) = &self.machine else { return Ok(None) };
        let path = file(folder);
        match protected::read(&**volume, &path, MAX_BYTES) {
            Ok(bytes) => parse(path, &bytes),
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind()) => {
                Ok(None)
            }
            Err(cause) => Err(CacheError::File { path, cause }),
        }
    }

    /// Reads the events of the account.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_own(&self) -> Result<Option<Imported>, CacheError> {
        let Some(path) = self.own.as_deref().map(file) else { return Ok(None) };
        match fs::read(&path) {
            Ok(bytes) => parse(path, &bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CacheError::File { path, cause }),
        }
    }

    /// Replaces the events of the machine if the program is elevated, or else those of the account. A failure leaves
    /// the old ones.
    ///
    /// # Errors
    /// If there is no folder, or the file cannot be written.
    pub fn store(&self, imported: &Imported) -> Result<Stored, CacheError> {
        let first =
            self.machine.as_ref().map(|(folder, _)| folder).or(self.own.as_ref()).ok_or(CacheError::NoFolder)?;
        let text = serde_json::to_vec(imported).map_err(|cause| CacheError::Damaged { path: file(first), cause })?;
        let mut unprotected = None;
        if let Some((folder, volume)) = &self.machine {
            let path = file(folder);
            match protected::write(&**volume, &path, &text) {
                Ok(()) => return Ok(Stored { path, is_for_machine: true, unprotected: None, hidden_by: None }),
                Err(error) if Unprotected::of(&error).is_some() => unprotected = Some(error),
                // The program is not elevated.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(cause) => return Err(CacheError::File { path, cause }),
            }
        }
        let folder = self.own.as_deref().ok_or(CacheError::NoFolder)?;
        let path = file(folder);
        store_own(folder, &path, &text)?;
        let hidden_by = self.load_for_machine()?.and(self.machine.as_ref()).map(|(folder, _)| file(folder));
        Ok(Stored { path, is_for_machine: false, unprotected, hidden_by })
    }
}

/// Returns the file of the cache.
fn file(folder: &Path) -> PathBuf {
    folder.join(format!("events-{FORMAT}.json"))
}

fn parse(path: PathBuf, bytes: &[u8]) -> Result<Option<Imported>, CacheError> {
    serde_json::from_slice(bytes).map(Some).map_err(|cause| CacheError::Damaged { path, cause })
}

/// Replaces the file of the account.
fn store_own(folder: &Path, path: &Path, text: &[u8]) -> Result<(), CacheError> {
    let new = path.with_extension("new");
    let written = fs::create_dir_all(folder)
        .and_then(|()| File::create(&new))
        .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|cause| {
        // The cause is reported; the file that is left over is not used.
        let _ = fs::remove_file(&new);
        CacheError::File { path: path.to_owned(), cause }
    })
}

/// Returns the imported event of this name on cores of a type, or of any with 0.
#[must_use]
pub fn find<'a>(
    imported: Option<&'a Imported>,
    identity: Option<Identity>,
    core_type: u32,
    name: &str,
) -> Option<&'a ImportedEvent> {
    let files = imported?.of(identity?, Some(core_type).filter(|number| *number != 0));
    files.flat_map(|file| &file.events).find(|event| event.name().eq_ignore_ascii_case(name))
}
