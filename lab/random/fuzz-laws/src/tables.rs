//! Rows of events, and the makers' files of events with their map.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use events::import::{ImportError, Imported};
use events::row;
use tempfile::TempDir;

/// The folder for files of the makers, which are read from files only.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("the system has a temporary folder"));

/// A row is parsed as it is formatted.
pub fn event_row(bytes: &[u8]) {
    match row::parse(crate::text(bytes)) {
        Ok(event) => {
            let line = row::format(&event);
            assert!(row::is_name(&event.name));
            assert_eq!(row::parse(&line).as_ref(), Ok(&event), "{line}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A file of events or metrics is imported as it is stored, every event of it can be used, and what a terminal shows
/// has no control characters. An error names a line of the file.
///
/// The first byte selects whose map names the file: perfmon's or Linux's.
pub fn vendor_events(bytes: &[u8]) {
    let (map, file) = match bytes.split_first() {
        Some((0, file)) => ("Family-model,Version,Filename,EventType\nGenuineIntel-6-97,v1,a.json,core\n", file),
        Some((_, file)) => (
            "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
             GenuineIntel-6-97,V1,/a.json,hybridcore,0x40,0x000001,Core\n",
            file,
        ),
        None => return,
    };
    check(map.as_bytes(), file);
}

/// The same for the map.
pub fn vendor_map(bytes: &[u8]) {
    check(bytes, br#"[{"EventName": "A.B", "EventCode": "0xC0", "UMask": "0x01", "SampleAfterValue": "3"}]"#);
}

fn check(map: &[u8], file: &[u8]) {
    let folder = FOLDER.path();
    write(folder, "mapfile.csv", map);
    write(folder, "a.json", file);
    match events::import::read(folder) {
        Ok(imported) => check_imported(&imported),
        Err(ImportError::Invalid { path, line, what }) => {
            let bytes = if path.ends_with("mapfile.csv") { map } else { file };
            let lines = bytes.split(|byte| *byte == b'\n').count();
            assert!((1..=lines).contains(&line), "{}, line {line} of {lines}: {what}", path.display());
            assert!(!what.is_empty() && !what.chars().any(char::is_control), "{what:?}");
        }
        Err(ImportError::Empty { path } | ImportError::TooLarge { path }) => assert!(path.starts_with(folder)),
        Err(error @ ImportError::Read { .. }) => {
            // A map can name the folder itself or a name that the system does not allow.
            assert!(!error.to_string().is_empty());
        }
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).expect("a file in the temporary folder can be written");
}

fn check_imported(imported: &Imported) {
    let stored = serde_json::to_vec(imported).expect("it has texts as keys");
    let again: Imported = serde_json::from_slice(&stored).expect("it was stored");
    // `skipped` and `unknown_columns` are for the message and not stored.
    let kept = Imported { skipped: Vec::new(), unknown_columns: Vec::new(), ..imported.clone() };
    assert_eq!(again, kept, "stored and read again");
    let mut columns = imported.unknown_columns.iter();
    assert!(columns.all(|told| !told.chars().any(char::is_control)), "{:?}", imported.unknown_columns);
    for event in imported.files.iter().flat_map(|file| &file.events) {
        let parsed = event.event().unwrap_or_else(|| panic!("the row {} is damaged", event.row));
        assert_eq!(row::format(&parsed), event.row);
        assert_eq!(parsed.name, event.name());
        assert!(!event.brief.chars().chain(event.description.chars()).any(char::is_control), "{event:?}");
    }
    for metric in imported.files.iter().flat_map(|file| &file.metrics) {
        let parsed = events::metric::Metric::parse(metric);
        assert!(parsed.is_ok(), "{metric} was accepted: {parsed:?}");
    }
}
