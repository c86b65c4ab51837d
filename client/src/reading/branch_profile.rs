//! The last branches of one module of a recording, for the compilers that read a profile.

use std::path::{Path, PathBuf};

use halprof::text::argument::argument;
use report::{
    BranchProfile, BranchProfiles, CodeAgreement, CodeError, Detail, LastBranchStats, NamePattern, Reason,
    SymbolFinder, branch_profiles, have_ranges,
};
use thiserror::Error as ThisError;

use crate::cli::RecordingArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::open::RecordingError;
use terminal::format::{counted, grouped};
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Part of the branches, as a divisor, that may be at no branch instruction of the image: those of code that was
/// changed in memory.
const WRONG: u64 = 10;

/// Why there is no profile for a compiler.
#[derive(Debug, ThisError)]
pub enum ProfileError {
    /// The recording lacks kinds of branches.
    #[error("the recording has some kinds of branches only: others can be between")]
    Kinds,
    /// Several modules have branches.
    #[error("several modules have branches: {}", .names.join(", "))]
    Several {
        /// Their names, the most frequent first.
        names: Vec<String>,
    },
    /// No branch is in a module.
    #[error("no branch of the selected samples is in a module of their process")]
    Nothing,
    /// The image is not the one that ran.
    #[error("{wrong} of {all} branches are at no branch instruction of {}", .image.display())]
    OtherCode {
        /// Number of these branches.
        wrong: u64,
        /// Number of all.
        all: u64,
        /// The image.
        image: PathBuf,
    },
    /// The image cannot be read.
    #[error("cannot read the code of {}", .image.display())]
    Image {
        /// The image.
        image: PathBuf,
        /// Why not.
        #[source]
        cause: CodeError,
    },
}

impl UserError for ProfileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Kinds | Self::Several { .. } | Self::Nothing => Exit::NotRecorded,
            Self::OtherCode { .. } | Self::Image { .. } => Exit::NoCode,
        }
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Kinds => ".\\client record -j any,u -- COMMAND".to_owned(),
            Self::Several { names } => {
                format!("--module {}", argument(names.first().map(String::as_str).unwrap_or_default()))
            }
            Self::Nothing => ".\\client report --branch   (shows them, and how many were cut)".to_owned(),
            Self::OtherCode { .. } => "--symbols DIR, with the image that ran".to_owned(),
            Self::Image { .. } => return None,
        })
    }
}

/// The branches of a module.
pub struct ModuleProfile {
    /// Its ranges and branches.
    pub profile: BranchProfile,
    /// File name of the module.
    pub name: String,
    /// Its image, if it was found.
    pub image: Result<PathBuf, Reason>,
    /// How the branches agree with the image.
    agreement: CodeAgreement,
    stats: LastBranchStats,
}

impl ModuleProfile {
    /// Reads a recording and the branches of the module that `--module` names, or of the program of the command, or of
    /// the only one that has branches. They agree with its image, if it is found.
    ///
    /// # Errors
    /// If there are none, or the image is not the one that ran.
    pub fn read(args: &RecordingArgs) -> Result<(LoadedRecording, Self), Error> {
        let loaded = LoadedRecording::with_branches_unresolved(args, Detail::default())?;
        let BranchProfiles { modules, stats, .. } = module_profiles(&loaded)?;
        let (name, mut profile) = chosen(&loaded, modules)?;
        let module = loaded.contents.processes.modules().get(profile.module);
        let finder = loaded.finder(&args.selection)?;
        let image = module.map_or(Err(Reason::NotFound), |module| finder.image_file(module));
        let agreement = match &image {
            Ok(image) => agreed(&mut profile, image)?,
            Err(_) => CodeAgreement::default(),
        };
        Ok((loaded, Self { profile, name, image, agreement, stats }))
    }

    /// Returns what the user has to know about the profile, in lines.
    pub fn notes(&self) -> Vec<String> {
        let Self { profile, name, agreement: CodeAgreement { fused, wrong, .. }, stats, .. } = self;
        let times: u64 = profile.ranges.values().map(|block| block.count).sum();
        let mut lines = vec![format!(
            "[ {name}: {} ranges {} times, {} branches {} times, of {} ]",
            grouped(profile.ranges.len() as u64),
            grouped(times),
            grouped(profile.branches.len() as u64),
            grouped(profile.taken()),
            counted(stats.samples, "sample")
        )];
        let cut = format!("of {} other processes can have them", counted(stats.cut_samples, "sample"));
        let broken = "the code between two of them is no range: others are missing there";
        let fused_text = "the processor named the instruction before the branch, and they were corrected";
        let wrong_text = "the image has no branch there, and they were left out";
        for (count, why) in [(stats.cut, &*cut), (profile.broken, broken), (*fused, fused_text), (*wrong, wrong_text)] {
            if count > 0 {
                lines.push(format!("[ {} branches: {why} ]", grouped(count)));
            }
        }
        if let Err(reason) = &self.image {
            lines.push(format!(
                "note: the branches were not compared with the code of {name}: {reason}\n  \
                 try: --symbols DIR, with the image that ran"
            ));
        }
        lines
    }
}

/// Returns the profiles of the modules of a recording.
///
/// # Errors
/// If it lacks kinds of branches, or cannot be read.
pub fn module_profiles(loaded: &LoadedRecording) -> Result<BranchProfiles, Error> {
    if !have_ranges(&loaded.contents.session) {
        return Err(ProfileError::Kinds.into());
    }
    read_profiles(loaded)
}

/// Returns what [`module_profiles`] does. Without some kinds of branches, the ranges mean nothing.
pub fn read_profiles(loaded: &LoadedRecording) -> Result<BranchProfiles, Error> {
    let read = branch_profiles(&loaded.contents, &loaded.filter, &mut loaded.reopen(None)?);
    read.map_err(|error| loaded.export_error(error, None))
}

/// Compares a profile with the image of its module, and corrects it. Returns why the code is not known if it is not;
/// the profile then stays as it was recorded.
pub fn compare(profile: &mut BranchProfile, loaded: &LoadedRecording, finder: &SymbolFinder) -> Result<(), String> {
    let module = loaded.contents.processes.modules().get(profile.module).ok_or(Reason::NotFound);
    let image = module.and_then(|module| finder.image_file(module)).map_err(|reason| reason.to_string())?;
    let mut compared = profile.clone();
    agreed(&mut compared, &image).map_err(|error| error.to_string())?;
    *profile = compared;
    Ok(())
}

/// Compares a profile with an image, and corrects it.
///
/// # Errors
/// If the image cannot be read, or is not the one that ran.
fn agreed(profile: &mut BranchProfile, image: &Path) -> Result<CodeAgreement, ProfileError> {
    let unreadable = |cause| ProfileError::Image { image: image.to_owned(), cause };
    let bytes = std::fs::read(image).map_err(|cause| unreadable(CodeError::Image(cause.to_string())))?;
    let agreement = profile.agree(&bytes).map_err(unreadable)?;
    let CodeAgreement { right, fused, wrong } = agreement;
    let all = right + fused + wrong;
    if wrong > all / WRONG {
        return Err(ProfileError::OtherCode { wrong, all, image: image.to_owned() });
    }
    Ok(agreement)
}

/// Returns the profile of the module that the user means, with its name.
fn chosen(loaded: &LoadedRecording, mut profiles: Vec<BranchProfile>) -> Result<(String, BranchProfile), Error> {
    let modules = loaded.contents.processes.modules();
    profiles.retain(|profile| !profile.branches.is_empty() || !profile.ranges.is_empty());
    profiles.sort_by_key(|profile| std::cmp::Reverse(profile.taken()));
    let mut candidates: Vec<(String, BranchProfile)> =
        profiles.into_iter().map(|profile| (modules.name(profile.module).to_owned(), profile)).collect();
    if candidates.is_empty() {
        return Err(ProfileError::Nothing.into());
    }
    let of_command = loaded.contents.session.command.first().map(|program| {
        let file = program.rsplit(['\\', '/']).next().unwrap_or(program);
        NamePattern::new(file)
    });
    let wanted = &loaded.filter.modules;
    let is_wanted = |(name, _): &(String, BranchProfile)| wanted.iter().any(|pattern| pattern.matches_file(name));
    let is_program =
        |(name, _): &(String, BranchProfile)| of_command.as_ref().is_some_and(|pattern| pattern.matches_file(name));
    if !wanted.is_empty() {
        let recorded = candidates.iter().map(|(name, _)| name.clone()).collect();
        candidates.retain(is_wanted);
        if candidates.is_empty() {
            let given = wanted.first().map(|pattern| pattern.as_str().to_owned()).unwrap_or_default();
            let (place, what) = ("the recording", "branches in a module");
            return Err(RecordingError::NotRecorded { place, what, given, recorded }.into());
        }
    } else if candidates.iter().any(is_program) {
        candidates.retain(is_program);
    }
    let mut names: Vec<String> = candidates.iter().map(|(name, _)| name.clone()).collect();
    names.dedup();
    if names.len() > 1 {
        return Err(ProfileError::Several { names }.into());
    }
    // Modules of one name can be of several folders: the one that ran most is meant.
    Ok(candidates.swap_remove(0))
}
