//! Every law holds for every input of its corpus, which cargo-fuzz found and minimized.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use fuzz_laws::LAWS;
use zip::ZipArchive;

/// Maximum size of all corpora in bytes, so that a clone stays small. Half of it are PDBs, which are mostly zeros.
const MAX_BYTES: usize = 1_000_000;

fn corpora() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus")
}

/// Returns the inputs of a corpus, with their names.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let path = corpora().join(name).with_extension("zip");
    let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = ZipArchive::new(file).unwrap();
    let count = archive.len();
    let input = |index| {
        let (mut file, mut bytes) = (archive.by_index(index).unwrap(), Vec::new());
        file.read_to_end(&mut bytes).unwrap();
        (file.name().unwrap().into_owned(), bytes)
    };
    (0..count).map(input).collect()
}

#[test]
fn every_law_holds_for_its_corpus() {
    for (name, law) in LAWS {
        let inputs = corpus(name);
        assert!(inputs.len() > 5, "{name} has a corpus of {} inputs", inputs.len());
        for (input, bytes) in inputs {
            // If the law does not hold, the last line names the input.
            println!("{input}");
            law(&bytes);
        }
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
    let manifest = fs::read_to_string(corpora().join("../Cargo.toml")).unwrap();
    let programs = manifest.split("[[bin]]\nname = \"").skip(1);
    assert_eq!(programs.map(|program| program.split('"').next().unwrap().to_owned()).collect::<BTreeSet<_>>(), laws);
    let mut bytes = 0;
    for name in &laws {
        let inputs: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, input)| input).collect();
        assert_eq!(BTreeSet::from_iter(&inputs).len(), inputs.len(), "{name} has an input twice");
        bytes += inputs.iter().map(Vec::len).sum::<usize>();
    }
    assert!(bytes < MAX_BYTES, "{bytes}");
}
