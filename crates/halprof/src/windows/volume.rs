//! The file system of Windows, for [`protected`](crate::protected).

#![expect(unsafe_code, reason = "calls to Windows")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _};
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{
    ERROR_INSUFFICIENT_BUFFER, ERROR_INVALID_OWNER, ERROR_PRIVILEGE_NOT_HELD, GENERIC_WRITE, INVALID_HANDLE_VALUE,
    LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR,
    SECURITY_ATTRIBUTES,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES,
    READ_CONTROL,
};
use windows_sys::core::{PCWSTR, w};

use super::{succeeded, wide};
use crate::protected::{Found, Sid, Volume};

/// Owner and access list of what is created: Administrators; nothing from above, because %ProgramData% lets every user
/// create files; SYSTEM and Administrators everything; users read. Only an elevated token can set this owner.
const PROTECTED: PCWSTR = w!("O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FRFX;;;BU)");

/// The file system, as a program of an administrator uses it, or a service with files of its own.
#[derive(Debug, Default)]
pub struct WindowsVolume {
    /// The account of the service.
    own: Option<Sid>,
}

impl WindowsVolume {
    /// Returns the file system for a program that trusts administrators only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the file system for a service, which also trusts its own account. For LocalSystem that is no difference.
    ///
    /// # Errors
    /// If Windows does not tell the account of this process.
    pub fn of_service() -> io::Result<Self> {
        Ok(Self { own: Some(super::privilege::account()?) })
    }
}

/// A security descriptor that Windows allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn protected() -> io::Result<Self> {
        let mut descriptor = null_mut();
        // SAFETY: the text is a constant with a terminating zero, and the function writes one pointer.
        succeeded(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                PROTECTED,
                SDDL_REVISION_1,
                &raw mut descriptor,
                null_mut(),
            )
        })?;
        Ok(Self(descriptor))
    }

    fn attributes(&self) -> io::Result<SECURITY_ATTRIBUTES> {
        let length = u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)?;
        Ok(SECURITY_ATTRIBUTES { nLength: length, lpSecurityDescriptor: self.0, bInheritHandle: 0 })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it for this process with LocalAlloc, and it is freed once.
        unsafe { LocalFree(self.0) };
    }
}

impl Volume for WindowsVolume {
    fn own(&self) -> Option<Sid> {
        self.own.clone()
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let file = OpenOptions::new()
            .access_mode(FILE_READ_ATTRIBUTES | READ_CONTROL)
            .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS)
            .open(path)?;
        let attributes = file.metadata()?.file_attributes();
        Ok(Found {
            is_link: attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0,
            is_folder: attributes & FILE_ATTRIBUTE_DIRECTORY != 0,
            descriptor: descriptor(&file)?,
        })
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let (path, descriptor) = (wide(path), Descriptor::protected()?);
        let attributes = descriptor.attributes()?;
        // SAFETY: the path has a terminating zero, and the attributes and their descriptor outlive the call.
        succeeded(unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) }).map_err(denied)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
        let mut content = Vec::new();
        let length = file.take(most.saturating_add(1)).read_to_end(&mut content)?;
        if length as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
    }

    fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let (path, descriptor) = (wide(path), Descriptor::protected()?);
        let attributes = descriptor.attributes()?;
        // SAFETY: the path has a terminating zero, the attributes and their descriptor outlive the call, and there is
        // no file with attributes to copy.
        let handle = unsafe {
            CreateFileW(
                path.as_ptr(),
                GENERIC_WRITE,
                0,
                &raw const attributes,
                CREATE_NEW,
                FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT,
                null_mut(),
            )
        };
        if handle == INVALID_HANDLE_VALUE {
            return Err(denied(io::Error::last_os_error()));
        }
        // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
        let mut file = unsafe { File::from_raw_handle(handle) };
        file.write_all(content)?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Reads owner and access list.
fn descriptor(file: &File) -> io::Result<Vec<u8>> {
    const PARTS: u32 = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    let mut length = 0;
    // SAFETY: the handle is open, no buffer is passed, and the length outlives the call.
    let none = unsafe { GetKernelObjectSecurity(file.as_raw_handle(), PARTS, null_mut(), 0, &raw mut length) };
    let error = io::Error::last_os_error();
    if none == 0 && error.raw_os_error() != Some(ERROR_INSUFFICIENT_BUFFER.cast_signed()) {
        return Err(error);
    }
    let mut bytes = vec![0_u8; usize::try_from(length).map_err(io::Error::other)?];
    // SAFETY: the handle is open, and the buffer has the given length and takes any bytes.
    succeeded(unsafe {
        GetKernelObjectSecurity(file.as_raw_handle(), PARTS, bytes.as_mut_ptr().cast(), length, &raw mut length)
    })?;
    Ok(bytes)
}

/// A token that is not elevated cannot make Administrators an owner.
fn denied(error: io::Error) -> io::Error {
    let owner = [ERROR_INVALID_OWNER, ERROR_PRIVILEGE_NOT_HELD].map(|code| Some(code.cast_signed()));
    if owner.contains(&error.raw_os_error()) { io::ErrorKind::PermissionDenied.into() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protected;

    #[test]
    fn what_is_written_is_protected_or_nothing_is_left() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("protected");
        let file = folder.join("threads.json");
        let volume = WindowsVolume::new();
        // The folder for temporary files is in the user's profile, or the process is not elevated.
        let error = protected::write(&volume, &file, b"first").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        assert!(!folder.exists());
    }

    #[test]
    fn a_look_does_not_follow_and_has_owner_and_access_list() {
        let volume = WindowsVolume::of_service().unwrap();
        let found = volume.look(&std::env::temp_dir()).unwrap();
        assert!(found.is_folder && !found.is_link && found.descriptor.len() > 20, "{found:?}");
        let file = std::env::current_exe().unwrap();
        assert!(!volume.look(&file).unwrap().is_folder);
        assert!(volume.look(&file.join("none")).is_err());
    }
}
