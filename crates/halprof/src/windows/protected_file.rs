//! Files that only administrators can write.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, ERROR_SUCCESS, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1, SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    IsWellKnownSid, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
    WinBuiltinAdministratorsSid, WinLocalSystemSid,
};
use windows_sys::Win32::Storage::FileSystem::{CreateDirectoryW, FILE_FLAG_BACKUP_SEMANTICS};
use windows_sys::core::{PCWSTR, w};

/// The access list of the folder, which its files inherit: nothing from above, because %ProgramData% lets every user
/// create files; SYSTEM and Administrators everything; users read.
const FOLDER: PCWSTR = w!("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FRFX;;;BU)");

/// A security descriptor that Windows allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it for this process with LocalAlloc, and it is freed once.
        unsafe { LocalFree(self.0) };
    }
}

/// Reads a file of at most `most` bytes that belongs to SYSTEM or Administrators.
pub(super) fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(file)?;
    check_owner(&file)?;
    let mut content = Vec::new();
    let length = file.take(most + 1).read_to_end(&mut content)?;
    if length as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

/// Writes a file in place of an older one, and creates its folder if necessary.
pub(super) fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    create_folder(folder)?;
    let opened = OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(folder)?;
    check_owner(&opened)?;
    let new = file.with_extension("new");
    let mut written = File::create(&new)?;
    check_owner(&written)?;
    written.write_all(content)?;
    written.sync_all()?;
    drop(written);
    fs::rename(&new, file)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let path: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
    let mut descriptor = null_mut();
    // SAFETY: the text is a constant with a terminating zero, and the function writes one pointer.
    let converted = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(FOLDER, SDDL_REVISION_1, &raw mut descriptor, null_mut())
    };
    if converted == 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = Descriptor(descriptor);
    let attributes = SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)?,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    // SAFETY: the path has a terminating zero, and the attributes and their descriptor outlive the call.
    if unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_ALREADY_EXISTS.cast_signed()) { Ok(()) } else { Err(error) }
}

/// Checks that a file or folder belongs to SYSTEM or Administrators. Only they can set such an owner.
fn check_owner(file: &File) -> io::Result<()> {
    let (mut owner, mut descriptor): (PSID, PSECURITY_DESCRIPTOR) = (null_mut(), null_mut());
    // SAFETY: the handle is open, the function writes the two pointers, and the others may be null.
    let error = unsafe {
        GetSecurityInfo(
            file.as_raw_handle(),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &raw mut owner,
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut descriptor,
        )
    };
    if error != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(error.cast_signed()));
    }
    let _descriptor = Descriptor(descriptor);
    let is_trusted = [WinBuiltinAdministratorsSid, WinLocalSystemSid].into_iter().any(|kind| {
        // SAFETY: the owner is part of the descriptor, which is freed afterwards.
        unsafe { IsWellKnownSid(owner, kind) != 0 }
    });
    if is_trusted { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_is_read_and_a_long_one_is_not() {
        let folder = std::env::temp_dir().join(format!("halprof-protected-{}", std::process::id()));
        let file = folder.join("threads.json");
        match write(&file, b"first").and_then(|()| write(&file, b"second")) {
            Ok(()) => {
                assert_eq!(read(&file, 6).unwrap(), b"second");
                assert_eq!(read(&file, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
            }
            // The process is not elevated, so its files belong to its user.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert_eq!(read(&folder.join("none"), 6).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(folder).unwrap();
    }
}
