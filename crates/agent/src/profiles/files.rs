//! Files that are there completely or not at all.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use tempfile::Builder;

/// Begin and end of the names of files that are not complete yet.
const TEMPORARY: (&str, &str) = (".halprof-", ".tmp");

/// Writes a file and takes care that it survives a power failure. It gets the first of `names` that is free, which is
/// returned.
///
/// # Errors
/// It cannot be written, and is not there.
pub(super) fn write_new(folder: &Path, bytes: &[u8], names: impl IntoIterator<Item = String>) -> io::Result<String> {
    let mut file = Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    for name in names {
        let path = folder.join(&name);
        match file.persist_noclobber(&path) {
            Ok(_) => {
                return match sync_folder(folder) {
                    Ok(()) => Ok(name),
                    // The caller would not know of the file.
                    Err(cause) => fs::remove_file(&path).and(Err(cause)),
                };
            }
            Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => file = taken.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Removes a file. It is no error if it is not there.
///
/// # Errors
/// It cannot be removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// Returns the names and sizes of the files in a folder. Removes those that an earlier process left half-written.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn scan(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        if name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1) {
            // One that cannot be removed now is removed at the next start.
            let _ = fs::remove_file(entry.path());
        } else {
            files.push((name, metadata.len()));
        }
    }
    Ok(files)
}

/// Makes the names in a folder durable. Windows cannot open a folder as a file, and its file systems log names.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}
