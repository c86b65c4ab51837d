//! Runs a session that samples, for the verbs and the agent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant, SystemTime};

use halprof::core_types::CoreTypeInfo;
use halprof::{Driver, Started};
use pmu::Source;
use pmu::extra::AUXILIARY;
use pmu::interface::emon::Microarchitecture;
use protocol::{CountRecord, Event, EventRequest, InfoReply, PROCESSOR_WORDS, StartHeader, event_flags, modes};
use recording::{CoreTypeProcessors, Limits, Process, RecordedEvent, RecordedSession, RecordedTasks, Summary};

use crate::command::{self, CpuTimes};
use crate::family::{Family, Remaining};
use crate::fetching::Shares;
use crate::processes::Processes;
use crate::ring;
use crate::tasks::{Scope, TaskError};
use crate::{Recorder, RecorderSetup, SampleObserver, TraceResult, Tracing};
use counts::disturbance::{self, Disturbance};
use counts::processor_identity::ProcessorIdentity;
use counts::record_counts::RecordCounts;
use counts::share;
use system::System;
use system::trace::TracePlan;
use terminal::format::{grouped, real, seconds};
use user_error::Error;
use user_error::exit::Exit;

/// Number of checks for the end of the command after Ctrl-C; together with the pauses they take about a second.
const MAX_POLLS: u32 = 20;

/// Unit of the summary's time.
const NANOSECONDS_PER_TICK: u128 = 100;

/// Why a recording ended.
enum End {
    /// The command ended.
    Command(ExitStatus),
    /// Ctrl-C was pressed.
    Interrupted,
    /// The time is over, or the processes and threads that are recorded have ended. The command continues, if it has
    /// not ended meanwhile.
    Over(Option<ExitStatus>),
    /// The driver has no more samples.
    NoMoreSamples,
}

/// Result of a session.
pub struct Outcome {
    /// Summary block of the recording.
    pub summary: Summary,
    /// Number of samples that found the ring of their processor full: a part of the lost ones.
    pub full: u64,
    /// Counts of the records.
    pub record_counts: RecordCounts,
    /// How often the client was woken to fetch samples while the session ran.
    pub wakeups: u64,
    /// Units per second of the session's clock.
    pub clock: u64,
    /// The sampled events.
    pub events: Vec<RecordedEvent>,
    /// Number of sampled processors.
    pub processors: usize,
    /// Size of the file in bytes.
    pub length: u64,
    /// Exit code of the command, or of the client without a command.
    pub exit_code: i32,
    /// How the command ended, if it did.
    pub status: Option<ExitStatus>,
    /// The processor time of the command, if it ended and Windows tells it.
    pub times: Option<CpuTimes>,
    /// What each processor counted meanwhile, of everything that ran there.
    pub records: Vec<CountRecord>,
    /// The samples of what was recorded and of the rest; empty if all was recorded.
    pub shares: Shares,
    /// Process of the command, if it was left running.
    pub running: Option<u32>,
    /// What was left of its processes, if only they were recorded.
    remaining: Remaining,
    /// Where the recording that the file had before is kept.
    pub old_file: Option<PathBuf>,
    /// What became of the trace session, if there was one.
    pub trace: Option<TraceResult>,
    /// Capacity of the ring of each processor in records.
    pub ring: u32,
    /// Whether Windows hid where the modules of the kernel are, so that they have no names.
    pub is_kernel_hidden: bool,
}

impl Outcome {
    /// Returns the warning for samples of the kernel without names.
    #[must_use]
    pub fn kernel_warning(&self) -> Option<String> {
        self.is_kernel_hidden.then(|| {
            "warning: the kernel's code has no names: Windows hides its addresses from this account\n  \
             try: an account with the right \"Debug programs\" (SeDebugPrivilege), elevated"
                .to_owned()
        })
    }

    /// Returns the number of lost samples on all processors.
    pub fn lost(&self) -> u64 {
        self.summary.counts.iter().map(|count| count.lost).fold(0, u64::saturating_add)
    }

    /// Returns the number of samples that were not taken, because the interrupts of a processor had used up their time.
    pub fn throttled(&self) -> u64 {
        self.summary.counts.iter().map(|count| count.throttled).fold(0, u64::saturating_add)
    }

    /// Returns the number of samples of other processes and threads, which were filtered.
    #[must_use]
    pub fn filtered(&self) -> u64 {
        self.summary.counts.iter().map(|count| count.filtered).fold(0, u64::saturating_add)
    }

    /// Returns the number of windows that met the condition: those of samples, with those that were filtered.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.record_counts.samples.saturating_add(self.filtered())
    }

    /// Returns the number of windows that were decided on: those that met the condition, and the others.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.summary.counts.iter().map(|count| count.unmet).fold(self.met(), u64::saturating_add)
    }

    /// Returns whether counters of a processor chose the windows, so that [`windows`](Self::windows) lacks its others.
    #[must_use]
    pub fn counters_chose(&self) -> bool {
        self.summary.counts.iter().any(|count| count.recorder == pmu::Recorder::Reloaded as u32)
    }

    /// Says, after the number of lost samples, how many of them found a ring full; nothing if none was lost.
    #[must_use]
    pub fn because_full(&self) -> String {
        match (self.lost(), self.full) {
            (0, _) => String::new(),
            (_, 0) => ", none because a ring was full".to_owned(),
            (lost, full) if lost == full => ", all because a ring was full".to_owned(),
            (_, full) => format!(", {} because a ring was full", grouped(full)),
        }
    }

    /// Returns what the user has to know about the command and about the file.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let running = self.running.map(|process| format!("[ the command continues: process {process} ]"));
        let old = self.old_file.as_ref();
        let old = old.map(|path| format!("[ the earlier recording is kept as {} ]", path.display()));
        let Remaining { running: processes, untold } = &self.remaining;
        let others: Vec<_> = processes.iter().filter(|id| Some(**id) != self.running).map(u32::to_string).collect();
        let others = (!others.is_empty())
            .then(|| format!("[ processes that the command started continue: {} ]", others.join(", ")));
        let untold = (*untold > 0).then(|| {
            format!(
                "warning: Windows did not tell of {untold} processes of the command: they were not recorded\n  try: -a"
            )
        });
        running.into_iter().chain(others).chain(untold).chain(old).collect()
    }

    /// Returns the warning about samples that other programs disturbed; `None` if none were found.
    #[must_use]
    pub fn disturbance_warning(&self) -> Option<String> {
        let marks = self.summary.counts.iter().filter_map(|count| {
            let name = self.events.get(count.event as usize)?.name.clone();
            Some((name, count.processor, Disturbance::of_recorded(count.disturbed.as_ref()?)))
        });
        let marks: Vec<_> = marks.collect();
        disturbance::warning(marks.iter().map(|(name, processor, one)| (name.clone(), *processor, one)))
    }

    /// Returns how often the client was woken in each second.
    #[must_use]
    pub fn wakeup_rate(&self) -> f64 {
        real(self.wakeups) / seconds(self.summary.elapsed).max(f64::MIN_POSITIVE)
    }

    /// Returns how long all processors paused. Pauses that lasted to the end of the session are not included.
    #[must_use]
    pub fn paused_seconds(&self) -> f64 {
        real(self.record_counts.paused) / real(self.clock.max(1))
    }

    /// Returns the share of the time of all processors that those pauses took.
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        share::paused(self.paused_seconds(), seconds(self.summary.elapsed), self.processors)
    }
}

/// Parameters of a session that samples.
pub struct SamplingPlan<'a> {
    /// Flags, processors, budget, precise records per interrupt and last branches; the capacity of each ring in
    /// records, or 0 for one that fits the expected rate.
    pub header: StartHeader,
    /// Events to sample.
    pub events: &'a [EventRequest],
    /// The condition of their samples as the user wrote it, and the events that are counted for it, if there is one.
    pub condition: Option<(&'a str, &'a [EventRequest])>,
    /// What is recorded.
    pub scope: Scope<'a>,
    /// When it ends, at the latest.
    pub duration: Option<Duration>,
    /// The command that runs meanwhile, if any.
    pub command: &'a [OsString],
    /// The file to write, if any.
    pub output: Option<&'a Path>,
    /// How much of it is kept.
    pub limits: Limits,
}

/// Returns the processors of a session.
fn processors(header: &StartHeader, info: &InfoReply) -> Vec<u32> {
    let chosen: Vec<u32> = header.processors.iter().collect();
    if chosen.is_empty() { (0..info.processors).take(PROCESSOR_WORDS * 64).collect() } else { chosen }
}

/// Returns what a trace session of call stacks has to hold.
#[must_use]
pub fn trace_plan(header: &StartHeader, events: &[EventRequest], info: &InfoReply, file: Option<PathBuf>) -> TracePlan {
    let sampled = processors(header, info).len() as u64;
    let samples_per_second = ring::samples_per_second(events).saturating_mul(sampled);
    TracePlan { samples_per_second, processors: info.processors, off_cpu: false, file }
}

/// Starts a session, fetches its samples until its end, and stops it; the trace session too, if there is one.
///
/// # Errors
/// If the session does not start, or the file cannot be written.
pub fn run(
    plan: &SamplingPlan,
    tracing: Option<Tracing>,
    observer: Option<&mut dyn SampleObserver>,
    connection: &Driver,
    system: &dyn System,
) -> Result<Outcome, Error> {
    system.note_interrupts()?;
    // The kernel has many modules. Their files are read before the start, so that its samples have names at once.
    let mut processes = Processes::default();
    let kernel = processes.query_kernel(&*system.process_source(), Instant::now());
    let started = start(plan, connection)?;
    sample_session(plan, started, (processes, kernel), tracing, observer, (connection, system))
}

/// Starts a session, of which [`run`] and [`count_shares`] fetch the samples.
///
/// # Errors
/// If the driver refuses it.
pub fn start(plan: &SamplingPlan, connection: &Driver) -> Result<StartedSampling, halprof::Error> {
    let info = connection.info()?;
    let processors = processors(&plan.header, &info);
    let ring = match plan.header.ring {
        0 => {
            ring::capacity(plan.events, plan.header.last_branches, u32::try_from(processors.len()).unwrap_or(u32::MAX))
        }
        chosen => chosen,
    };
    let beside = plan.condition.map(|(_, beside)| beside).unwrap_or_default();
    let requests = [plan.events, beside, &companions(plan.events, info.signature)].concat();
    let started = connection.start(&StartHeader { ring, ..plan.header }, &requests)?;
    Ok(StartedSampling { started, ring, info, processors })
}

/// Counts the samples of a session that has started until its end, without any file, and stops it.
///
/// # Errors
/// If the driver does not answer, or the command cannot be run.
pub fn count_shares(
    plan: &SamplingPlan,
    started: StartedSampling,
    connection: &Driver,
    system: &dyn System,
) -> Result<Outcome, Error> {
    sample_session(plan, started, (Processes::default(), None), None, None, (connection, system))
}

fn sample_session(
    plan: &SamplingPlan,
    StartedSampling { started, ring, info, processors }: StartedSampling,
    (processes, kernel): (Processes, Option<Process>),
    tracing: Option<Tracing>,
    observer: Option<&mut dyn SampleObserver>,
    (connection, system): (&Driver, &dyn System),
) -> Result<Outcome, Error> {
    let source = system.process_source();
    let mut session = session_block(plan, processors, &info, started.clock, connection)?;
    if tracing.as_ref().is_some_and(Tracing::has_switches) {
        session.events.push(RecordedEvent::off_cpu());
    }
    let is_kernel_hidden = processes.is_kernel_hidden();
    let setup = RecorderSetup { system, source, processes, limits: plan.limits, tracing, family: None };
    let sampling = Sampling { plan, ring, connection, started, session, setup, is_kernel_hidden };
    sampling.run(kernel, observer).inspect_err(|_| {
        // The first error is reported. A session that cannot be stopped ends when the handle is closed.
        let _ = connection.stop_all(started.session);
    })
}

/// A session that samples and has started.
pub struct StartedSampling {
    started: Started,
    /// Capacity of the ring of each processor in records.
    ring: u32,
    info: InfoReply,
    processors: Vec<u32>,
}

/// A session whose samples are fetched.
struct Sampling<'a> {
    plan: &'a SamplingPlan<'a>,
    ring: u32,
    connection: &'a Driver,
    started: Started,
    session: RecordedSession,
    setup: RecorderSetup<'a>,
    is_kernel_hidden: bool,
}

impl Sampling<'_> {
    /// Samples until the end of the session, and writes the file.
    fn run(self, kernel: Option<Process>, observer: Option<&mut dyn SampleObserver>) -> Result<Outcome, Error> {
        let Self {
            plan: SamplingPlan { command, duration, output, events, scope, .. },
            ring,
            connection,
            started,
            mut session,
            mut setup,
            ..
        } = self;
        let system = setup.system;
        // An existing recording is moved only after the command has started.
        let file = output.map(|path| crate::open(path).map(|file| (path, file))).transpose()?;
        if matches!(scope, Scope::Command) {
            let started = system.started_processes().map_err(|cause| TaskError::Command { cause })?;
            setup.family = Some(Family::new(started));
        }
        let begin = Instant::now();
        let child = (!command.is_empty()).then(|| command::start(command)).transpose();
        let mut child = child.inspect_err(|_| {
            if let Some((path, file)) = &file {
                crate::remove_if_empty(file, path);
            }
        })?;
        if let (Some(child), Some(_)) = (&child, &setup.family) {
            session.tasks =
                RecordedTasks { processes: [child.id()].into(), with_children: true, ..RecordedTasks::default() };
        }
        let mut recorder = Recorder::begin(file, observer, &session, setup)?;
        if let Some(kernel) = kernel {
            recorder.record_process(kernel);
        }
        if let Some(child) = &child {
            recorder.track_command(child.id());
        }
        // For each record in a ring there can be one that reports lost records.
        let max_left = 2 * u64::from(ring) * session.processors.len() as u64;
        recorder.fetch(connection.sample_stream(started.session), max_left);
        let until = duration.map(|duration| begin + duration);
        let end = sample(&mut recorder, child.as_mut(), until, (*scope, system))?;
        let elapsed = begin.elapsed();
        let mut records = connection.stop_all(started.session)?;
        // Without those that were counted for the samples.
        records.retain(|record| usize::try_from(record.index).is_ok_and(|index| index < events.len()));
        recorder.drain()?;

        let status = match (&end, &mut child) {
            (End::Command(status), _) => Some(*status),
            (End::Over(status), _) => *status,
            (End::Interrupted | End::NoMoreSamples, Some(child)) => wait_for_end(child, system),
            (End::Interrupted | End::NoMoreSamples, None) => None,
        };
        let shares = recorder.take_shares();
        let mut summary = Summary {
            elapsed: u64::try_from(elapsed.as_nanos() / NANOSECONDS_PER_TICK).unwrap_or(u64::MAX),
            counts: crate::counts(&records, &shares),
            interrupted_by_user: matches!(end, End::Interrupted),
            exit_code: status.and_then(|status| status.code()),
            kept: None,
            off_cpu: None,
        };
        let (wakeups, trace) = (recorder.wakeups(), recorder.trace_result());
        summary.off_cpu = trace.as_ref().and_then(|trace| trace.off_cpu);
        let remaining = recorder.take_remaining();
        let old_file = recorder.old_file().map(Path::to_owned);
        let (record_counts, length) = recorder.finish(&mut summary)?;
        let exit_code = match (&child, status, &end) {
            (None, ..) | (Some(_), None, End::Over(_)) => Exit::Done.code(),
            (Some(_), Some(status), _) => command::exit_code(status),
            (Some(_), None, _) => Exit::Failure.code(),
        };
        let times = child.as_ref().filter(|_| status.is_some()).and_then(command::times);
        let running = child.filter(|_| status.is_none()).map(|child| child.id());
        let (events, processors) = (session.events, session.processors.len());
        let clock = session.clock;
        let full = records.iter().map(|record| record.full).fold(0, u64::saturating_add);
        Ok(Outcome {
            summary,
            full,
            record_counts,
            wakeups,
            clock,
            events,
            processors,
            length,
            exit_code,
            status,
            times,
            records,
            shares,
            running,
            remaining,
            old_file,
            trace,
            ring,
            is_kernel_hidden: self.is_kernel_hidden,
        })
    }
}

fn sample(
    recorder: &mut Recorder,
    mut child: Option<&mut Child>,
    until: Option<Instant>,
    (scope, system): (Scope, &dyn System),
) -> Result<End, Error> {
    loop {
        let is_last = recorder.step(until)?;
        if let Some(child) = &mut child
            && let Ok(Some(status)) = child.try_wait()
        {
            return Ok(End::Command(status));
        }
        if system.interrupted() {
            return Ok(End::Interrupted);
        }
        let have_ended = || matches!(scope, Scope::Tasks(tasks) if tasks.have_ended());
        if until.is_some_and(|until| Instant::now() >= until) || have_ended() {
            // The command may have ended since it was looked at.
            let status = child.as_mut().and_then(|child| child.try_wait().ok()).flatten();
            return Ok(End::Over(status));
        }
        if !recorder.poll()? || is_last {
            return Ok(End::NoMoreSamples);
        }
    }
}

/// Waits for the end of the command, which also received Ctrl-C. A command that continues is left running.
fn wait_for_end(child: &mut Child, system: &dyn System) -> Option<ExitStatus> {
    for _ in 0..MAX_POLLS {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        system.pause();
    }
    None
}

/// Returns the events that have to be counted beside these on a processor with this signature (CPUID.1:EAX), so that
/// these are recorded: one for each load latency of a P core before Redwood Cove.
fn companions(events: &[EventRequest], signature: u32) -> Vec<EventRequest> {
    let needs = |event: &&EventRequest| {
        let raw = Source(event.event.source).raw();
        Microarchitecture::has_auxiliary_event(signature)
            && raw.is_some_and(|raw| (raw.event(), raw.umask()) == LOAD_LATENCY)
    };
    let beside = |event: &EventRequest| EventRequest {
        event: Event { source: AUXILIARY.source().0, core_type: event.event.core_type, ..Event::of(0) },
        modes: event.modes & modes::BOTH,
        flags: event_flags::PINNED,
        ..EventRequest::EMPTY
    };
    events.iter().find(needs).map(beside).into_iter().collect()
}

/// Event select and unit mask of load latency. E cores have others, and stores another unit mask.
const LOAD_LATENCY: (u16, u16) = (0xCD, 0x01);

/// Returns whether the processor itself records the event.
#[must_use]
pub fn is_precise(event: &EventRequest) -> bool {
    event.modes & modes::PRECISE != 0
}

fn session_block(
    plan: &SamplingPlan,
    processors: Vec<u32>,
    info: &InfoReply,
    clock: u64,
    connection: &Driver,
) -> Result<RecordedSession, Error> {
    let SamplingPlan { header, command, events, .. } = plan;
    let sources = connection.sources()?;
    let identity = ProcessorIdentity::new(&info.vendor, &info.brand, info.signature);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let event = |request: &EventRequest| RecordedEvent {
        source: request.event.source,
        name: sources.word_of_sampled(request),
        modes: request.modes,
        interval: request.interval,
        frequency: request.frequency,
        core_type: request.event.core_type,
    };
    let core_type = |one: &CoreTypeInfo| CoreTypeProcessors {
        core_type: one.number,
        name: one.name.clone(),
        processors: one.processors.iter().copied().filter(|processor| processors.contains(processor)).collect(),
    };
    Ok(RecordedSession {
        created_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or_default(),
        client: env!("CARGO_PKG_VERSION").to_owned(),
        driver: connection.driver_version(),
        processor: identity.brand.unwrap_or(identity.vendor),
        computer: std::env::var("COMPUTERNAME").ok(),
        command: command::words(command),
        clock,
        core_types: connection.core_types()?.iter().map(core_type).collect(),
        processors,
        batch: if events.iter().any(is_precise) { header.batch.max(1) } else { 0 },
        events: events.iter().map(event).collect(),
        condition: plan.condition.map(|(text, _)| text.to_owned()),
        last_branches: header.last_branches,
        tasks: match plan.scope {
            Scope::Tasks(tasks) => tasks.recorded.clone(),
            // The command has no ID before it starts.
            Scope::All | Scope::Command => RecordedTasks::default(),
        },
        part: 0,
    })
}
