//! What replies must say, by what happened on the model.

use std::ops::RangeInclusive;

use model::{CounterId, Ledger, LedgerEntry};
use pmu::{ProcessorIndex, Recorder};
use protocol::{
    BRANCHES, Code, CountRecord, EventRequest, GroupReply, InfoReply, ReplyHeader, SampleRecord, SamplesRequest,
    SessionRequest, StartHeader, StopRequest, modes,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::book::{Begin, Happened, Session, has_counter, is_sampled};
use crate::episode::{Episode, LONGEST, Reply};
use crate::registers::Foreign;

/// Returns how often an event with this number happens for each unit of what is executed. Cycles happen most often,
/// because AMD's counters cannot add more events than that.
pub const fn factor(event: u16, umask: u16) -> u64 {
    if event == 0x76 { 3 } else { 1 + (event as u64 ^ umask as u64) % 3 }
}

impl Episode<'_> {
    /// Follows a reply: notes sessions, and checks counts and records.
    pub(crate) fn follow(&mut self, slot: usize, code: u32, reply: &Reply) {
        let accepted = reply.accepted();
        match (protocol::find(code).map(|spec| spec.code), accepted) {
            (Some(Code::Start), _) if reply.header.is_some() => {
                let input = self.input.clone();
                self.note_yields();
                self.input = input;
                self.note_force();
                match (accepted, reply.header) {
                    (Some(header), _) => self.started(slot, &header),
                    (None, Some(header)) => self.check_refusal(&header),
                    (None, None) => {}
                }
            }
            // It began nothing, and made no session yield.
            (Some(Code::Start), _) => self.before_start.clear(),
            (Some(Code::Stop), _) if reply.header.is_some() => self.stopped(slot, accepted),
            (Some(Code::Read), Some(header)) => {
                let counts: Vec<CountRecord> = self.records(&header);
                for count in &counts {
                    self.check_read(count, header.detail == [1, 0]);
                }
            }
            (Some(Code::Samples), Some(header)) => self.fetched(&header),
            (Some(Code::Info), Some(_)) => self.check_info(),
            (Some(Code::ListSessions), Some(header)) if !self.has_orphans => {
                let running = |session: &Session| session.events.iter().filter(|(_, runs)| *runs).count();
                let all: usize = self.sessions.iter().map(running).sum();
                assert_eq!(header.total as usize, all, "events in the list of sessions");
            }
            (Some(Code::ReadGroup), Some(header)) => {
                let bytes = self.output.get(..reply.completion.information).unwrap_or_default();
                let group = GroupReply::read_from_bytes(bytes);
                assert!(group.is_ok_and(|group| group.time_before <= group.time_after), "{header:?}");
            }
            _ => {}
        }
    }

    /// Returns the records of the reply in the output.
    fn records<T: FromBytes>(&self, header: &ReplyHeader) -> Vec<T> {
        let bytes = self.output.get(size_of::<ReplyHeader>()..).unwrap_or_default();
        let records = bytes.chunks_exact(size_of::<T>()).filter_map(|bytes| T::read_from_bytes(bytes).ok());
        records.take(header.count as usize).collect()
    }

    fn started(&mut self, slot: usize, header: &ReplyHeader) {
        let [number, _] = header.detail;
        let Ok((start, rest)) = StartHeader::read_from_prefix(&self.input) else { return };
        let events = rest.chunks_exact(size_of::<EventRequest>());
        let events: Vec<_> = events.filter_map(|event| EventRequest::read_from_bytes(event).ok()).collect();
        assert!(self.sessions.iter().all(|session| session.number != number), "session {number} begins twice");
        let mut session = Session::new(number, slot, &start, &events);
        session.has_exact_time = self.pace == 0;
        session.began = (self.before, engine::Platform::clock(&self.machine).0);
        self.stats.sessions += 1;
        let header = self.read(slot, number);
        let counts: Vec<CountRecord> = header.map(|header| self.records(&header)).unwrap_or_default();
        session.begins = counts.iter().map(|count| self.begin(count)).collect();
        self.check_scarce(&session.header, &counts);
        self.sessions.push(session);
        for count in &counts {
            self.check_count(count, false);
        }
    }

    /// Reads a session into the output.
    fn read(&mut self, slot: usize, number: u64) -> Option<ReplyHeader> {
        self.input.clear();
        self.input.extend_from_slice(SessionRequest { session: number }.as_bytes());
        self.serve(slot, Code::Read as u32, LONGEST).accepted()
    }

    fn begin(&self, count: &CountRecord) -> Begin {
        let processor = count.processor;
        let (counted, overflows) = self.totals(count);
        // An overflow whose interrupt is late belongs to the session as well, because its sample follows.
        let hal = self.engine.sampler().hal();
        let waits = has_counter(count)
            && !hal.is_asleep(ProcessorIndex::new(processor))
            && u8::try_from(count.counter)
                .is_ok_and(|counter| hal.check_overflow(self.machine.current(processor)).0.has(counter));
        Begin {
            index: count.index,
            processor,
            happened: self.happened(processor),
            counted,
            overflows: overflows - u64::from(waits),
        }
    }

    pub(crate) fn happened(&self, processor: u32) -> Happened {
        self.happened.get(processor as usize).copied().unwrap_or_default()
    }

    /// Returns the model's counter of a count, if it is a plain one.
    fn model_counter(&self, count: &CountRecord) -> Option<CounterId> {
        let identity = self.traits.identity.expected;
        // The first thread of a core of NetBurst has every other pair of counters.
        let is_shared = identity.interface == "NetBurst" && identity.counters < 18;
        let counter = u8::try_from(count.counter).ok().filter(|_| has_counter(count) && !is_shared)?;
        let id = self.machine.counter(count.processor, counter);
        (!matches!(id, CounterId::Metric(_))).then_some(id)
    }

    /// Returns the events and the overflows of a counter in the model's ledger, or the branch records.
    fn totals(&self, count: &CountRecord) -> (u64, u64) {
        let model = self.machine.processor(count.processor).model();
        if count.event.source == BRANCHES {
            return (0, model.stored().branches);
        }
        drop(model);
        self.totals_in(count, self.machine.processor(count.processor).model().ledger())
    }

    /// Returns the events and the overflows of a counter in a ledger of its processor.
    fn totals_in(&self, count: &CountRecord, ledger: &Ledger) -> (u64, u64) {
        let Some(id) = self.model_counter(count) else { return (0, 0) };
        let entries = ledger.entries().filter(|entry: &LedgerEntry| entry.counter == id);
        entries.fold((0, 0), |(counted, overflows), entry| (counted + entry.counted, overflows + entry.overflows))
    }

    /// Finds the sessions that yielded to a start, with their final counts. A start that was refused may have made them
    /// yield as well.
    fn note_yields(&mut self) {
        let yielding: Vec<(u64, usize)> = self
            .sessions
            .iter()
            .filter(|session| session.would_yield())
            .filter_map(|session| Some((session.number, session.owner?)))
            .collect();
        let (mut yielded, before) = (0, self.before);
        for (number, slot) in &yielding {
            let Some(header) = self.read(*slot, *number) else { continue };
            self.before = before;
            if header.detail != [1, 0] {
                continue;
            }
            yielded += 1;
            let counts: Vec<CountRecord> = self.records(&header);
            assert!(!counts.is_empty(), "session {number} has yielded without a count");
            for count in &counts {
                self.check_count(count, true);
            }
            if let Some(session) = self.sessions.iter_mut().find(|session| session.number == *number) {
                for count in &counts {
                    session.finish(count);
                }
                session.events.iter_mut().for_each(|(_, runs)| *runs = false);
                session.yielded = counts;
                session.is_cut_off |= header.count < header.total;
            }
        }
        self.before_start.clear();
        assert!(yielded == 0 || yielded == yielding.len(), "{yielded} of {} sessions yielded", yielding.len());
        self.stats.yields += yielded as u64;
    }

    /// Checks a count of a read. The counts of a session that has yielded no longer change.
    fn check_read(&mut self, count: &CountRecord, has_yielded: bool) {
        let found = self.sessions.iter().find(|session| session.number == count.session);
        if let Some(session) = found.filter(|session| !session.yielded.is_empty()) {
            let is_known = session.yielded.contains(count) || session.is_cut_off;
            assert!(has_yielded && is_known, "{count:?} of {:?}", session.yielded);
            return;
        }
        assert!(self.has_orphans || !has_yielded, "it has not yielded: {count:?}");
        self.check_count(count, false);
    }

    /// Checks a count of a session that is known.
    fn check_count(&mut self, count: &CountRecord, finally: bool) {
        let found = self.sessions.iter().find(|session| session.number == count.session);
        let Some(session) = found else {
            assert!(self.has_orphans, "a count of an unknown session: {count:?}");
            return;
        };
        // With a slow clock the two readings of a moment are far apart.
        let (enabled, parts) = (count.enabled, [count.running, count.asleep]);
        assert!(self.traits.slow || parts.iter().all(|part| *part <= enabled), "{count:?}");
        // While reading the clock takes no time, the time since the start is known, except on an added processor.
        let is_added = !session.begins.is_empty() && !session.begins.iter().any(|it| it.processor == count.processor);
        if self.pace == 0 && session.has_exact_time && !is_added {
            let (now, (before, after)) = (engine::Platform::clock(&self.machine).0, session.began);
            // A session yields before a start waits for something else.
            let earliest = if session.would_yield() && finally { self.before } else { now };
            assert!((earliest - after..=now - before).contains(&enabled), "{before} to {after}, now {now}: {count:?}");
            self.stats.times += 1;
        }
        let Some((event, _)) = session.events.get(count.index as usize).copied() else {
            assert!(session.events.len() > count.index as usize, "an unknown event: {count:?}");
            return;
        };
        let begin = session.begin(count);
        assert_eq!(count.event.source, event.event.source, "{count:?}");
        let is_finally_sampled = finally && is_sampled(&event) && !session.is_cut_off;
        let now = self.happened(count.processor);
        let (_, overflows) = self.totals(count);
        let has_foreign = self.foreign.get(count.processor as usize).is_some_and(Foreign::is_there);
        let is_undisturbed = now.disturbed == begin.happened.disturbed && !has_foreign;
        // Counters that reload each other count the last windows alone.
        let is_reloaded = count.recorder == Recorder::Reloaded as u32;
        let is_part = session.takes_turns(&event) || is_reloaded;
        let expected = self.expected(count, &event, &begin.happened, &now).filter(|_| !is_part);
        let is_marked = count.disturbed_register != 0;
        // The driver cannot see that another program uses the counter of the other thread, to which an event leaks.
        let may_leak = self.traits.leaks && self.foreign.iter().any(Foreign::is_there);
        if may_leak {
            // Nothing is known.
        } else if is_undisturbed {
            assert!(!is_marked, "marked, but nothing was written: {count:?}");
            if self.model_counter(count).is_some() && !is_part {
                let ledger = self.ledger_of(count, &begin, is_added, session.would_yield() && finally);
                assert!(ledger.contains(&count.count), "{ledger:?} in the ledger of the model: {count:?}");
                self.stats.by_ledger += 1;
            }
            if let Some(expected) = expected {
                assert_eq!(count.count, expected, "what happened: {count:?} {begin:?} {now:?}");
                self.stats.exact += 1;
            }
        } else if let Some(expected) = expected {
            assert!(count.count == expected || is_marked, "{expected} happened, and it is not marked: {count:?}");
            self.stats.marked += 1;
        }
        let has_overflows = count.event.source == BRANCHES || self.model_counter(count).is_some();
        if is_finally_sampled && has_overflows && !is_marked {
            let accounted = count.samples + count.lost + count.throttled + count.unmet;
            let before_start = self.totals_before_start(count, session.would_yield());
            let least = before_start.map_or(overflows, |(_, overflows)| overflows) - begin.overflows;
            let overflows = least..=overflows - begin.overflows;
            // A counter that was loaded again can overflow a second time before a late interrupt.
            assert!(
                overflows.contains(&accounted) || is_reloaded && accounted < least,
                "{overflows:?} overflows: {count:?} {begin:?}"
            );
            self.stats.accounts += 1;
        }
    }

    /// Returns what a count can be by the ledger of the model; one value, if no hypervisor makes starts execute a loop.
    ///
    /// Under one, the loop of a start ran on the counter while it was not the session's: before the session began on an
    /// added processor, or after it had yielded to the start. The ledgers of these moments are bounds: the session also
    /// counts the loop of a start, or of another session on an added processor, while it runs.
    fn ledger_of(&self, count: &CountRecord, begin: &Begin, is_added: bool, yields: bool) -> RangeInclusive<u64> {
        let (counted, is_guest) = (self.totals(count).0, self.is_guest());
        let added = self.added.iter().filter(|_| is_added).find(|(added, ..)| *added == count.processor);
        let latest = added.map_or(begin.counted, |(_, ledger, _)| self.totals_in(count, ledger).0);
        let is_alone = added.is_none_or(|(.., is_alone)| *is_alone && !self.has_orphans);
        let earliest = if is_guest && !is_alone { begin.counted } else { latest };
        let before_start = self.totals_before_start(count, yields);
        before_start.map_or(counted, |(counted, _)| counted) - latest..=counted - earliest
    }

    /// Returns the events and the overflows of a counter before the start to which its session yields, if that start
    /// may have executed a loop on it.
    fn totals_before_start(&self, count: &CountRecord, yields: bool) -> Option<(u64, u64)> {
        let ledger = self.before_start.get(count.processor as usize).filter(|_| yields && self.is_guest())?;
        Some(self.totals_in(count, ledger))
    }

    /// Returns the events that happened since the begin of a count, if that is known without the model's ledger.
    fn expected(&self, count: &CountRecord, event: &EventRequest, begin: &Happened, now: &Happened) -> Option<u64> {
        let is_plain = has_counter(count) && !is_sampled(event);
        let is_named = self.traits.identity.expected.supported.contains(&event.event.source);
        let is_metric = u8::try_from(count.counter)
            .is_ok_and(|counter| matches!(self.machine.counter(count.processor, counter), CounterId::Metric(_)));
        // The starts of other sessions execute a loop, which only the ledger knows.
        if !is_plain || !is_named || is_metric || self.is_guest() {
            return None;
        }
        let encoding = self.sources.and_then(|sources| sources.get(&event.event.source));
        let times = if self.traits.uniform { 1 } else { encoding.map(|(event, umask)| factor(*event, *umask))? };
        let of = |mode: u32, events: u64| if event.modes & mode == 0 { 0 } else { events };
        Some(times * (of(modes::USER, now.user - begin.user) + of(modes::KERNEL, now.kernel - begin.kernel)))
    }

    /// Returns whether there is a hypervisor, under which starts execute a loop.
    pub(crate) fn is_guest(&self) -> bool {
        let [_, _, features, _] = self.traits.identity.cpuid().cpuid(1, 0);
        features >> 31 == 1
    }

    fn stopped(&mut self, slot: usize, accepted: Option<ReplyHeader>) {
        let Ok(request) = StopRequest::read_from_bytes(&self.input) else { return };
        let counts: Vec<CountRecord> = accepted.map(|header| self.records(&header)).unwrap_or_default();
        let is_cut_off = accepted.is_none_or(|header| header.count < header.total);
        let (of_yielded, counts): (Vec<CountRecord>, Vec<CountRecord>) = counts.into_iter().partition(|count| {
            self.sessions.iter().any(|session| session.number == count.session && !session.yielded.is_empty())
        });
        for count in &of_yielded {
            if let Some(session) = self.sessions.iter_mut().find(|session| session.number == count.session) {
                let known = session.yielded.len();
                session.yielded.retain(|other| other != count);
                let is_known = session.yielded.len() + 1 == known || session.is_cut_off;
                assert!(is_known, "{count:?} of {:?}", session.yielded);
            }
        }
        for count in &counts {
            self.check_count(count, true);
            if let Some(session) = self.sessions.iter_mut().find(|session| session.number == count.session) {
                session.finish(count);
            }
        }
        for count in &counts {
            if let Some(session) = self.sessions.iter_mut().find(|session| session.number == count.session) {
                session.end(count.index);
            }
        }
        if is_cut_off {
            let meant = self.sessions.iter().filter(|session| session.is_meant(request.session, slot));
            let meant: Vec<u64> = meant.map(|session| session.number).collect();
            for number in meant {
                self.look_again(slot, number, accepted.is_some());
            }
        }
        self.sessions.retain(Session::is_kept);
    }

    /// Finds out which events of a session still run, after a stop of which the counts are unknown.
    pub(crate) fn look_again(&mut self, slot: usize, number: u64, lost_counts: bool) {
        let header = self.read(slot, number);
        let counts: Vec<CountRecord> = header.map(|header| self.records(&header)).unwrap_or_default();
        if let Some(session) = self.sessions.iter_mut().find(|session| session.number == number) {
            session.is_cut_off |= lost_counts;
            if !session.yielded.is_empty() {
                session.yielded = counts;
                return;
            }
            for (index, (_, runs)) in (0..).zip(&mut session.events) {
                *runs &= counts.iter().any(|count| count.index == index);
            }
        }
    }

    fn fetched(&mut self, header: &ReplyHeader) {
        let Ok(request) = SamplesRequest::read_from_bytes(&self.input) else { return };
        let records: Vec<SampleRecord> = self.records(header);
        self.stats.records += records.len() as u64;
        let number = request.session;
        let position = self.sessions.iter().position(|session| session.number == number);
        let Some(session) = position.and_then(|position| self.sessions.get_mut(position)) else {
            assert!(self.has_orphans, "records of the unknown session {number}");
            return;
        };
        for record in &records {
            let parsed = record.parse();
            assert!(parsed.is_ok(), "{parsed:?} of {record:?}");
            if let Ok(record) = parsed {
                self.stats.records_of_samples += u64::from(record.kind().is_sample());
                session.fetch(&record);
            }
        }
        if header.detail.first() == Some(&1) {
            assert!(!session.runs(), "the last records of a session that runs: {number}");
            if !session.yielded.is_empty() {
                return; // it remains to be stopped
            }
            if !session.is_cut_off {
                session.check_samples();
            }
            self.sessions.retain(|session| session.number != number);
        }
    }

    fn check_info(&mut self) {
        let Ok((info, _)) = InfoReply::read_from_prefix(&self.output) else { return };
        assert_eq!(info.processors, self.machine.active(), "active processors");
        assert_eq!(info.delivered, self.stats.records_of_samples, "samples delivered");
        if !self.has_orphans {
            let running = self.sessions.iter().filter(|session| session.runs()).count();
            assert_eq!(info.sessions as usize, running, "running sessions");
        }
    }
}
