//! The session of the agent: it counts all the time, gives its counters to other sessions, and takes them again.

use std::time::Duration;

use agent::config::{By, Config};
use halprof::counting::{EventNames, Totals, difference};
use halprof::{Driver, Error as DriverError, ErrorKind, Reading};
use protocol::{CountRecord, EventRequest, InfoReply, ProcessorSet, StartHeader, flags};

use super::costs::{Costs, PAUSE, UPKEEP};
use super::gap::{GapReason, Gaps};
use super::profiling;
use counts::event_list::EventList;
use counts::requested_metrics::{MetricValue, Metrics, Refused};
use counts::requests;
use counts::{EventCount, by_event};
use system::System;
use system::connection;
use user_error::Error;

/// The unit of the driver's times, in nanoseconds.
const TICK: u128 = 100;

/// What the agent counts, with an open driver.
struct Connected {
    driver: Driver,
    info: InfoReply,
    requested: Vec<EventRequest>,
    /// Names of the requested events.
    names: EventNames,
    /// Events that the user named; those of metrics follow.
    own: usize,
    metrics: Metrics,
    refused: Refused,
    round: Duration,
    session: Option<CountingSession>,
}

impl Connected {
    /// Requests the events of the metrics after those that the user named, without those that were refused.
    fn request_metrics(&mut self, config: &Config, system: &dyn System) -> Result<(), Error> {
        self.requested.truncate(self.own);
        let (names, all) = (&config.counting.metrics, &ProcessorSet::EMPTY);
        self.metrics = Metrics::new(names, &mut self.requested, all, &self.refused, &self.driver, system)?;
        self.metrics.check(&self.requested)?;
        self.names = EventNames::of(&self.requested, self.driver.sources()?);
        Ok(())
    }

    fn costs(&self) -> Costs {
        Costs::of(&self.info, self.requested.len())
    }

    /// Returns the accesses on all CPUs, of those on each.
    fn everywhere(&self, accesses: u32) -> u64 {
        u64::from(accesses) * u64::from(self.info.processors)
    }
}

/// The session while it runs.
struct CountingSession {
    number: u64,
    before: Vec<CountRecord>,
}

/// The counts of the agent. Moments are the time since it began.
pub struct Counting<'a> {
    config: &'a Config,
    events: Vec<EventList>,
    system: &'a dyn System,
    connected: Option<Connected>,
    /// When a session was last started.
    started: Option<Duration>,
    /// When rounds were last added to the costs.
    paid: Duration,
    /// The sums since the agent, or the driver, began.
    pub totals: Totals,
    /// The times without counters.
    pub gaps: Gaps,
    /// Accesses of registers and interrupts, at most, on all CPUs.
    pub spent: Spent,
    /// The metrics of the last interval.
    pub metrics: Vec<MetricValue>,
    /// The counts of the last interval.
    pub counts: Vec<EventCount>,
    /// How often the sums began at zero.
    pub resets: u64,
    /// The last error that made a gap.
    pub error: Option<String>,
}

/// What the agent has cost all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Accesses of performance registers, at most.
    pub accesses: u64,
    /// Interrupts and timer expiries, at most.
    pub interrupts: u64,
}

impl<'a> Counting<'a> {
    /// Prepares to count what the configuration names.
    ///
    /// # Errors
    /// If an event is malformed.
    pub fn new(config: &'a Config, system: &'a dyn System) -> Result<Self, Error> {
        Ok(Self {
            config,
            events: event_lists(config)?,
            system,
            connected: None,
            started: None,
            paid: Duration::ZERO,
            totals: Totals::default(),
            gaps: Gaps::default(),
            spent: Spent::default(),
            metrics: Vec::new(),
            counts: Vec::new(),
            resets: 0,
            error: None,
        })
    }

    /// Returns the driver, if it is open.
    pub fn driver(&self) -> Option<&Driver> {
        self.connected.as_ref().map(|connected| &connected.driver)
    }

    /// Returns whether a session runs.
    pub fn is_counting(&self) -> bool {
        self.connected.as_ref().is_some_and(|connected| connected.session.is_some())
    }

    /// Returns the events that are counted, and their names.
    pub fn requested(&self) -> Option<(&[EventRequest], &EventNames)> {
        self.connected.as_ref().map(|connected| (connected.requested.as_slice(), &connected.names))
    }

    /// Returns the state in a sentence, for an operator.
    pub fn describe(&self) -> String {
        let because = self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        match self.gaps.current().map(|gap| gap.reason) {
            None => match &self.connected {
                Some(connected) => {
                    let (events, round) = (connected.requested.len(), connected.round.as_millis());
                    format!("counting {events} events on {} CPUs, rounds of {round} ms", connected.info.processors)
                }
                None => "not counting yet".to_owned(),
            },
            Some(GapReason::Yielded) => "gave the counters to another session".to_owned(),
            Some(GapReason::Refused) => format!("waiting for counters{because}"),
            Some(GapReason::Driver) => format!("waiting for the driver{because}"),
        }
    }

    /// Opens the driver, or closes it if it is about to stop; starts the session if it does not run and may. A session
    /// that has yielded is read at once, so that its gap is known before the next interval is over.
    ///
    /// # Errors
    /// If the configuration cannot be counted on this machine. What can pass is a gap, and no error.
    pub fn attend(&mut self, now: Duration) -> Result<(), Error> {
        self.gaps.update(now);
        if connection::is_to_end(self.system) {
            self.finish(now);
            self.connected = None;
            self.gaps.begin(GapReason::Driver, now);
            return Ok(());
        }
        if self.connected.is_none() && !self.connect(now)? {
            return Ok(());
        }
        if self.has_yielded() {
            self.read(now);
        }
        if self.is_counting() || self.started.is_some_and(|started| now < started + PAUSE) {
            return Ok(());
        }
        self.start(now)
    }

    /// Opens the driver. Returns false if that is impossible now.
    fn connect(&mut self, now: Duration) -> Result<bool, Error> {
        let driver = match connection::open(self.system) {
            Ok(driver) => driver,
            Err(error) => {
                self.error = Some(Error::from(error).in_one_line());
                self.gaps.begin(GapReason::Driver, now);
                return Ok(false);
            }
        };
        let info = driver.info()?;
        let sampling = self.config.profiles.as_ref().map(profiling::sampling).unwrap_or_default();
        let requested = requests::events(&self.events, &ProcessorSet::EMPTY, &driver)?;
        let own = requested.len();
        let (metrics, refused, round) = (Metrics::default(), Refused::default(), Duration::ZERO);
        let names = EventNames::default();
        let mut connected = Connected { driver, info, requested, names, own, metrics, refused, round, session: None };
        connected.request_metrics(self.config, self.system)?;
        connected.round = connected.costs().round(self.config.budget, self.config.counting.interval, sampling)?;
        self.totals.clear();
        self.resets += 1;
        self.connected = Some(connected);
        Ok(true)
    }

    /// Starts the session. If something that it needs is in use, a gap goes on.
    fn start(&mut self, now: Duration) -> Result<(), Error> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        let round = u32::try_from(connected.round.as_nanos() / TICK).unwrap_or(u32::MAX);
        let header = StartHeader { flags: flags::YIELDS | flags::MULTIPLEX, round, ..StartHeader::EMPTY };
        loop {
            let refused = match connected.driver.start(&header, &connected.requested) {
                Ok(started) => {
                    connected.session = Some(CountingSession { number: started.session, before: Vec::new() });
                    self.spent.accesses += connected.everywhere(connected.costs().start());
                    (self.started, self.paid, self.error) = (Some(now), now, None);
                    self.gaps.end(now);
                    return Ok(());
                }
                Err(refused) => refused,
            };
            let of_metrics = connected.requested.get(connected.own..).unwrap_or_default();
            if refused.refusal().is_some_and(|refusal| connected.refused.add(refusal, of_metrics)) {
                connected.request_metrics(self.config, self.system)?;
                continue;
            }
            return self.refused(refused, now);
        }
    }

    /// A start was refused: a gap, if that can pass.
    fn refused(&mut self, refused: DriverError, now: Duration) -> Result<(), Error> {
        let passes = matches!(
            refused.kind(),
            ErrorKind::NoFreeCounter
                | ErrorKind::CountersTaken
                | ErrorKind::ThreadProfilingTaken
                | ErrorKind::DebugStoreTaken
                | ErrorKind::NoResources
                | ErrorKind::Other
        );
        if !passes {
            return Err(refused.into());
        }
        self.error = Some(Error::from(refused).in_one_line());
        // A gap after a yield goes on: another session still has the counters.
        if self.gaps.current().is_none() {
            self.gaps.begin(GapReason::Refused, now);
        }
        Ok(())
    }

    /// Reads the counters, and adds what was counted since the last reading.
    pub fn read(&mut self, now: Duration) {
        self.gaps.update(now);
        let Some((driver, session)) = self.running() else { return };
        match driver.reading(session) {
            Ok(Reading { records, has_yielded: false }) => self.add(records, now),
            Ok(Reading { records, has_yielded: true }) => {
                // The counts say when it yielded.
                let ran = records.iter().map(|record| record.enabled).max().unwrap_or_default();
                let yielded = self.started.unwrap_or(now) + Duration::from_nanos(ran.saturating_mul(100));
                self.finish(now);
                self.gaps.begin(GapReason::Yielded, yielded.min(now));
                self.gaps.update(now);
            }
            Err(error) => self.lose(error, now),
        }
    }

    /// Stops the session, and adds its final counts.
    pub fn finish(&mut self, now: Duration) {
        let Some((driver, session)) = self.running() else { return };
        match driver.stop_all(session) {
            Ok(records) => self.add(records, now),
            Err(error) => self.lose(error, now),
        }
        if let Some(connected) = &mut self.connected {
            connected.session = None;
            self.spent.accesses += connected.everywhere(connected.costs().switch());
        }
        self.totals.end_session();
    }

    /// Returns whether the driver lists the session no more. That accesses no register.
    fn has_yielded(&self) -> bool {
        let Some((driver, number)) = self.running() else { return false };
        driver.sessions().is_ok_and(|sessions| sessions.iter().all(|session| session.number != number))
    }

    fn running(&self) -> Option<(&Driver, u64)> {
        let connected = self.connected.as_ref()?;
        Some((&connected.driver, connected.session.as_ref()?.number))
    }

    /// The driver does not answer any more.
    fn lose(&mut self, error: DriverError, now: Duration) {
        self.error = Some(Error::from(error).in_one_line());
        self.connected = None;
        self.gaps.begin(GapReason::Driver, now);
    }

    /// Adds the counts of a reading.
    fn add(&mut self, records: Vec<CountRecord>, now: Duration) {
        let Some(connected) = &mut self.connected else { return };
        let Some(session) = &mut connected.session else { return };
        let since = difference(&records, &session.before);
        session.before = records;
        self.totals.add(&since, self.config.counting.by == By::Cpu);
        let (costs, processors) = (connected.costs(), u64::from(connected.info.processors));
        let takes_turns = since.iter().any(|record| record.turns > 0);
        let time = now.saturating_sub(self.paid);
        let rounds = if takes_turns { begun(time, connected.round) } else { 0 };
        let readings = 1 + begun(time, UPKEEP);
        let accesses = readings * u64::from(costs.reading()) + rounds * u64::from(costs.switch());
        self.spent.accesses += processors * accesses;
        self.spent.interrupts += processors * rounds;
        self.paid = now;
        let mut counts = by_event(&since, |record| connected.names.of_count(record));
        counts.sort_by_key(|count| count.index);
        let seconds = counts.iter().map(|count| count.enabled_seconds).fold(0.0, f64::max);
        self.metrics = connected.metrics.values(&counts, seconds);
        self.counts = counts;
    }
}

/// Returns the events of a configuration.
///
/// # Errors
/// If one is malformed.
pub fn event_lists(config: &Config) -> Result<Vec<EventList>, Error> {
    let lists = config.counting.events.iter().map(|text| text.parse::<EventList>());
    Ok(lists.collect::<Result<_, _>>().map_err(DriverError::from)?)
}

/// Returns how many periods can have begun in a time.
fn begun(time: Duration, period: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(period.as_nanos().max(1))).unwrap_or(u64::MAX)
}
