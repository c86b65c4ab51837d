//! The cache of imported events: one file in the user's folder for caches, whose name has the version of its form.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use events::Identity;
use events::import::{FORMAT, Imported, ImportedEvent};
use thiserror::Error;

use crate::error::ErrorKind;

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
        matches!(self, Self::Damaged { .. }).then(|| "client events import DIR   (writes it again)".to_owned())
    }
}

/// Returns the folder of the cache.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".cache"));
    let caches = variable("LOCALAPPDATA").or_else(|| variable("XDG_CACHE_HOME")).or_else(home);
    caches.map(|folder| folder.join("halprof"))
}

/// Returns the file of the cache.
fn file(folder: &Path) -> PathBuf {
    folder.join(format!("events-{FORMAT}.json"))
}

/// Reads the cache; `None` if nothing was imported.
///
/// # Errors
/// If the file is damaged, or cannot be read.
pub fn load(folder: Option<&Path>) -> Result<Option<Imported>, CacheError> {
    let Some(path) = folder.map(file) else { return Ok(None) };
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|cause| CacheError::Damaged { path, cause }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(CacheError::File { path, cause }),
    }
}

/// Replaces the cache: a failure leaves the old one. Returns its file.
///
/// # Errors
/// If there is no folder, or the file cannot be written.
pub fn store(folder: Option<&Path>, imported: &Imported) -> Result<PathBuf, CacheError> {
    let folder = folder.ok_or(CacheError::NoFolder)?;
    let path = file(folder);
    let text = serde_json::to_vec(imported).map_err(|cause| CacheError::Damaged { path: path.clone(), cause })?;
    let new = path.with_extension("new");
    let written = fs::create_dir_all(folder)
        .and_then(|()| File::create(&new))
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path));
    match written {
        Ok(()) => Ok(path),
        Err(cause) => {
            // The cause is reported; the file that is left over is not used.
            let _ = fs::remove_file(&new);
            Err(CacheError::File { path, cause })
        }
    }
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
