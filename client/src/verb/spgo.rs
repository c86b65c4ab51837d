//! `spgo`: makes a sample profile of a program for a compiler, from the last branches of a run.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;

use halprof::Driver;
use halprof::event::SampledEvent;
use halprof::text::argument::argument;
use protocol::ProcessorSet;
use recording::printable;
use report::ExportError;
use thiserror::Error as ThisError;

use crate::cli::{LastBranchArgs, RecordArgs, RecordingArgs, SelectionArgs, SessionArgs, SpgoArgs};
use crate::reading::branch_profile::ModuleProfile;
use crate::verb::{export, record};
use counts::names::Names;
use recorder::sampled_event::RequestedEvent;
use terminal::context::Context;
use terminal::format::{counted, grouped};
use user_error::exit::Exit;
use user_error::output_error::OutputError;
use user_error::{Error, UserError};

/// The event of taken branches by the names of its makers (C4h with a unit mask that differs by the processor).
const TAKEN: [&str; 4] = [
    "BR_INST_RETIRED.NEAR_TAKEN:u",
    "BR_INST_RETIRED.TAKEN:u",
    "RETIRED_TAKEN_BRANCH_INSTRUCTIONS:u",
    "EX_RET_BRN_TKN:u",
];

/// What llvm-profgen writes if the image has no debug information that it reads.
const NO_FUNCTIONS: &str = "no binary functions";

/// Why there is no profile.
#[derive(Debug, ThisError)]
pub enum SpgoError {
    /// llvm-profgen cannot be run.
    #[error("cannot run {}", .program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// llvm-profgen failed.
    #[error("{} failed: {last}", .program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// The last line that it wrote, or how it ended.
        last: String,
    },
    /// The image has no lines of source code that llvm-profgen reads.
    #[error("the profile is empty: {} has no DWARF, from which lines are read", .image.display())]
    NoLines {
        /// The image.
        image: PathBuf,
    },
    /// The profile has no samples of a function.
    #[error("the profile is empty: no function of {} has these branches", .image.display())]
    Empty {
        /// The image.
        image: PathBuf,
    },
}

impl UserError for SpgoError {
    fn exit(&self) -> Exit {
        match self {
            Self::Run { .. } => Exit::Command,
            Self::Failed { .. } => Exit::Failure,
            Self::NoLines { .. } | Self::Empty { .. } => Exit::NoCode,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Run { .. } => Some("--profgen FILE, with the path of LLVM's llvm-profgen.exe".to_owned()),
            Self::Failed { .. } => Some("LLVM 19 or later, which reads programs of Windows".to_owned()),
            Self::NoLines { .. } => {
                Some("clang -gdwarf -fdebug-info-for-profiling, and lld-link /debug:dwarf".to_owned())
            }
            Self::Empty { .. } => Some(".\\client report --branch   (shows where the branches are)".to_owned()),
        }
    }
}

pub fn run(args: &SpgoArgs, context: &mut Context) -> Result<i32, Error> {
    let (file, code) = match &args.recording {
        Some(file) => (file.clone(), Exit::Done.code()),
        None => (args.beside(".rec"), record(args, context)?),
    };
    let selection = SelectionArgs {
        modules: args.module.iter().cloned().collect(),
        symbols: args.symbols.clone(),
        ..SelectionArgs::default()
    };
    let (loaded, module) = ModuleProfile::read(&RecordingArgs::of(file, selection))?;
    for note in module.notes() {
        context.warn(&note)?;
    }
    let text = args.beside(".txt");
    export::to(Some(&text), &loaded, context, |out, path| {
        module.profile.write(out).map_err(|cause| loaded.export_error(ExportError::Write(cause), path))
    })?;
    loaded.finish(context)?;
    let image = module.image.as_deref().unwrap_or_else(|_| Path::new(&module.name));
    let words = profgen(image, &text, &args.output);
    let version = match Command::new(&args.profgen).arg("--version").output() {
        Ok(output) if module.image.is_ok() => version(&output),
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            return Err(SpgoError::Run { program: args.profgen.clone(), cause }.into());
        }
        found => {
            let missing = if found.is_err() { "llvm-profgen was not found" } else { "the image was not found" };
            let line: Vec<String> = words.iter().map(|word| argument(word).into_owned()).collect();
            context.warn(&format!(
                "[ the branches are in {}; no profile yet: {missing} ]\n  try: llvm-profgen {}",
                text.display(),
                line.join(" ")
            ))?;
            return Ok(code);
        }
    };
    context.warn(&format!("[ {}, {} ]", args.profgen.display(), printable(&version)))?;
    let (functions, samples) = made(args, image, &words)?;
    let name = args.output.display();
    let functions = counted(functions, "function");
    context.warn(&format!(
        "[ {name}: {functions}, {} samples ]\n\
         [ clang-cl /clang:-fprofile-sample-use={name}   (without /clang:, it is ignored) ]\n\
         [ rustc -Zprofile-sample-use={name}   (nightly) ]\n\
         [ cl has no option for it: see Microsoft's SPGO (xperf -LastBranch, SPTAggregate, SPDConvert) ]",
        grouped(samples)
    ))?;
    Ok(code)
}

/// Records the command. Returns its exit code.
fn record(args: &SpgoArgs, context: &mut Context) -> Result<i32, Error> {
    let arguments = RecordArgs {
        output: args.beside(".rec"),
        branches: LastBranchArgs::of_user_mode(),
        session: SessionArgs { command: args.command.clone(), ..SessionArgs::default() },
        ..RecordArgs::default()
    };
    let connection = arguments.backend.open(context)?;
    let events: Vec<Names<SampledEvent>> = taken(&connection).into_iter().collect();
    drop(connection);
    if events.is_empty() {
        context.warn(
            "note: this machine has no event of taken branches, so cycles are sampled: code in which\n  \
             it waits has a larger share of the profile than of the branches",
        )?;
    }
    record::run(&RecordArgs { events, ..arguments }, context)
}

/// Returns the event of taken branches, if the machine has one.
fn taken(connection: &Driver) -> Option<Names<SampledEvent>> {
    TAKEN.into_iter().find_map(|name| {
        let event = SampledEvent::from_str(name).ok()?;
        RequestedEvent::of(&event, &ProcessorSet::EMPTY, connection).ok()?;
        Names::from_str(name).ok()
    })
}

/// Returns the arguments of llvm-profgen. A profile in text can be read back, and compilers take it.
fn profgen(image: &Path, text: &Path, output: &Path) -> [String; 4] {
    [
        format!("--binary={}", image.display()),
        format!("--unsymbolized-profile={}", text.display()),
        format!("--output={}", output.display()),
        "--format=text".to_owned(),
    ]
}

/// Returns the line with the version.
fn version(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find(|line| line.contains("version")).unwrap_or_default().trim().to_owned()
}

/// Runs llvm-profgen, and reads the profile back: it ends with success if it has found nothing. Returns the numbers of
/// functions and of their samples.
fn made(args: &SpgoArgs, image: &Path, words: &[String]) -> Result<(u64, u64), Error> {
    let program = args.profgen.clone();
    // An older profile would be taken for the new one.
    let removed = fs::remove_file(&args.output);
    if let Err(cause) = removed
        && cause.kind() != ErrorKind::NotFound
    {
        return Err(OutputError::File { path: args.output.clone(), cause }.into());
    }
    let output = Command::new(&program).args(words).output();
    let output = output.map_err(|cause| SpgoError::Run { program: program.clone(), cause })?;
    let told = String::from_utf8_lossy(&output.stderr);
    let profile = fs::read_to_string(&args.output).unwrap_or_default();
    if !output.status.success() {
        let last = told.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map_or_else(|| output.status.to_string(), |line| printable(line).into_owned());
        return Err(SpgoError::Failed { program, last }.into());
    }
    match functions(&profile) {
        (_, 0) if told.contains(NO_FUNCTIONS) => Err(SpgoError::NoLines { image: image.to_owned() }.into()),
        (_, 0) => Err(SpgoError::Empty { image: image.to_owned() }.into()),
        found => Ok(found),
    }
}

/// Returns the numbers of functions and of their samples in a profile: lines `NAME:TOTAL:HEAD` that are not indented.
fn functions(profile: &str) -> (u64, u64) {
    let totals = profile.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| {
        let (rest, _) = line.rsplit_once(':')?;
        rest.rsplit_once(':')?.1.parse::<u64>().ok()
    });
    totals.fold((0, 0), |(functions, samples), total| (functions + 1, samples + total))
}
