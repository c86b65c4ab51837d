//! The sessions that run, with what was known when each began, so that its counts can be computed without the engine.

use protocol::{BRANCHES, CountRecord, EventRequest, Record, StartHeader, TIMER, event_flags, flags, modes};

/// What had happened on a processor at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Happened {
    /// Events in user mode, without the factor of an event.
    pub user: u64,
    /// Events in kernel mode.
    pub kernel: u64,
    /// Number of times that something else happened, after which these sums say less than the ledger of the model.
    pub disturbed: u64,
}

/// The state of the model's counter of a count when the count began.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// Index of the event in the request.
    pub index: u32,
    /// Processor.
    pub processor: u32,
    /// What had happened there.
    pub happened: Happened,
    /// Events that the counter had counted.
    pub counted: u64,
    /// Overflows that the counter had, or branch records that the processor had written.
    pub overflows: u64,
}

/// Samples of one processor and source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Samples {
    /// Number of samples.
    pub samples: u64,
    /// Number of lost ones.
    pub lost: u64,
}

/// A session that the engine accepted.
#[derive(Debug)]
pub struct Session {
    /// Its number.
    pub number: u64,
    /// The slot of its handle; `None` if it is detached.
    pub owner: Option<usize>,
    /// The request.
    pub header: StartHeader,
    /// The events of the request, and whether each still runs.
    pub events: Vec<(EventRequest, bool)>,
    /// The counts at their begin.
    pub begins: Vec<Begin>,
    /// Final numbers, and those fetched: by processor and source.
    samples: Vec<((u32, u32), Samples, Samples)>,
    /// Its counts when it yielded, until it is stopped.
    pub yielded: Vec<CountRecord>,
    /// Whether replies with its counts were cut off.
    pub is_cut_off: bool,
    /// The times before and after the request that began it.
    pub began: (u64, u64),
    /// Whether reading the clock took no time when it began.
    pub has_exact_time: bool,
}

impl Session {
    /// Notes a session that has begun.
    pub fn new(number: u64, slot: usize, header: &StartHeader, events: &[EventRequest]) -> Self {
        let owner = (header.flags & flags::DETACHED == 0).then_some(slot);
        let events = events.iter().map(|event| (*event, true)).collect();
        Self {
            number,
            owner,
            header: *header,
            events,
            begins: Vec::new(),
            samples: Vec::new(),
            yielded: Vec::new(),
            is_cut_off: false,
            began: (0, 0),
            has_exact_time: false,
        }
    }

    /// Returns whether requests of a handle with this number mean the session.
    pub fn is_meant(&self, number: u64, slot: usize) -> bool {
        match self.owner {
            Some(owner) => number == self.number && owner == slot,
            None => number == protocol::DETACHED || number == self.number,
        }
    }

    /// Returns whether it samples.
    pub fn samples(&self) -> bool {
        self.events.iter().any(|(event, _)| is_sampled(event))
    }

    /// Returns whether the Debug Store records for it.
    pub fn records(&self) -> bool {
        self.events.iter().any(|(event, _)| event.event.source == BRANCHES || event.modes & modes::PRECISE != 0)
    }

    /// Returns whether one of its events may take turns with others on the counters.
    pub fn takes_turns(&self, event: &EventRequest) -> bool {
        let pinned = is_sampled(event) || event.flags & event_flags::PINNED != 0;
        self.header.flags & flags::MULTIPLEX != 0 && !pinned
    }

    /// Returns whether an event runs.
    pub fn runs(&self) -> bool {
        self.events.iter().any(|(_, runs)| *runs)
    }

    /// Returns whether it runs and stops when another session needs what it uses.
    pub fn would_yield(&self) -> bool {
        self.header.flags & flags::YIELDS != 0 && self.runs()
    }

    /// Returns whether the driver still knows it.
    pub fn is_kept(&self) -> bool {
        self.runs() || self.samples() || !self.yielded.is_empty()
    }

    /// Notes that an event has ended.
    pub fn end(&mut self, index: u32) {
        if let Some((_, runs)) = self.events.get_mut(index as usize) {
            *runs = false;
        }
    }

    /// Returns the state when a count began. A count without a note began on a processor that was added, on which
    /// nothing had happened before.
    pub fn begin(&self, count: &CountRecord) -> Begin {
        let found = self.begins.iter().find(|begin| (begin.index, begin.processor) == (count.index, count.processor));
        let added = Begin {
            index: count.index,
            processor: count.processor,
            happened: Happened::default(),
            counted: 0,
            overflows: 0,
        };
        found.copied().unwrap_or(added)
    }

    fn entry(&mut self, key: (u32, u32)) -> Option<&mut ((u32, u32), Samples, Samples)> {
        let index = self.samples.iter().position(|(other, ..)| *other == key).unwrap_or_else(|| {
            self.samples.push((key, Samples::default(), Samples::default()));
            self.samples.len() - 1
        });
        self.samples.get_mut(index)
    }

    /// Notes final counts.
    pub fn finish(&mut self, count: &CountRecord) {
        if let Some((_, finally, _)) = self.entry((count.processor, count.index)) {
            finally.samples += count.samples;
            finally.lost += count.lost;
        }
    }

    /// Notes a fetched record.
    pub fn fetch(&mut self, record: &Record) {
        if let Some((.., fetched)) = self.entry((record.processor(), record.event())) {
            match record {
                Record::Lost(lost) => fetched.lost += lost.count,
                record if record.kind().is_sample() => fetched.samples += 1,
                _ => {}
            }
        }
    }

    /// Checks that every sample was fetched and every loss was reported, after the last records.
    pub fn check_samples(&self) {
        for (key, finally, fetched) in &self.samples {
            assert_eq!(fetched.samples, finally.samples, "fetched samples of processor and source {key:x?}");
            // A record that was lost with others of the Debug Store is reported for all sources.
            assert!(self.records() || fetched.lost == finally.lost, "{key:x?}: {fetched:?} of {finally:?}");
        }
    }
}

/// Returns whether an event is sampled.
pub const fn is_sampled(event: &EventRequest) -> bool {
    event.interval != 0 || event.event.source == BRANCHES
}

/// Returns whether a counter of the processor counts the record's event, all the time.
pub const fn has_counter(count: &CountRecord) -> bool {
    count.counter != TIMER && count.event.source != BRANCHES && count.turns == 0
}
