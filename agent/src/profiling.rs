//! Profiles: short sampling sessions, each converted for pprof.

use std::env;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use agent::config::Profiles;
use agent::profiles::Statistics;
use halprof::Driver;
use halprof::counting::nearest;
use halprof::event::{Malformed, SampledEvent};
use protocol::{EventRequest, ProcessorSet, SampleRecord, StartHeader, flags, modes};
use recording::{JoinedFile, Limits, Process, ReadError};
use report::{Contents, Detail, ExportError, Filter, SymbolFinder, SymbolIndex};
use stacks::CallGraph;
use thiserror::Error as ThisError;

use super::costs::{Costs, Sampling};
use counts::names::Names;
use counts::requests::add;
use recorder::sampled_event::RequestedEvent;
use recorder::sampling::{self, SamplingPlan, trace_plan};
use recorder::tasks::Scope;
use recorder::{SampleObserver, Tracing};
use system::System;
use system::connection;
use terminal::format::real;
use user_error::exit::Exit;
use user_error::{Error, OutOfMemory, UserError};

/// The variable with the symbol path.
const SYMBOL_PATH: &str = "_NT_SYMBOL_PATH";

/// Time between two looks at the driver.
const LOOK: Duration = Duration::from_secs(1);

/// The source that needs no counter.
const TIME: &str = "Time";

/// Why profiles cannot be taken, or one was not.
#[derive(Debug, ThisError)]
pub enum ProfileError {
    /// The event of the configuration is malformed.
    #[error("`event` in [profiles] is \"{event}\"")]
    Event {
        /// The event.
        event: String,
        /// Why it is malformed.
        #[source]
        cause: Malformed,
    },
    /// The configuration has more than one event.
    #[error("`event` in [profiles] is \"{event}\", which is more than one event")]
    Several {
        /// The events.
        event: String,
    },
    /// The event of the configuration has an interval, which no budget bounds.
    #[error("`event` in [profiles] is \"{event}\", with an interval, but `frequency` says how often samples are taken")]
    Interval {
        /// The event.
        event: String,
    },
    /// The event of the configuration is precise: its interval follows its rate only at ticks.
    #[error("`event` in [profiles] is \"{event}\", which is precise, so that no budget bounds its interrupts")]
    Precise {
        /// The event.
        event: String,
    },
    /// The recording cannot be read.
    #[error("cannot read {}", path.display())]
    Recording {
        /// The recording.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: ReadError,
    },
    /// The recording, or the folder for it, cannot be used.
    #[error("cannot use {path}")]
    Folder {
        /// The recording or the folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
}

impl UserError for ProfileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Event { .. } | Self::Several { .. } | Self::Interval { .. } | Self::Precise { .. } => Exit::Usage,
            Self::Folder { .. } => Exit::Unwritten,
            Self::Recording { .. } => Exit::Recording,
        }
    }
}

/// What became of profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiled {
    /// Samples in profiles.
    pub samples: u64,
    /// Samples that were lost or throttled.
    pub lost: u64,
    /// Performance monitor interrupts and timer expiries for samples, at most.
    pub interrupts: u64,
    /// Accesses of performance registers for them, at most.
    pub accesses: u64,
    /// Profiles that were due and not taken.
    pub skipped: u64,
    /// Why the last one was not taken, or not written.
    pub error: Option<String>,
    /// What became of the others.
    pub statistics: Statistics,
    /// Failed attempts to send a profile, if they are sent.
    pub push_failures: Option<u64>,
    /// Failed exports to a collector, if there is one.
    pub otlp_failures: Option<u64>,
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

/// How profiles are taken.
pub struct Profiling {
    event: SampledEvent,
    /// The file for the recording while a profile is taken.
    output: PathBuf,
    duration: Duration,
    stacks: bool,
    sampling: Sampling,
}

/// Returns how a configuration samples.
pub fn sampling(config: &Profiles) -> Sampling {
    Sampling { frequency: config.frequency, by_counter: !config.event.eq_ignore_ascii_case(TIME) }
}

impl Profiling {
    /// Prepares to take the profiles of a configuration.
    ///
    /// # Errors
    /// If the event is malformed, or is not one event whose samples `frequency` bounds.
    pub fn new(config: &Profiles) -> Result<Self, ProfileError> {
        let event = || config.event.clone();
        let names: Names<SampledEvent> =
            config.event.parse().map_err(|cause| ProfileError::Event { event: event(), cause })?;
        let mut names = names.into_iter();
        let (Some(sampled), None) = (names.next(), names.next()) else {
            return Err(ProfileError::Several { event: event() });
        };
        if sampled.interval.is_some() {
            return Err(ProfileError::Interval { event: event() });
        }
        if sampled.event.modes & modes::PRECISE != 0 {
            return Err(ProfileError::Precise { event: event() });
        }
        Ok(Self {
            event: sampled.clone(),
            output: work_folder(config).join("profile.rec"),
            duration: config.duration,
            stacks: config.stacks,
            sampling: sampling(config),
        })
    }

    /// Takes a profile, which ends early if `is_over` or if the driver is to be stopped.
    ///
    /// # Errors
    /// If the session does not start, or the recording cannot be written or read.
    pub fn take(&self, is_over: &dyn Fn() -> bool, system: &dyn System) -> Result<Taken, Error> {
        let file = &self.output;
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|cause| ProfileError::Folder { path: folder.to_owned(), cause })?;
        }
        let taken = self.record(is_over, system);
        // The next profile replaces it.
        let _ = fs::remove_file(file);
        taken
    }

    /// Returns the requests for the event: on a hybrid, one for each core type that has it.
    fn events(&self, connection: &Driver, system: &dyn System) -> Result<Vec<EventRequest>, Error> {
        let (mut events, clock) = (Vec::new(), system.tsc_frequency());
        for requested in RequestedEvent::of(&self.event, &ProcessorSet::EMPTY, connection)? {
            add(&mut events, requested.request(self.sampling.frequency, clock), connection.sources()?)?;
        }
        Ok(events)
    }

    fn record(&self, is_over: &dyn Fn() -> bool, system: &dyn System) -> Result<Taken, Error> {
        let mut watch = Watch { is_over, system, next: Instant::now() };
        let connection = connection::open(system)?;
        let info = connection.info()?;
        let events = self.events(&connection, system)?;
        let header = StartHeader { flags: flags::YIELDS, ..StartHeader::EMPTY };
        // If Windows refuses the trace session, the profile is of functions without callers.
        let plan = trace_plan(&header, &events, &info, None);
        let start = |plan: &_, sink| system.trace(plan, sink);
        let tracing = self.stacks.then(|| Tracing::start(start, &plan, CallGraph::Both, &events).ok()).flatten();
        let plan = SamplingPlan {
            header,
            events: &events,
            condition: None,
            scope: Scope::All,
            duration: Some(self.duration),
            command: &[],
            output: Some(&self.output),
            limits: Limits::default(),
        };
        let begun = SystemTime::now();
        let outcome = sampling::run(&plan, tracing, Some(&mut watch), &connection, system)?;
        drop(connection);
        let ended = SystemTime::now();
        let pprof = as_pprof(&self.output)?;
        let (samples, lost) = (outcome.record_counts.samples, outcome.lost().saturating_add(outcome.throttled()));
        let processors = real(outcome.processors.max(1) as u64);
        let time = ended.duration_since(begun).unwrap_or_default();
        let cost = Costs::of(&info, 1).profile(self.sampling, real(samples.saturating_add(lost)) / processors, time);
        let [interrupts, accesses] = [cost.interrupts, cost.accesses].map(|each| nearest((each * processors).ceil()));
        let hidden = "the kernel's code has no names in profiles: Windows hides its addresses";
        let error = outcome.is_kernel_hidden.then(|| hidden.to_owned());
        Ok(Taken {
            pprof,
            begun,
            ended,
            profiled: Profiled { samples, lost, interrupts, accesses, error, ..Profiled::default() },
        })
    }
}

/// Returns a recording of this machine as a profile for pprof.
fn as_pprof(recording: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |cause| ProfileError::Recording { path: recording.to_owned(), cause };
    let file =
        JoinedFile::open(recording).map_err(|cause| ProfileError::Folder { path: recording.to_owned(), cause })?;
    let detail = Detail { stacks: true, ..Detail::default() };
    let contents = Contents::read(&mut BufReader::new(file), detail).map_err(unreadable)?;
    let beside = recording.parent().map(Path::to_owned);
    let finder = SymbolFinder::new(Vec::new(), beside, env::var(SYMBOL_PATH).ok()).map_err(|_| OutOfMemory)?;
    let (filter, finder) = (Filter::default(), finder.with_perf_maps(vec![env::temp_dir()]));
    let symbols = SymbolIndex::new(&contents, &filter, &finder);
    let mut profile = Vec::new();
    report::pprof(&contents, &symbols, &filter, &mut profile).map_err(|error| match error {
        ExportError::Read(cause) => Error::from(unreadable(cause)),
        ExportError::Write(cause) => cause.into(),
    })?;
    Ok(profile)
}

/// Returns the folder for a profile that is being taken: within one of those that the operator has chosen.
fn work_folder(config: &Profiles) -> PathBuf {
    let folder = config.folder.as_ref().map(|folder| &folder.path);
    let buffer = config.push.as_ref().map(|push| &push.buffer);
    folder.or(buffer).cloned().unwrap_or_else(env::temp_dir).join("taking")
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
