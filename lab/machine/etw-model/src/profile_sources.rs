//! The HAL's profile sources, and the rules of those that a session counts.

use crate::system_events::{PERF_INFO, THREAD, words};
use bench_protocol::HalScript;
use std::{collections::BTreeMap, fs};

/// Win32 error codes.
const INVALID_PARAMETER: u32 = 87;
const NOT_SUPPORTED: u32 = 50;
const BAD_LENGTH: u32 = 24;
const INSTANCE_NOT_FOUND: u32 = 4_201;
const ALREADY_ENABLED: u32 = 4_206;

/// Classes of TraceQueryInformation and TraceSetInformation.
const STACKS: i32 = 3;
const MASKS: i32 = 4;
const SAMPLED: i32 = 6;
const INTERVAL: i32 = 5;
const LIST: i32 = 7;
const EVENTS: i32 = 8;
const COUNTERS: i32 = 9;
const MAXIMUM: i32 = 22;
const OWNERS: i32 = 25;

/// Classes of SystemPerformanceTraceInformation; the offset of the name in the first, and the size of the second.
const ADD: u32 = 0x15;
const REMOVE: u32 = 0x16;
const NAME: usize = 0x22;
const REMOVE_BYTES: usize = 0x14;

/// Number of the first source that is added.
const FIRST_ADDED: u32 = 0x200;

/// NTSTATUS values: STATUS_INVALID_PARAMETER, STATUS_NOT_FOUND, STATUS_NOT_IMPLEMENTED.
const STATUS_INVALID: u32 = 0xC000_000D;
const STATUS_NOT_FOUND: u32 = 0xC000_0225;
const STATUS_NOT_IMPLEMENTED: u32 = 0xC000_0002;

/// A CLASSIC_EVENT_ID: a GUID, a type, and 7 bytes.
const EVENT_BYTES: usize = 24;

/// The bit of samples of counters in the second mask of a session (PERF_PMC_PROFILE).
const COUNTER_SAMPLES: u32 = 0x400;

/// Maximum number of events that carry counters.
const MAX_EVENTS: usize = 4;

/// The sources of the HAL on an Intel processor, with the name that it has for ProfileTime.
const INTEL: [(u32, &str); 13] = [
    (0x00, "Timer"),
    (0x02, "TotalIssues"),
    (0x06, "BranchInstructions"),
    (0x0A, "CacheMisses"),
    (0x0B, "BranchMispredictions"),
    (0x13, "TotalCycles"),
    (0x19, "UnhaltedCoreCycles"),
    (0x1A, "InstructionRetired"),
    (0x1B, "UnhaltedReferenceCycles"),
    (0x1C, "LLCReference"),
    (0x1D, "LLCMisses"),
    (0x1E, "BranchInstructionRetired"),
    (0x1F, "BranchMispredictsRetired"),
];

/// The sources, and what sessions count.
#[derive(Debug, Default)]
pub struct ProfileSources {
    script: HalScript,
    /// The lists of sessions, by their handles.
    counters: BTreeMap<u64, Vec<u32>>,
    /// Sessions whose switches carry counters.
    on_switches: Vec<u64>,
    /// The sources that are sampled, for all sessions.
    sampled: Vec<u32>,
    /// Intervals that were set.
    intervals: BTreeMap<u32, u32>,
    /// Sessions that have samples, and those whose samples have stacks.
    with_samples: Vec<u64>,
    with_stacks: Vec<u64>,
    /// Sessions whose switches have stacks.
    with_switch_stacks: Vec<u64>,
    asked: u32,
    /// The sources that were added.
    added: Vec<(u32, String)>,
}

impl ProfileSources {
    /// Creates the sources of a script.
    #[must_use]
    pub fn new(script: &HalScript) -> Self {
        let mut sources = Self { script: script.clone(), ..Self::default() };
        // Those that a killed program has left.
        let left = script.added.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        sources.added = (FIRST_ADDED..).zip(left.lines().map(str::to_owned)).collect();
        sources
    }

    /// Adds or removes a source, by a structure of NtSetSystemInformation.
    ///
    /// # Errors
    /// The NTSTATUS, as phnt's structures and descriptions of the classes have it.
    pub fn change(&mut self, given: &[u8]) -> Result<(), u32> {
        let class = word(given, 0).ok_or(STATUS_INVALID)?;
        match class {
            ADD => {
                let version = given.get(4).copied().unwrap_or_default();
                let is_known = version == 2 || version == 3 && self.script.third_version;
                let units =
                    given.get(NAME..).unwrap_or_default().as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
                let name = String::from_utf16_lossy(&units.take_while(|unit| *unit != 0).collect::<Vec<_>>());
                if !is_known || name.is_empty() || self.sources().iter().any(|(_, other)| *other == name) {
                    return Err(STATUS_INVALID);
                }
                let number = self.added.iter().map(|(number, _)| number + 1).max().unwrap_or(FIRST_ADDED);
                self.added.push((number, name));
            }
            REMOVE => {
                let number = word(given, 4).filter(|_| given.len() == REMOVE_BYTES).ok_or(STATUS_INVALID)?;
                let before = self.added.len();
                self.added.retain(|(other, _)| *other != number);
                if self.added.len() == before {
                    return Err(STATUS_NOT_FOUND);
                }
            }
            _ => return Err(STATUS_NOT_IMPLEMENTED),
        }
        if let Some(path) = &self.script.added {
            let names: Vec<&str> = self.added.iter().map(|(_, name)| name.as_str()).collect();
            fs::write(path, names.join("\n")).map_err(|_| STATUS_INVALID)?;
        }
        Ok(())
    }

    fn sources(&self) -> Vec<(u32, String)> {
        let mut sources = self.script.sources.clone();
        if sources.is_empty() {
            sources = INTEL.iter().map(|(number, name)| (*number, (*name).to_owned())).collect();
        }
        sources.extend(self.added.iter().cloned());
        if self.script.grows {
            sources.extend((0..self.asked).map(|number| (0x300 + number, format!("Added{number}"))));
        }
        sources
    }

    /// Returns what TraceQueryInformation writes; `given` is what the caller passed.
    ///
    /// # Errors
    /// As TraceQueryInformation.
    pub fn query(&mut self, class: i32, given: &[u8]) -> Result<Vec<u8>, u32> {
        match class {
            LIST => {
                let list = list(&self.sources());
                self.asked += u32::from(given.len() < list.len());
                Ok(list)
            }
            INTERVAL => {
                let source = word(given, 0).ok_or(BAD_LENGTH)?;
                let is_known = self.sources().iter().any(|(number, _)| *number == source);
                if is_known { Ok(words(&[source, self.interval(source)])) } else { Err(INVALID_PARAMETER) }
            }
            MAXIMUM if self.script.maximum != 0 => Ok(self.script.maximum.to_le_bytes().to_vec()),
            OWNERS if !self.script.owners.is_empty() => {
                let processor = word(given, 0).ok_or(BAD_LENGTH)?;
                let count = u32::try_from(self.script.owners.len()).unwrap_or_default();
                let owners = self.script.owners.as_flattened();
                Ok(words(&[&[processor, count], owners].concat()))
            }
            _ => Err(NOT_SUPPORTED),
        }
    }

    /// Sets what a session counts, or the events that carry it.
    ///
    /// # Errors
    /// As TraceSetInformation.
    pub fn set(&mut self, session: Option<u64>, class: i32, given: &[u8]) -> Result<(), u32> {
        match class {
            // For every session, so the handle is 0.
            INTERVAL => {
                let (Some(source), Some(interval), 8) = (word(given, 0), word(given, 4), given.len()) else {
                    return Err(BAD_LENGTH);
                };
                if session.is_some() || !self.sources().iter().any(|(number, _)| *number == source) {
                    return Err(INVALID_PARAMETER);
                }
                self.set_interval(source, interval);
                return Ok(());
            }
            SAMPLED if session.is_some() => return Err(INVALID_PARAMETER),
            SAMPLED => {
                self.sampled = self.list_of(given)?;
                return Ok(());
            }
            _ => {}
        }
        let session = session.ok_or(INSTANCE_NOT_FOUND)?;
        match class {
            COUNTERS => {
                let list = self.list_of(given)?;
                if self.counters.contains_key(&session) {
                    return Err(ALREADY_ENABLED);
                }
                self.counters.insert(session, list);
                Ok(())
            }
            EVENTS => {
                if given.is_empty()
                    || !given.len().is_multiple_of(EVENT_BYTES)
                    || given.len() / EVENT_BYTES > MAX_EVENTS
                {
                    return Err(INVALID_PARAMETER);
                }
                if given.chunks_exact(EVENT_BYTES).any(is_switch) {
                    self.on_switches.push(session);
                }
                Ok(())
            }
            STACKS => {
                if given.chunks(EVENT_BYTES).any(|id| id.len() != EVENT_BYTES) {
                    return Err(INVALID_PARAMETER);
                }
                // A list replaces the one before.
                for (sessions, has_stacks) in [
                    (&mut self.with_stacks, given.chunks(EVENT_BYTES).any(is_sample)),
                    (&mut self.with_switch_stacks, given.chunks(EVENT_BYTES).any(is_switch)),
                ] {
                    sessions.retain(|other| *other != session);
                    if has_stacks {
                        sessions.push(session);
                    }
                }
                Ok(())
            }
            MASKS => {
                if word(given, 4).unwrap_or_default() & COUNTER_SAMPLES != 0 {
                    self.with_samples.push(session);
                }
                Ok(())
            }
            _ => Err(NOT_SUPPORTED),
        }
    }

    /// Returns a list of sources that a program gives, if it is one.
    fn list_of(&self, given: &[u8]) -> Result<Vec<u32>, u32> {
        let (list, rest) = given.as_chunks::<4>();
        let list: Vec<u32> = list.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let maximum = if self.script.maximum == 0 { 4 } else { self.script.maximum };
        let is_known = |source: &u32| *source != 0 && self.sources().iter().any(|(number, _)| number == source);
        if list.is_empty() || !rest.is_empty() || !list.iter().all(is_known) {
            return Err(INVALID_PARAMETER);
        }
        if list.len() > usize::try_from(maximum).unwrap_or_default() { Err(INVALID_PARAMETER) } else { Ok(list) }
    }

    /// Returns the interval of a source.
    fn interval(&self, source: u32) -> u32 {
        let default = if source == 0 { 10_000 } else { 65_536 };
        self.intervals.get(&source).copied().unwrap_or(default)
    }

    /// Sets the interval of a source, and writes the file of intervals.
    pub fn set_interval(&mut self, source: u32, interval: u32) {
        self.intervals.remove(&source);
        if self.interval(source) != interval {
            self.intervals.insert(source, interval);
        }
        if let Some(path) = &self.script.intervals {
            let lines: Vec<String> = self.intervals.iter().map(|(source, one)| format!("{source} {one}")).collect();
            // The test finds what is missing.
            let _ = fs::write(path, lines.join("\n"));
        }
    }

    /// Returns the sources with their intervals of which a session has samples, and whether those have stacks.
    #[must_use]
    pub fn of_samples(&self, session: u64) -> Option<(Vec<(u32, u32)>, bool)> {
        let sampled = || self.sampled.iter().map(|source| (*source, self.interval(*source))).collect();
        self.with_samples.contains(&session).then(|| (sampled(), self.with_stacks.contains(&session)))
    }

    /// Returns whether a session's switches have stacks.
    #[must_use]
    pub fn walks_switches(&self, session: u64) -> bool {
        self.with_switch_stacks.contains(&session)
    }

    /// Returns the sources that a session's switches carry.
    #[must_use]
    pub fn of_switches(&self, session: u64) -> Option<&[u32]> {
        self.counters.get(&session).filter(|_| self.on_switches.contains(&session)).map(Vec::as_slice)
    }

    /// Forgets a session that was stopped.
    pub fn forget(&mut self, session: u64) {
        self.counters.remove(&session);
        for sessions in
            [&mut self.on_switches, &mut self.with_samples, &mut self.with_stacks, &mut self.with_switch_stacks]
        {
            sessions.retain(|other| *other != session);
        }
    }
}

/// Returns whether the name of an event is that of a context switch.
fn is_switch(id: &[u8]) -> bool {
    id.get(..16) == Some(&THREAD[..]) && id.get(16) == Some(&36)
}

/// Returns whether the name of an event is that of a sample.
fn is_sample(id: &[u8]) -> bool {
    id.get(..16) == Some(&PERF_INFO[..]) && id.get(16) == Some(&47)
}

/// Returns a list of PROFILE_SOURCE_INFO.
fn list(sources: &[(u32, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, (number, name)) in sources.iter().enumerate() {
        let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let length = (24 + name.len()).next_multiple_of(8);
        let next = if place + 1 == sources.len() { 0 } else { u32::try_from(length).unwrap_or_default() };
        let end = bytes.len() + length;
        let (least, most) = if *number == 0 { (1_221, 1_000_000) } else { (4_096, 0x7FFF_FFFF) };
        bytes.extend(words(&[next, *number, least, most, 0, 0]));
        bytes.extend(name);
        bytes.resize(end, 0);
    }
    bytes
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_sets_its_counters_once_and_no_more_than_there_are() {
        let mut sources = ProfileSources::new(&HalScript::default());
        let switches = [&THREAD[..], &[36, 0, 0, 0, 0, 0, 0, 0]].concat();
        for wrong in [&[][..], &[0], &[2, 99], &[2, 6, 10, 11, 19]] {
            assert_eq!(sources.set(Some(1), COUNTERS, &words(wrong)), Err(INVALID_PARAMETER), "{wrong:?}");
        }
        assert_eq!(sources.set(None, COUNTERS, &words(&[2])), Err(INSTANCE_NOT_FOUND));
        assert_eq!(sources.set(Some(1), COUNTERS, &words(&[2, 0x13])), Ok(()));
        assert_eq!(sources.set(Some(1), COUNTERS, &words(&[2])), Err(ALREADY_ENABLED));
        assert_eq!(sources.of_switches(1), None);
        assert_eq!(sources.set(Some(1), EVENTS, &switches[..20]), Err(INVALID_PARAMETER));
        assert_eq!(sources.set(Some(1), EVENTS, &switches), Ok(()));
        assert_eq!(sources.of_switches(1), Some(&[2, 0x13][..]));
        sources.forget(1);
        assert_eq!(sources.of_switches(1), None);
    }

    #[test]
    fn an_added_source_is_in_the_list_until_it_is_removed() {
        let mut sources = ProfileSources::new(&HalScript { third_version: false, ..HalScript::default() });
        let add = |version: u32, name: &str| {
            let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
            [words(&[ADD, version, 0xC0, 0, !0, !0, !0, 65_536]), vec![0, 0], name].concat()
        };
        assert_eq!(sources.change(&add(3, "A")), Err(STATUS_INVALID));
        assert_eq!(sources.change(&add(2, "A")), Ok(()));
        assert_eq!(sources.change(&add(2, "A")), Err(STATUS_INVALID));
        assert_eq!(sources.set(Some(1), COUNTERS, &words(&[FIRST_ADDED])), Ok(()));
        let removal = words(&[REMOVE, FIRST_ADDED, !0, !0, !0]);
        assert_eq!((sources.change(&removal), sources.change(&removal)), (Ok(()), Err(STATUS_NOT_FOUND)));
        assert_eq!(sources.set(Some(2), COUNTERS, &words(&[FIRST_ADDED])), Err(INVALID_PARAMETER));
        assert_eq!(sources.change(&words(&[1])), Err(STATUS_NOT_IMPLEMENTED));
    }

    #[test]
    fn a_list_that_grows_is_longer_at_the_next_query() {
        let mut sources = ProfileSources::new(&HalScript { grows: true, maximum: 0, ..HalScript::default() });
        let first = sources.query(LIST, &[]).unwrap();
        let second = sources.query(LIST, &vec![0; first.len()]).unwrap();
        assert!(second.len() > first.len());
        assert_eq!(sources.query(MAXIMUM, &[]), Err(NOT_SUPPORTED));
        assert_eq!(sources.query(INTERVAL, &words(&[2, 0])), Ok(words(&[2, 65_536])));
        assert_eq!(sources.query(INTERVAL, &words(&[99, 0])), Err(INVALID_PARAMETER));
    }
}
