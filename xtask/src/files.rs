//! File operations whose errors name the file.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// Makes a folder and its parents. An existing folder is not an error.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

/// Removes a folder and its contents. A missing folder is not an error.
pub fn remove_folder(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Removes a file.
pub fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Returns the content of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the content of a text file.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the names of the files and folders in a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>>>()
        .with_context(|| format!("cannot list {}", folder.display()))?;
    names.sort();
    Ok(names)
}

/// Writes a file, replacing an earlier one.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file to the path `to`, replacing an earlier one.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies a file only if its content differs. An unchanged file keeps its timestamp, so that nothing is rebuilt.
pub fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    write_if_different(to, &read(from)?)
}

/// Writes a file only if its content differs, as above.
pub fn write_if_different(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let below = missing.join("file");
        let name = |path: &Path| path.display().to_string();
        for (result, wanted) in [
            (read(&missing).map(drop), format!("cannot read {}", name(&missing))),
            (read_text(&missing).map(drop), format!("cannot read {}", name(&missing))),
            (names(&missing).map(drop), format!("cannot list {}", name(&missing))),
            (write(&below, "x"), format!("cannot write {}", name(&below))),
            (copy(&missing, &below), format!("cannot copy {} to {}", name(&missing), name(&below))),
            (remove(&missing), format!("cannot remove {}", name(&missing))),
            (copy_if_different(&missing, &below), format!("cannot read {}", name(&missing))),
        ] {
            assert_eq!(result.unwrap_err().to_string(), wanted);
        }
        write(&missing, "x").unwrap();
        assert_eq!(make_folder(&below).unwrap_err().to_string(), format!("cannot make {}", name(&below)));
        assert_eq!(remove_folder(&missing).unwrap_err().to_string(), format!("cannot remove {}", name(&missing)));
    }

    #[test]
    fn an_unchanged_file_keeps_its_timestamp() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        write(&from, "new").unwrap();
        write(&to, "old").unwrap();
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let age = |path: &Path| fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        age(&to);
        copy_if_different(&from, &to).unwrap();
        assert_eq!(read_text(&to).unwrap(), "new");
        assert_ne!(modified(&to), long_ago);
        age(&to);
        copy_if_different(&from, &to).unwrap();
        assert_eq!(modified(&to), long_ago);
    }

    #[test]
    fn removing_a_missing_folder_is_not_an_error() {
        let folder = tempfile::tempdir().unwrap();
        remove_folder(&folder.path().join("missing")).unwrap();
    }
}
