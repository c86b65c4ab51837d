//! The list of kernel modules, as NtQuerySystemInformation returns it.

use std::io;
use std::path::PathBuf;

use halprof::text::format::until_nul;
use zerocopy::FromBytes;

use crate::LoadedModule;

/// RTL_PROCESS_MODULE_INFORMATION of 64-bit Windows (phnt, ntldr.h), with names for the used fields.
#[derive(FromBytes)]
#[repr(C)]
struct Entry {
    _section_and_mapped_base: [u64; 2],
    base: u64,
    size: u32,
    _flags_and_numbers: [u32; 3],
    path: [u8; 256],
}

const _: () = assert!(size_of::<Entry>() == 296);

/// Size of the number of entries with its padding, which precede the first entry.
const HEAD: usize = 8;

/// Parses an RTL_PROCESS_MODULES; `windows` is the directory of Windows. Modules without an address are omitted.
///
/// # Errors
/// PermissionDenied if every address is 0: Windows 11 hides them from 24H2 on, unless SeDebugPrivilege is enabled.
pub fn parse(bytes: &[u8], windows: &str) -> io::Result<Vec<LoadedModule>> {
    let Ok((count, _)) = u32::read_from_prefix(bytes) else { return Ok(Vec::new()) };
    let entries = bytes.get(HEAD..).unwrap_or_default().chunks_exact(size_of::<Entry>()).take(count as usize);
    let entries: Vec<Entry> = entries.filter_map(|entry| Entry::read_from_bytes(entry).ok()).collect();
    if !entries.is_empty() && entries.iter().all(|entry| entry.base == 0) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let shown = entries.iter().filter(|entry| entry.base != 0);
    let module = |entry: &Entry| {
        let path = String::from_utf8_lossy(until_nul(&entry.path)).into_owned();
        LoadedModule { base: entry.base, size: entry.size.into(), path: win32_path(&path, windows) }
    };
    Ok(shown.map(module).collect())
}

/// Converts a path of the kernel to one for programs.
fn win32_path(path: &str, windows: &str) -> PathBuf {
    const ROOT: &str = "\\SystemRoot\\";
    let text = if let Some(plain) = path.strip_prefix("\\??\\") {
        plain.to_owned()
    } else if path.get(..ROOT.len()).is_some_and(|root| root.eq_ignore_ascii_case(ROOT)) {
        format!("{windows}\\{}", path.get(ROOT.len()..).unwrap_or_default())
    } else if path.starts_with('\\') {
        // Paths of modules that the boot loader loaded start at the root of the drive of Windows.
        format!("{}{path}", windows.split('\\').next().unwrap_or_default())
    } else {
        path.to_owned()
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use fake_system::payloads::{entry, hidden_modules, list};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_module_with_an_address_is_listed() {
        let entries = [
            entry(0xFFFF_F800_0000_0000, 0x0104_6000, "\\SystemRoot\\system32\\ntoskrnl.exe"),
            entry(0, 0x1000, "\\SystemRoot\\hidden.sys"),
            entry(0xFFFF_F800_0200_0000, 0x6000, "\\??\\D:\\tools\\halprof.sys"),
        ];
        let module = |base, size, path: &str| LoadedModule { base, size, path: path.into() };
        let kernel = module(0xFFFF_F800_0000_0000, 0x0104_6000, "C:\\Windows\\system32\\ntoskrnl.exe");
        let driver = module(0xFFFF_F800_0200_0000, 0x6000, "D:\\tools\\halprof.sys");
        for (count, wanted) in
            [(3, vec![kernel.clone(), driver.clone()]), (9, vec![kernel.clone(), driver]), (1, vec![kernel])]
        {
            assert_eq!(parse(&list(count, &entries), "C:\\Windows").unwrap(), wanted, "{count}");
        }
    }

    #[test]
    fn hidden_addresses_are_an_error_and_no_module_is_at_address_0() {
        let error = parse(&hidden_modules(), "C:\\Windows").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        // As many as are counted, or none at all.
        assert_eq!(parse(&list(0, &[entry(0, 0x1000, "a")]), "C:\\Windows").unwrap(), []);
    }

    #[test]
    fn kernel_paths_become_win32_paths() {
        for (path, wanted) in [
            ("\\SystemRoot\\System32\\hal.dll", "E:\\Win\\System32\\hal.dll"),
            ("\\systemroot\\System32\\hal.dll", "E:\\Win\\System32\\hal.dll"),
            ("\\??\\C:\\x.sys", "C:\\x.sys"),
            ("\\Windows\\System32\\drivers\\disk.sys", "E:\\Windows\\System32\\drivers\\disk.sys"),
            ("C:\\x.sys", "C:\\x.sys"),
            ("", ""),
            ("\\SystemRoot", "E:\\SystemRoot"),
        ] {
            assert_eq!(win32_path(path, "E:\\Win"), PathBuf::from(wanted), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_at_most_one_module_per_complete_entry(
            bytes in prop::collection::vec(any::<u8>(), 0..1500)
        ) {
            prop_assert!(parse(&bytes, "C:\\Windows").map_or(0, |found| found.len()) <= bytes.len().saturating_sub(8) / 296);
        }
    }
}
