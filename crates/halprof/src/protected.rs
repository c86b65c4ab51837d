//! Files and folders that only administrators can change.
//!
//! An elevated program and a service must not trust what an ordinary user has prepared: every user can create a folder
//! in `%ProgramData%`, or make one a link to another place. [`check_file`] and [`check_folder`] look at each part of a
//! path, from the root of the volume on. None may be a link, others may not replace a part, and they may change neither
//! the file nor the folder with it. So what was checked stays as it is until an administrator changes it. [`write()`]
//! and [`ensure_folder`] create what is missing with an access list of its own, and never take over what others
//! created.
//!
//! The decisions are made here, from what a [`Volume`] reports. On Windows that is the file system, in tests a
//! stand-in.

mod descriptor;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use descriptor::Part;
pub use descriptor::{Exposure, Sid};

/// What a [`Volume`] knows of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether it is a reparse point: a symbolic link, a junction, a mounted volume, or anything else that leads to
    /// another place.
    pub is_link: bool,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its security descriptor with owner and access list, self-relative.
    pub descriptor: Vec<u8>,
}

/// The file system. No function follows a link in the last part of a path.
pub trait Volume {
    /// Returns an account that is trusted in addition to administrators: that of a service, for its own files.
    fn own(&self) -> Option<Sid> {
        None
    }

    /// Returns what is at a path.
    ///
    /// # Errors
    /// If nothing is there, or it cannot be opened.
    fn look(&self, path: &Path) -> io::Result<Found>;

    /// Creates a folder that belongs to Administrators. SYSTEM and Administrators can change it and what is created in
    /// it; users can read.
    ///
    /// # Errors
    /// If something is at the path, or the account cannot create such a folder.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Reads a file up to `most` bytes.
    ///
    /// # Errors
    /// If it cannot be read, or is longer.
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>>;

    /// Creates a file, which belongs to Administrators, and writes it to the disk.
    ///
    /// # Errors
    /// If something is at the path, or the file cannot be written.
    fn create(&self, path: &Path, content: &[u8]) -> io::Result<()>;

    /// Renames a file. It replaces another one in one step.
    ///
    /// # Errors
    /// If it cannot be renamed.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file or a link to one.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// Why a path is not trusted. It is inside an [`io::Error`] of the kind `PermissionDenied`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprotected {
    /// The part of the path.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It is a link.
    Link,
    /// It is a file and should be a folder, or the reverse.
    Kind,
    /// Others than administrators can change it.
    Exposed(Exposure),
}

impl Unprotected {
    /// Returns the finding in an error of this module.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Unprotected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.cause {
            Cause::Link => write!(f, "{path} leads to another place, and links are not followed here"),
            Cause::Kind => write!(f, "{path} is a file instead of a folder, or the reverse"),
            Cause::Exposed(exposure) => write!(f, "{path} is not protected: {exposure}"),
        }
    }
}

impl std::error::Error for Unprotected {}

/// Checks a folder: neither it nor what is in it can be changed or replaced by others.
///
/// # Errors
/// [`Unprotected`], or why a part of the path cannot be opened.
pub fn check_folder(volume: &dyn Volume, folder: &Path) -> io::Result<()> {
    let parts = parts(folder)?;
    for part in &parts {
        check_part(volume, part, place(part, folder), true)?;
    }
    Ok(())
}

/// Checks a file and its folder.
///
/// # Errors
/// As [`check_folder`].
pub fn check_file(volume: &dyn Volume, file: &Path) -> io::Result<()> {
    check_folder(volume, folder_of(file)?)?;
    check_part(volume, file, Part::Target, false)
}

/// Checks a folder as [`check_folder`] does, and creates what is missing of it.
///
/// # Errors
/// As [`check_folder`], or why a part cannot be created.
pub fn ensure_folder(volume: &dyn Volume, folder: &Path) -> io::Result<()> {
    for part in parts(folder)? {
        let created = match volume.look(part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match volume.create_folder(part) {
                // Another program was faster. What it created is checked.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                created => created.map(|()| true)?,
            },
            _ => false,
        };
        check_part(volume, part, place(part, folder), true).inspect_err(|_| {
            if created {
                // The check is reported. An empty folder that is left does no harm.
                let _ = volume.remove_folder(part);
            }
        })?;
    }
    Ok(())
}

/// Reads a file of at most `most` bytes, if it is protected.
///
/// # Errors
/// As [`check_file`], or why it cannot be read. If nothing is there, nothing is said about its folder.
pub fn read(volume: &dyn Volume, file: &Path, most: u64) -> io::Result<Vec<u8>> {
    volume.look(file)?;
    check_file(volume, file)?;
    volume.read(file, most)
}

/// Writes a file in one step, in place of an older one, and creates its folder if necessary.
///
/// # Errors
/// As [`ensure_folder`], or why the file cannot be written. The older one stays then.
pub fn write(volume: &dyn Volume, file: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    ensure_folder(volume, folder_of(file)?)?;
    name.push(".new");
    let new = file.with_file_name(name);
    // Only administrators can have left one, because others cannot write to the folder.
    remove_if_there(volume, &new)?;
    let written = volume
        .create(&new, content)
        .and_then(|()| check_part(volume, &new, Part::Target, false))
        .and_then(|()| volume.rename(&new, file));
    written.inspect_err(|_| drop(volume.remove(&new)))
}

/// Removes a file from a protected folder. It is no error if nothing is there, whoever can change the folder.
///
/// # Errors
/// As [`check_folder`], or why it cannot be removed.
pub fn remove(volume: &dyn Volume, file: &Path) -> io::Result<()> {
    match volume.look(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => check_folder(volume, folder_of(file)?).and_then(|()| remove_if_there(volume, file)),
    }
}

fn remove_if_there(volume: &dyn Volume, file: &Path) -> io::Result<()> {
    match volume.remove(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn folder_of(file: &Path) -> io::Result<&Path> {
    file.parent().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Returns the path of each part, from the root of the volume on.
fn parts(path: &Path) -> io::Result<Vec<&Path>> {
    let leads_back = path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    if !path.has_root() || leads_back {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    Ok(parts)
}

fn place(part: &Path, folder: &Path) -> Part {
    if part == folder {
        Part::Target
    } else if part.parent().is_none() {
        Part::Root
    } else {
        Part::Ancestor
    }
}

fn check_part(volume: &dyn Volume, path: &Path, part: Part, is_folder: bool) -> io::Result<()> {
    let found = volume.look(path)?;
    let exposed = |own| descriptor::check(&found.descriptor, part, own).map_err(Cause::Exposed);
    let checked = if found.is_link {
        Err(Cause::Link)
    } else if found.is_folder != is_folder {
        Err(Cause::Kind)
    } else {
        exposed(volume.own().as_ref())
    };
    checked
        .map_err(|cause| io::Error::new(io::ErrorKind::PermissionDenied, Unprotected { path: path.to_owned(), cause }))
}
