//! Every law holds for every file of its corpus, which cargo-fuzz found and minimized.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use fuzz_laws::LAWS;

/// Maximum size of all corpora in bytes, so that a clone stays small.
const MAX_BYTES: u64 = 500_000;

fn corpora() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

#[test]
fn every_law_holds_for_its_corpus() {
    for (name, law) in LAWS {
        let mut count = 0;
        for entry in fs::read_dir(corpora().join(name)).unwrap_or_else(|error| panic!("{name}: {error}")) {
            let path = entry.unwrap().path();
            // If the law does not hold, the last line names the file.
            println!("{}", path.display());
            law(&fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 5, "{name} has a corpus of {count} files");
    }
}

#[test]
fn every_corpus_and_every_target_has_a_law_and_all_are_small() {
    let laws: BTreeSet<String> = LAWS.into_iter().map(|(name, _)| name.to_owned()).collect();
    let names = |folder: PathBuf| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(corpora()), laws);
    assert_eq!(names(corpora().join("../fuzz_targets")), laws);
    let files = laws.iter().flat_map(|name| fs::read_dir(corpora().join(name)).unwrap());
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < MAX_BYTES, "{bytes}");
}
