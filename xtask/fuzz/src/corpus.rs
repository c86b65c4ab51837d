//! The corpora of the targets: a zip file each, `fuzz/corpus/TARGET.zip`, with the folder TARGET of inputs. Each input
//! has the name that libFuzzer gives it, the SHA-1 of its bytes.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use sha1::{Digest, Sha1};

use xtask::{command_line::AddArguments, files, workspace::Workspace};

/// The corpus of a target.
pub struct Corpus<'a> {
    workspace: &'a Workspace,
    target: &'a str,
}

impl<'a> Corpus<'a> {
    /// Returns the corpus of this target.
    pub const fn of(workspace: &'a Workspace, target: &'a str) -> Self {
        Self { workspace, target }
    }

    /// Returns the path of the zip file.
    pub fn file(&self) -> PathBuf {
        self.workspace.root().join("fuzz/corpus").join(self.target).with_extension("zip")
    }

    /// Unpacks the inputs, if there are any, and returns their folder, which holds nothing else.
    pub fn unpack(&self) -> Result<PathBuf> {
        let all = self.workspace.target().join("fuzz-seeds");
        let folder = all.join(self.target);
        files::remove_folder(&folder)?;
        files::make_folder(&folder)?;
        if self.file().exists() {
            xtask_package::archive::unpack(&self.file(), &all)?;
        }
        Ok(folder)
    }

    /// Replaces the inputs by the files of a folder.
    pub fn replace(&self, folder: &Path) -> Result<()> {
        files::write(&self.file(), xtask_package::archive::pack(folder, self.target)?)
    }
}

/// Returns the names of the targets, in the order of fuzz/Cargo.toml: those of its programs.
pub fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let manifest = files::read_text(&workspace.root().join("fuzz/Cargo.toml"))?;
    let programs = manifest.split("[[bin]]").skip(1);
    let name = |program: &str| program.split_once("name = \"")?.1.split('"').next().map(str::to_owned);
    Ok(programs.filter_map(name).collect())
}

/// Adds inputs to a corpus. One that is there already is not added again.
pub fn add(workspace: &Workspace, AddArguments { target, inputs }: &AddArguments) -> Result<()> {
    let all = targets(workspace)?;
    ensure!(all.contains(target), "there is no target {target}; the targets are: {}", all.join(", "));
    let corpus = Corpus::of(workspace, target);
    let folder = corpus.unpack()?;
    for input in inputs {
        let bytes = files::read(input)?;
        files::write(&folder.join(format!("{:x}", Sha1::digest(&bytes))), bytes)?;
    }
    corpus.replace(&folder)?;
    println!("{} has {} inputs", corpus.file().display(), files::names(&folder)?.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_what_was_packed_and_what_was_added() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(root.path().to_owned());
        let corpus = Corpus::of(&workspace, "target_name");
        files::make_folder(&root.path().join("fuzz/corpus")).unwrap();
        let manifest = "[package]\nname = \"package\"\n\n[[bin]]\nname = \"target_name\"\npath = \"a.rs\"\n";
        files::write(&root.path().join("fuzz/Cargo.toml"), manifest).unwrap();
        let inputs: [&[u8]; 3] = [b"", b"\r\n", &[0, 255]];
        let contents = || -> Vec<Vec<u8>> {
            let folder = corpus.unpack().unwrap();
            files::names(&folder).unwrap().iter().map(|name| files::read(&folder.join(name)).unwrap()).collect()
        };
        let new = root.path().join("new");
        files::make_folder(&new).unwrap();
        for (input, name) in inputs.iter().zip(["a", "b", "c"]) {
            files::write(&new.join(name), input).unwrap();
        }
        corpus.replace(&new).unwrap();
        assert_eq!(contents(), inputs);

        let found = root.path().join("crash-1");
        files::write(&found, "abc").unwrap();
        let arguments = AddArguments { target: "target_name".to_owned(), inputs: vec![found.clone(), found] };
        add(&workspace, &arguments).unwrap();
        add(&workspace, &arguments).unwrap();
        // SHA-1 of "abc": FIPS 180-4, example.
        let added = corpus.unpack().unwrap().join("a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(files::read(&added).unwrap(), b"abc");
        assert_eq!(contents().len(), inputs.len() + 1);

        corpus.replace(&new).unwrap();
        assert_eq!(contents(), inputs, "an earlier input is left");
        files::remove(&corpus.file()).unwrap();
        add(&workspace, &arguments).unwrap();
        assert_eq!(contents(), [b"abc"], "the first input of a target");
        let unknown = AddArguments { target: "other".to_owned(), inputs: Vec::new() };
        assert!(
            add(&workspace, &unknown)
                .unwrap_err()
                .to_string()
                .contains("there is no target other; the targets are: target_name")
        );
    }
}
