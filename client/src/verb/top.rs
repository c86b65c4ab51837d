//! `top`: shows where events occur while they occur, like perf top.

mod draw;
mod names;
mod screen;
mod state;

use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use halprof::core_types::qualified;
use protocol::SampleRecord;
use recording::{Limits, Process, RecordedEvent, RecordedSession};
use report::{Detail, SampleCounts};

use self::names::{Names, Period, SessionFacts};
use self::screen::Screen;
use self::state::{Event, TopState};
use crate::cli::TopArgs;
use crate::verb::record;
use counts::share::percent;
use recorder::SampleObserver;
use recorder::sampling::{self, SamplingPlan};
use recorder::tasks::Scope;
use system::System;
use terminal::context::Context;
use terminal::format::{grouped, seconds};
use terminal::output::Output;
use user_error::Error;
use user_error::exit::Exit;

/// What distinguishes the locations of samples.
const DETAIL: Detail = Detail { thread: false, processor: true, stacks: false, parallelism: false };

pub fn run(args: &TopArgs, context: &mut Context) -> Result<i32, Error> {
    let connection = args.backend.open(context)?;
    let system = context.system()?;
    let record_args = args.record();
    let tasks = args.tasks.open(system)?;
    let events = record::events(&record_args, context, &connection)?;
    let plan = SamplingPlan {
        header: record_args.session.header(),
        events: &events,
        condition: None,
        scope: tasks.as_ref().map_or(Scope::All, Scope::Tasks),
        duration: None,
        command: &[],
        output: None,
        limits: Limits::default(),
    };
    let begin = system.processor_time();
    let is_screen = !args.batch && io::stdout().is_terminal() && io::stdin().is_terminal();
    let display = if is_screen {
        Display::Screen(Box::new(Screen::open(&mut context.out)?))
    } else {
        Display::Text { width: context.width(false), out: &mut context.out, limit: args.limit }
    };
    let mut top = Top::new(args, display, system);
    let outcome = sampling::run(&plan, None, Some(&mut top), &connection, system);
    // The terminal is restored before anything else is written to it.
    drop(top);
    let outcome = outcome?;
    let own = match (begin, system.processor_time()) {
        (Some(begin), Some(end)) => format!("; the client used {:.2} s", end.saturating_sub(begin).as_secs_f64()),
        _ => String::new(),
    };
    context.warn(&format!(
        "[ {} samples ({} lost{}, paused {} of the time) in {:.1} s{own}, {:.0} wakeups/s ]",
        grouped(outcome.record_counts.samples),
        grouped(outcome.lost()),
        outcome.because_full(),
        percent(outcome.paused_share()),
        seconds(outcome.summary.elapsed),
        outcome.wakeup_rate(),
    ))?;
    let remarks = connection.remarks();
    for warning in outcome.record_counts.warnings().chain(outcome.disturbance_warning()).chain(remarks) {
        context.warn(&warning)?;
    }
    Ok(Exit::Done.code())
}

/// Where updates are shown.
enum Display<'a, 'b> {
    /// A terminal.
    Screen(Box<Screen<&'a mut Output<'b>>>),
    /// Any other stream.
    Text {
        out: &'a mut Output<'b>,
        /// Maximum number of rows of each event.
        limit: usize,
        /// The width to which names are shortened.
        width: usize,
    },
}

/// Collects samples, and shows them every now and then.
struct Top<'a, 'b> {
    display: Display<'a, 'b>,
    system: &'a dyn System,
    names: Names,
    state: TopState,
    sample_counts: SampleCounts,
    delay: Duration,
    /// Begin of the period, and the processor time of the client until then.
    begin: (Instant, Option<Duration>),
    /// Number of updates that remain; `None` without a limit.
    remaining: Option<u64>,
    /// The first error, which ends the session.
    failed: Option<Error>,
    is_drawn: bool,
}

impl<'a, 'b> Top<'a, 'b> {
    fn new(args: &TopArgs, display: Display<'a, 'b>, system: &'a dyn System) -> Self {
        Self {
            display,
            system,
            names: Names::start(args.symbols.clone()),
            state: TopState::default(),
            sample_counts: SampleCounts::new(DETAIL),
            delay: args.delay,
            begin: (Instant::now(), system.processor_time()),
            remaining: args.iterations,
            failed: None,
            is_drawn: false,
        }
    }

    /// Keeps the first error until the next [`poll`](SampleObserver::poll).
    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    /// Ends the period if it is over, and hands it to the thread that looks up its names.
    fn end_period(&mut self) -> Result<(), Error> {
        let (begin, own_begin) = self.begin;
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(begin);
        if elapsed < self.delay {
            return Ok(());
        }
        let own_end = self.system.processor_time();
        let own_time = own_end.zip(own_begin).map(|(end, begin)| end.saturating_sub(begin));
        self.begin = (now, own_end);
        let sample_counts = std::mem::replace(&mut self.sample_counts, SampleCounts::new(DETAIL));
        self.names.period(Period { elapsed, sample_counts, own_time })
    }

    /// Shows what is new. Returns whether to go on.
    fn show(&mut self) -> Result<bool, Error> {
        let mut is_new = !self.is_drawn;
        while self.remaining != Some(0)
            && let Some(update) = self.names.ready()
        {
            if let Display::Text { out, limit, width } = &mut self.display {
                writeln!(out, "{}\n", draw::text(&update, *limit, *width))?;
                out.flush()?;
            }
            self.state.update(Event::Update(update));
            self.remaining = self.remaining.map(|remaining| remaining - 1);
            is_new = true;
        }
        if let Display::Screen(screen) = &mut self.display {
            for key in Screen::<&mut Output>::keys()? {
                self.state.update(Event::Key(key));
                is_new = true;
            }
            if is_new {
                screen.draw(&self.state)?;
            }
        }
        self.is_drawn = true;
        Ok(self.remaining != Some(0) && !self.state.has_ended())
    }
}

impl SampleObserver for Top<'_, '_> {
    fn begin(&mut self, session: &RecordedSession) {
        let name = |event: &RecordedEvent| qualified(&event.name, event.core_type);
        let events = (0..).zip(session.events.iter().map(name)).collect();
        let facts = SessionFacts { events, processors: session.processors.len(), clock: session.clock };
        let sent = self.names.session(facts);
        self.note(sent);
        self.begin = (Instant::now(), self.system.processor_time());
    }

    fn process(&mut self, process: &Process) {
        let sent = self.names.process(process.clone());
        self.note(sent);
    }

    fn samples(&mut self, samples: &[SampleRecord]) {
        self.sample_counts.add(samples);
    }

    fn is_display(&self) -> bool {
        true
    }

    fn poll(&mut self) -> Result<bool, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.end_period()?;
        self.show()
    }
}
