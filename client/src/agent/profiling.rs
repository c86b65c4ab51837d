//! Profiles: short sampling sessions, each converted for pprof.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use agent::config::Profiles;
use clap::Parser;
use protocol::SampleRecord;
use recording::Process;
use thiserror::Error as ThisError;

use super::costs::INTERRUPT;
use super::points::Profiled;
use crate::cli::{Cli, Verb};
use crate::connection;
use crate::error::{Error, UserError};
use crate::exit::Exit;
use crate::format::real;
use crate::recorder::SampleObserver;
use crate::system::System;
use crate::verb::{self, Context, record};

/// Time between two looks at the driver.
const LOOK: Duration = Duration::from_secs(1);

/// Why a profile was not taken.
#[derive(Debug, ThisError)]
pub enum ProfileError {
    /// The event of the configuration is malformed.
    #[error("`event` in [profiles] is \"{event}\"")]
    Event {
        /// The event.
        event: String,
        /// Why it is malformed.
        #[source]
        cause: clap::Error,
    },
    /// The profile cannot be read back.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
}

impl UserError for ProfileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Event { .. } => Exit::Usage,
            Self::File { .. } => Exit::Unwritten,
        }
    }
}

/// A profile.
pub struct Taken {
    /// The samples for pprof, compressed.
    pub pprof: Vec<u8>,
    /// When it began.
    pub begun: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What it has and has cost.
    pub profiled: Profiled,
}

/// Takes a profile, which ends early if `is_over` or if the driver is to be stopped. Its recording is in `folder` until
/// it is converted.
///
/// # Errors
/// If the session does not start, or the files cannot be written.
pub fn take(
    profiles: &Profiles,
    folder: &Path,
    is_over: &dyn Fn() -> bool,
    system: &dyn System,
) -> Result<Taken, Error> {
    fs::create_dir_all(folder).map_err(|cause| ProfileError::File { path: folder.to_owned(), cause })?;
    let recording = folder.join("profile.rec");
    let converted = folder.join("profile.pb.gz");
    let mut watch = Watch { is_over, system, next: Instant::now() };
    let taken = take_in(profiles, &recording, &converted, &mut watch, system);
    for file in [&recording, &converted] {
        // They are written anew for the next profile.
        let _ = fs::remove_file(file);
    }
    taken
}

/// Ends a profile early.
struct Watch<'a> {
    is_over: &'a dyn Fn() -> bool,
    system: &'a dyn System,
    /// When the state of the driver is queried next.
    next: Instant,
}

impl SampleObserver for Watch<'_> {
    fn process(&mut self, _: &Process) {}

    fn samples(&mut self, _: &[SampleRecord]) {}

    fn poll(&mut self) -> Result<bool, Error> {
        if (self.is_over)() {
            return Ok(false);
        }
        if Instant::now() < self.next {
            return Ok(true);
        }
        self.next = Instant::now() + LOOK;
        // The open handle of a profile keeps the driver loaded.
        Ok(!connection::is_to_end(self.system))
    }
}

fn take_in(
    profiles: &Profiles,
    recording: &Path,
    converted: &Path,
    watch: &mut Watch<'_>,
    system: &dyn System,
) -> Result<Taken, Error> {
    let seconds = format!("{}ms", profiles.duration.as_millis());
    let frequency = profiles.frequency.to_string();
    let mut words = vec!["client", "record", "--all", "-e", &profiles.event, "-F", &frequency, "--duration", &seconds];
    if profiles.stacks {
        words.push("-g");
    }
    let mut words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
    words.extend(["-o".into(), recording.into()]);
    let (mut input, mut out, mut err) = (io::empty(), io::sink(), io::sink());
    let mut context = Context::new(Some(system), &mut input, &mut out, &mut err);
    context.cache = system.cache_folder();
    let connection = connection::open(system)?;
    let begun = SystemTime::now();
    let Verb::Record(args) = parse(&words, &profiles.event)? else { return Err(unexpected(profiles).into()) };
    let outcome = record::take(&args, protocol::flags::YIELDS, Some(watch), &mut context, &connection)?;
    drop(connection);
    let ended = SystemTime::now();
    let words = ["client", "export", "--format", "pprof", "-o"].map(Into::into);
    let words: Vec<std::ffi::OsString> = words.into_iter().chain([converted.into(), recording.into()]).collect();
    verb::run(&parse(&words, &profiles.event)?, &mut context)?;
    let pprof = fs::read(converted).map_err(|cause| ProfileError::File { path: converted.to_owned(), cause })?;
    let interrupts = most_interrupts(profiles, outcome.processors, ended.duration_since(begun).unwrap_or_default());
    let throttled = outcome.summary.counts.iter().map(|count| count.throttled).fold(0, u64::saturating_add);
    let costs = Profiled {
        samples: outcome.record_counts.samples,
        lost: outcome.lost().saturating_add(throttled),
        interrupts,
        accesses: interrupts.saturating_mul(INTERRUPT.into()),
        ..Profiled::default()
    };
    Ok(Taken { pprof, begun, ended, profiled: costs })
}

fn parse(words: &[std::ffi::OsString], event: &str) -> Result<Verb, ProfileError> {
    let parsed = Cli::try_parse_from(words);
    parsed.map(|cli| cli.verb).map_err(|cause| ProfileError::Event { event: event.to_owned(), cause })
}

fn unexpected(profiles: &Profiles) -> ProfileError {
    let cause = clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
    ProfileError::Event { event: profiles.event.clone(), cause }
}

/// Returns the most interrupts and timer expiries of a profile that lasted so long.
fn most_interrupts(profiles: &Profiles, processors: usize, time: Duration) -> u64 {
    let number = real(u64::from(profiles.frequency)) * time.as_secs_f64() * real(processors as u64);
    crate::counts::whole(number.ceil())
}
