//! The arguments of `package`.

use std::{ffi::OsString, fmt, path::PathBuf, str::FromStr};

use anyhow::{Context, Error, Result, ensure};

/// What is made besides the package.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Make the files for Microsoft's signature as well
    ///
    /// Puts driver, halprof.inf, debug information and a catalog into a CAB file in target/submission, without any
    /// signature. docs/release.md describes how it is signed and submitted.
    #[arg(long)]
    pub submission: bool,
    /// Make the files of a release on GitHub as well: the package as a zip file, and manifests for winget and Scoop
    ///
    /// They are in target/distribution. The manifests have the address that the zip file gets in the release
    /// vVERSION of this repository.
    #[arg(long, value_name = "OWNER/NAME")]
    pub release: Option<Repository>,
    /// Take driver and catalog from this folder, as Microsoft signed them
    ///
    /// The driver and halprof.inf must be those of target/submission. The certificate for tests is left out.
    #[arg(long, value_name = "FOLDER", requires = "release", conflicts_with = "submission")]
    pub signed: Option<PathBuf>,
    /// Build everything a second time, in another folder, and compare the files that are shipped
    #[arg(long)]
    pub reproducible: bool,
    /// Leave out the files that the client's tests make from its command line
    #[arg(long, hide = true)]
    pub runnable: bool,
}

impl Extras {
    /// Returns the words that these arguments are parsed from.
    pub fn words(&self) -> Vec<OsString> {
        let flag = |name: &str, given: bool| given.then(|| name.into());
        let value =
            |name: &'static str, value: Option<OsString>| value.into_iter().flat_map(move |value| [name.into(), value]);
        let flags = [
            flag("--submission", self.submission),
            flag("--reproducible", self.reproducible),
            flag("--runnable", self.runnable),
        ];
        let release = value("--release", self.release.as_ref().map(|release| release.to_string().into()));
        let signed = value("--signed", self.signed.as_ref().map(Into::into));
        flags.into_iter().flatten().chain(release).chain(signed).collect()
    }
}

/// A repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The owner.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl FromStr for Repository {
    type Err = Error;

    /// Parses OWNER/NAME. The owner becomes a part of winget's identifier, which may have 32 characters.
    fn from_str(text: &str) -> Result<Self> {
        let (owner, name) = text.split_once('/').context("a repository has the form OWNER/NAME")?;
        let plain = |text: &str, others: &[char]| {
            !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(&it))
        };
        ensure!(
            plain(owner, &['-']) && owner.len() <= 32,
            "{owner:?} is no owner: up to 32 letters, digits or hyphens"
        );
        ensure!(plain(name, &['-', '_', '.']), "{name:?} is no name of a repository");
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Arguments, Command};

    #[test]
    fn the_words_of_extras_are_parsed_to_the_same_extras() {
        let release = || Some("owner/name".parse().unwrap());
        for extras in [
            Extras::default(),
            Extras { submission: true, reproducible: true, release: release(), ..Extras::default() },
            Extras { release: release(), signed: Some("a folder".into()), runnable: true, ..Extras::default() },
        ] {
            let words = ["cargo xtask", "package"].map(OsString::from).into_iter().chain(extras.words());
            let Command::Package { extras: parsed } = Arguments::parse_from(words).command else { panic!() };
            assert_eq!(parsed, extras);
        }
    }
}
