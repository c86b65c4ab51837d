//! Paths in the namespace of the kernel.

/// Converts a path of the kernel to one for programs; `drives` are drives with their devices. The path of another
/// device, for example of a network, becomes one that programs can open as well.
#[must_use]
pub fn win32_path(path: &str, drives: &[(String, String)]) -> String {
    let on_drive = drives.iter().find_map(|(drive, device)| {
        let rest = path.get(device.len()..).filter(|rest| rest.starts_with('\\'))?;
        let is_on_it = path.get(..device.len())?.eq_ignore_ascii_case(device);
        is_on_it.then(|| format!("{drive}{rest}"))
    });
    match on_drive {
        Some(path) => path,
        None if path.starts_with(r"\??\") => path.get(4..).unwrap_or_default().to_owned(),
        None if path.starts_with('\\') => format!(r"\\?\GLOBALROOT{path}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_kernel_has_the_drive_of_its_device() {
        let drives = [("C:", r"\Device\HarddiskVolume3"), ("D:", r"\Device\HarddiskVolume31")];
        let drives = drives.map(|(drive, device)| (drive.to_owned(), device.to_owned()));
        for (path, wanted) in [
            (r"\Device\HarddiskVolume3\Windows\a.dll", r"C:\Windows\a.dll"),
            (r"\device\harddiskvolume31\b.dll", r"D:\b.dll"),
            (r"\??\E:\c.dll", r"E:\c.dll"),
            (r"\Device\Mup\server\share\d.dll", r"\\?\GLOBALROOT\Device\Mup\server\share\d.dll"),
            (r"\SystemRoot\System32\ntdll.dll", r"\\?\GLOBALROOT\SystemRoot\System32\ntdll.dll"),
            (r"C:\e.dll", r"C:\e.dll"),
            ("", ""),
        ] {
            assert_eq!(win32_path(path, &drives), wanted, "{path}");
        }
    }
}
