//! No file of the package tells on which machine it was made.

use std::path::Path;
use std::{env, fs};

use tests::package;

#[test]
fn no_file_of_the_package_contains_a_folder_of_the_machine_that_made_it() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_string_lossy().into_owned();
    let home = env::home_dir().unwrap().to_string_lossy().into_owned();
    // The home folder of root is too short to be unique.
    let folders = [repository, format!("{home}/.cargo"), format!("{home}/.rustup")];
    let mut files = 0;
    for entry in fs::read_dir(package().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        for folder in &folders {
            let utf_16: Vec<u8> = folder.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for text in [folder.as_bytes(), &utf_16] {
                let at = memchr::memmem::find(&bytes, text);
                let shown = |at: usize| String::from_utf8_lossy(&bytes[at..(at + 120).min(bytes.len())]).into_owned();
                assert_eq!(at.map(shown), None, "{}", path.display());
            }
        }
        files += 1;
    }
    assert!(files >= 10, "{files} files");
}
