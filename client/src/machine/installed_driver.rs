//! The files of the installed driver: the one that its service loads, the previous one until the new one has started,
//! and a temporary one.
//!
//! Every file is written under the temporary name, flushed and renamed. So at any time, also after a crash, the
//! driver's file is wholly the old or wholly the new one, and so is the kept one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::machine::driver_file::DriverFileError;
use system::System;
use user_error::Error;
use user_error::system_error::SystemError;

/// The files of the installed driver.
pub struct InstalledDriver<'a> {
    system: &'a dyn System,
    path: PathBuf,
}

impl<'a> InstalledDriver<'a> {
    /// Returns the files at the path at which the service expects its driver.
    pub fn new(system: &'a dyn System) -> Result<Self, Error> {
        let path = system.driver_path().map_err(|cause| SystemError::Directory { cause })?;
        Ok(Self { system, path })
    }

    /// Returns the path of the file that the service loads.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the previous file. It exists while the current one has not started yet.
    pub fn previous_path(&self) -> PathBuf {
        self.path.with_extension("sys.old")
    }

    fn temporary_path(&self) -> PathBuf {
        self.path.with_extension("sys.tmp")
    }

    /// Returns the new name of a file that Windows has not unloaded and therefore does not replace.
    fn loaded_path(&self) -> PathBuf {
        self.path.with_extension("sys.loaded")
    }

    /// Returns the content of the file that the service loads, if there is one.
    pub fn current(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read(&self.path)
    }

    /// Returns the content of the previous file, if there is one.
    pub fn previous(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read(&self.previous_path())
    }

    /// Keeps `file` as the previous one.
    pub fn keep(&self, file: &[u8]) -> Result<(), Error> {
        self.write(file)?;
        self.rename(&self.temporary_path(), &self.previous_path())
    }

    /// Writes `file` under the temporary name.
    pub fn prepare(&self, file: &[u8]) -> Result<(), Error> {
        self.write(file)
    }

    /// Replaces the file by the one that was prepared.
    pub fn replace(&self) -> Result<(), Error> {
        self.put_in_place(&self.temporary_path())
    }

    /// Puts the previous file back.
    pub fn restore(&self) -> Result<(), Error> {
        self.put_in_place(&self.previous_path())
    }

    /// Removes the file that the service loads. Returns whether it existed.
    pub fn remove(&self) -> Result<bool, Error> {
        self.remove_at(&self.path)
    }

    /// Removes the previous file. Returns whether it existed.
    pub fn remove_previous(&self) -> Result<bool, Error> {
        self.remove_at(&self.previous_path())
    }

    /// Removes what an interrupted write left. Returns whether it existed.
    pub fn remove_temporary(&self) -> Result<bool, Error> {
        self.remove_at(&self.temporary_path())
    }

    /// Removes a file that was still loaded when it was replaced. Returns its path if it still is.
    pub fn remove_loaded(&self) -> Option<PathBuf> {
        let path = self.loaded_path();
        self.remove_at(&path).is_err().then_some(path)
    }

    /// Replaces the file that the service loads by `from`. Windows does not replace a file that is still loaded, for
    /// example that of a driver that did not unload, but it renames it.
    fn put_in_place(&self, from: &Path) -> Result<(), Error> {
        let result = self.rename(from, &self.path);
        if result.is_ok() {
            return result;
        }
        let loaded = self.loaded_path();
        if self.rename(&self.path, &loaded).is_err() {
            return result;
        }
        let second = self.rename(from, &self.path);
        if second.is_err() {
            self.rename(&loaded, &self.path)?;
        }
        second
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        match self.system.read_file(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(DriverFileError::File { action: "read", path: path.to_owned(), cause }.into()),
        }
    }

    fn write(&self, file: &[u8]) -> Result<(), Error> {
        let path = self.temporary_path();
        Ok(self.system.write_file(&path, file).map_err(|cause| DriverFileError::File {
            action: "write",
            path,
            cause,
        })?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        Ok(self.system.rename_file(from, to).map_err(|cause| DriverFileError::File {
            action: "replace",
            path: to.to_owned(),
            cause,
        })?)
    }

    fn remove_at(&self, path: &Path) -> Result<bool, Error> {
        match self.system.remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(DriverFileError::File { action: "remove", path: path.to_owned(), cause }.into()),
        }
    }
}
