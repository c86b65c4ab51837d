//! Files in folders with symbols. A folder can be flat, or have the layout of a symbol store ("SymStore", "Advanced
//! SymSrv Use", Microsoft Learn).

use std::fs;
use std::path::{Path, PathBuf};

use crate::found_symbol::Reason;
use crate::symbol_path::PathEntry;

/// A file that tells that a store has two tiers: folders of the first two letters, and in them those of files.
pub(crate) const TWO_TIERS: &str = "index2.txt";

/// A file that has the path of another one, or says why there is none.
const POINTER: &str = "file.ptr";

/// Maximum size of such a file in bytes.
const MAX_POINTER: u64 = 0x1000;

/// Returns the name of the folder that has the file `name` in a store with two tiers.
pub(crate) fn first_tier(name: &str) -> String {
    name.chars().take(2).collect()
}

/// Returns where the file `name` can be in `folder`, with its `key` in stores. An entry that leads nowhere is an error.
/// For a packed file, `unpack` gets the folder in which its store has one tier.
pub(crate) fn candidates(
    folder: &Path,
    name: &str,
    key: &str,
    unpack: impl Fn(&Path) -> Result<PathBuf, String>,
) -> Vec<Result<PathBuf, Reason>> {
    let mut paths = vec![Ok(folder.join(name))];
    let two_tiers = folder.join(TWO_TIERS).is_file();
    let stores = [Some(folder.to_owned()), two_tiers.then(|| folder.join(first_tier(name)))];
    for store in stores.into_iter().flatten() {
        let entry = store.join(name).join(key);
        let file = entry.join(name);
        let packed =
            packed_name(name).map(|name| entry.join(name)).filter(|packed| packed.is_file() && !file.is_file());
        paths.extend(packed.map(|path| unpack(&store).map_err(|cause| Reason::Unreadable { path, cause })));
        paths.push(Ok(file));
        paths.extend(pointed(&entry.join(POINTER)));
    }
    paths
}

/// Returns the name of the file `name` as a cabinet (`compress` and `symstore add /compress`); `None` if it has none.
pub(crate) fn packed_name(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    let mut extension = extension.to_owned();
    extension.pop()?;
    Some(format!("{stem}.{extension}_"))
}

/// Returns the file to which the entry of a store points; `None` if it does not.
fn pointed(pointer: &Path) -> Option<Result<PathBuf, Reason>> {
    let size = fs::metadata(pointer).ok().filter(fs::Metadata::is_file)?.len();
    let unreadable = |cause: String| Err(Reason::Unreadable { path: pointer.to_owned(), cause });
    if size > MAX_POINTER {
        return Some(unreadable("it is too large for a path".to_owned()));
    }
    let text = match fs::read_to_string(pointer) {
        Ok(text) => text,
        Err(error) => return Some(unreadable(error.to_string())),
    };
    let text = text.trim_matches(['\0', '\r', '\n', ' ', '\u{feff}']);
    Some(match (text.strip_prefix("MSG:"), text.strip_prefix("PATH:").unwrap_or(text)) {
        (Some(message), _) => unreadable(format!("it says: {}", recording::printable(message.trim()))),
        // A relative path would name a file in the current directory.
        (None, path) if Path::new(path).is_absolute() => Ok(PathBuf::from(path)),
        (None, path) => unreadable(format!("it has no absolute path, but {:?}", recording::printable(path))),
    })
}

/// Returns the folders that a symbol path names.
pub(crate) fn folders(entries: &[PathEntry]) -> Vec<PathBuf> {
    let folders = entries.iter().flat_map(|entry| match entry {
        PathEntry::Cache(folder) | PathEntry::Folder(folder) => std::slice::from_ref(folder),
        PathEntry::Chain { stores, .. } => stores,
    });
    folders.filter(|folder| !folder.as_os_str().is_empty()).cloned().collect()
}
