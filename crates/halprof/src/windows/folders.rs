//! The folders of halprof for the whole machine.
//!
//! They come from the registry: a user can set variables of the environment, which an elevated program inherits.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::MAX_PATH;
use windows_sys::Win32::System::SystemInformation::GetSystemWindowsDirectoryW;

use super::registry;

/// Length of a path in UTF-16 units, with the terminating zero.
const LONGEST: usize = MAX_PATH as usize;

/// The variable in the path of the folder for data. It is the drive of Windows.
const SYSTEM_DRIVE: &str = "%SystemDrive%";

/// Returns the folder for data of all users, which is usually `C:\ProgramData\halprof`. It need not exist.
#[must_use]
pub fn program_data() -> Option<PathBuf> {
    let text = registry::text("SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\ProfileList", "ProgramData")?;
    let text = text.into_string().ok()?;
    let path = match text.get(..SYSTEM_DRIVE.len()) {
        Some(variable) if variable.eq_ignore_ascii_case(SYSTEM_DRIVE) => {
            let mut drive = windows()?.ancestors().last()?.as_os_str().to_owned(); // `C:\`
            drive.push(text.get(SYSTEM_DRIVE.len()..)?.trim_start_matches('\\'));
            drive.into()
        }
        _ => PathBuf::from(text),
    };
    absolute(&path)
}

/// Returns the folder for programs, which is usually `C:\Program Files\halprof`. It need not exist.
#[must_use]
pub fn program_files() -> Option<PathBuf> {
    absolute(Path::new(&registry::text("SOFTWARE\\Microsoft\\Windows\\CurrentVersion", "ProgramFilesDir")?))
}

fn absolute(folder: &Path) -> Option<PathBuf> {
    folder.is_absolute().then(|| folder.join("halprof"))
}

/// Returns the folder of Windows.
fn windows() -> Option<PathBuf> {
    let mut units = [0; LONGEST];
    // SAFETY: the buffer has MAX_PATH elements, the given length.
    let length = unsafe { GetSystemWindowsDirectoryW(units.as_mut_ptr(), MAX_PATH) };
    let path = units.get(..usize::try_from(length).ok()?)?;
    Some(Path::new(&OsString::from_wide(path)).to_owned()).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_folders_are_on_the_drive_of_windows_whatever_the_environment_says() {
        for (folder, parent) in [(program_data().unwrap(), "ProgramData"), (program_files().unwrap(), "Program Files")]
        {
            assert_eq!(folder.file_name().unwrap(), "halprof");
            assert_eq!(folder.parent().unwrap().file_name().unwrap(), parent);
            assert!(folder.is_absolute(), "{}", folder.display());
        }
    }
}
