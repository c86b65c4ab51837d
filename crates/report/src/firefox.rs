//! Exports profiles for the Firefox Profiler (<https://profiler.firefox.com>).
//!
//! A process has a track for each thread, and one for each thread and source if several sources were sampled. Samples
//! are stacks of the callers, a symbol and the functions inlined into it, in the category user or kernel, weighed by
//! the events that they stand for, as in a report. A stack that is not complete begins with a frame that says so. Each
//! processor has a track with the rates of events as lines, and with losses, throttling and sleep as markers.
//!
//! Browsers cannot show as many samples as a recording can have, so a profile has a limited number: every so many of
//! each processor and source ([`Thinned`]). Rates and losses are those of all samples.

mod cpu_name;
mod marker;
mod thinning;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo, MarkerTiming,
    ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, SymbolTable, ThreadHandle, Timestamp,
};
use protocol::{ALL_EVENTS, AnySample, OffCpuRecord, PauseKind, Record, StopKind, UNKNOWN};
use recording::{Module, StackId};
use rustc_hash::FxHashMap;

use self::cpu_name::WithCpuName;
use self::marker::{Disconnected, Lost, OffCpu, Rate, Silenced, Slept, Throttled};
pub use self::thinning::Thinned;
use self::thinning::Thinning;
use crate::call_stacks::StackNote;
use crate::filter::Filter;
use crate::input::Input;
use crate::locations::SampleLocation;
use crate::modules::{ModuleId, file_name};
use crate::process_keys::ProcessKey;
use crate::processes::UNKNOWN_NAME;
use crate::proportion::real;
use crate::read::{Contents, ExportError};
use crate::sample_counts::Total;
use crate::sampled_sources::SampledSource;
use crate::slice::Slice;
use crate::symbol_index::{Name, SymbolIndex};
use crate::time_order::for_each_in_order;
use crate::wait_reason::why_off_cpu;

/// A process ID that Windows never uses: process IDs are multiples of four.
const NO_PROCESS: u32 = u32::MAX;

/// Duration of the intervals of a rate in nanoseconds, unless the recording is long.
const RATE_INTERVAL: u64 = 10_000_000;

/// Maximum number of rates. Longer recordings have longer intervals.
const MAX_RATES: u64 = 500_000;

/// Nanoseconds per second.
const NANOSECONDS: f64 = 1e9;

/// Nanoseconds between two samples if the recording does not determine it.
const DEFAULT_INTERVAL: u64 = 1_000_000;

/// Writes the samples that `filter` selects as a profile: at most `max`, and at least one of each processor and source.
/// `input` is the recording from which `contents` was read. The whole profile is in memory, 50 bytes for each sample
/// and 400 for each place in a thread.
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn firefox(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    max: u64,
    input: &mut dyn Input,
    out: &mut dyn Write,
) -> Result<Thinned, ExportError> {
    let locations = contents.sample_counts.locations();
    let selected = locations.filter(|(location, _)| filter.selects_location(location, symbol_index));
    let selected = selected.map(|(_, weight)| weight.samples).sum();
    let thinning = Thinning::new(selected, max, runs(contents, filter));
    let mut builder = Builder::new(contents, symbol_index, filter, thinning);
    for_each_in_order(contents, symbol_index, filter, input, |record, stack| {
        builder.add(record, stack);
        Ok(())
    })?;
    let (profile, thinned) = builder.finish(selected);
    let out = WithCpuName::new(out, &contents.session.processor);
    serde_json::to_writer(out, &profile).map_err(io::Error::from)?;
    Ok(thinned)
}

/// Returns the maximum number of pairs of a selected processor and source.
fn runs(contents: &Contents, filter: &Filter) -> u64 {
    let processors = contents.session.processors.iter().filter(|one| filter.slice.selects_processor(**one));
    (processors.count() * totals(contents, filter).count()) as u64
}

/// Returns the selected sources with their totals.
fn totals(contents: &Contents, filter: &Filter) -> impl Iterator<Item = (SampledSource, Total)> {
    contents.sample_counts.totals().filter(|(source, _)| filter.selects_source(*source))
}

/// A track: the samples of one source in one thread.
struct Track {
    handle: ThreadHandle,
    /// Time of the previous sample in nanoseconds.
    last: u64,
}

/// Events of a source on a processor in the last interval that has any.
#[derive(Default)]
struct Interval {
    /// Number of the interval from the start.
    number: u64,
    events: u64,
}

struct Builder<'a> {
    profile: Profile,
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    user: CategoryHandle,
    kernel: CategoryHandle,
    /// Average time between two samples of a processor in the profile, in nanoseconds.
    interval: u64,
    libraries: FxHashMap<ModuleId, LibraryHandle>,
    symbols: FxHashMap<ModuleId, Vec<fxprof_processed_profile::Symbol>>,
    processes: FxHashMap<ProcessKey, ProcessHandle>,
    /// Pseudo-process that contains the tracks of the processors.
    sampling: Option<ProcessHandle>,
    tracks: FxHashMap<(ProcessKey, u32, SampledSource), Track>,
    /// The stacks of the addresses of a track with the same callers, in user mode and in kernel mode.
    stacks: FxHashMap<(ThreadHandle, bool, u64, StackId), StackHandle>,
    /// The stacks of callers in a track, by whether the innermost one is a call.
    callers: FxHashMap<(ThreadHandle, StackId, bool), StackHandle>,
    processors: FxHashMap<u32, ThreadHandle>,
    thinning: Thinning,
    /// Number of samples in the profile.
    written: u64,
    /// Duration of the intervals of a rate in nanoseconds.
    rate_interval: u64,
    rates: FxHashMap<(u32, SampledSource), Interval>,
}

impl<'a> Builder<'a> {
    fn new(contents: &'a Contents, symbol_index: &'a SymbolIndex, filter: &Filter, thinning: Thinning) -> Self {
        // Samples have their times since the earliest record, also those of a slice.
        let earliest = Duration::from_nanos(contents.selected_since(&Slice::default()));
        let interval = interval(contents, filter).saturating_mul(thinning.step());
        let mut profile = Profile::new(
            &product(&contents.session.command),
            ReferenceTimestamp::from_duration_since_unix_epoch(earliest),
            SamplingInterval::from_nanos(interval),
        );
        profile.set_os_name("Windows");
        // The profile contains all names, so the Firefox Profiler must not query a symbol server.
        profile.set_symbolicated(true);
        let mut symbols: FxHashMap<ModuleId, Vec<fxprof_processed_profile::Symbol>> = FxHashMap::default();
        for symbol in symbol_index.symbols() {
            let (address, size, name) = (symbol.address, symbol.size, symbol.text().into_owned());
            let known = fxprof_processed_profile::Symbol { address, size, name };
            symbols.entry(symbol.module).or_default().push(known);
        }
        Self {
            user: profile.add_category("User", CategoryColor::Blue),
            kernel: profile.add_category("Kernel", CategoryColor::Orange),
            profile,
            contents,
            symbol_index,
            interval,
            libraries: FxHashMap::default(),
            symbols,
            processes: FxHashMap::default(),
            sampling: None,
            tracks: FxHashMap::default(),
            stacks: FxHashMap::default(),
            callers: FxHashMap::default(),
            processors: FxHashMap::default(),
            thinning,
            written: 0,
            rate_interval: rate_interval(contents, filter),
            rates: FxHashMap::default(),
        }
    }

    fn add(&mut self, record: &Record, stack: StackId) {
        let time = self.contents.nanoseconds(record.time());
        if let Record::OffCpu(off) = record {
            self.off_cpu_marker(off, time);
        }
        match record.sample() {
            Some(sample) => self.sample(&sample, stack, time),
            None => self.loss_marker(record, time),
        }
    }

    fn sample(&mut self, sample: &AnySample, stack: StackId, time: u64) {
        let source = self.contents.sample_counts.source_of(sample);
        self.rate(sample, source, time);
        if let Some(sample) = self.thinning.add(sample, stack, source) {
            self.add_sample(&sample, stack, source, time);
        }
    }

    /// Adds what is left at the end, and returns the profile.
    fn finish(mut self, selected: u64) -> (Profile, Thinned) {
        let thinning = std::mem::replace(&mut self.thinning, Thinning::new(0, 0, 0));
        let step = thinning.step();
        for (sample, stack) in thinning.finish() {
            let source = self.contents.sample_counts.source_of(&sample);
            self.add_sample(&sample, stack, source, self.contents.nanoseconds(sample.time));
        }
        self.end_rates();
        let Self { profile, written, .. } = self;
        (profile, Thinned { selected, written, step })
    }

    fn add_sample(&mut self, sample: &AnySample, stack: StackId, source: SampledSource, time: u64) {
        let interval = self.interval;
        let location = SampleLocation { stack, ..self.contents.processes.location(sample) };
        let track = self.track(location.process, sample.thread, source);
        // At most the time since the previous sample, because a thread does not run on two processors at once.
        let delta = CpuDelta::from_nanos(interval.min(time.saturating_sub(track.last)));
        track.last = time;
        let thread = track.handle;
        let key = (thread, location.kernel, location.ip, stack);
        let known = self.stacks.get(&key).copied();
        let stack = known.unwrap_or_else(|| {
            let stack = self.stack(thread, &location);
            self.stacks.insert(key, stack);
            stack
        });
        let time = Timestamp::from_nanos_since_reference(time);
        // The profiler multiplies by a weight of type "samples", the default; the largest interval is i32::MAX.
        let weight = i32::try_from(sample.events).unwrap_or(i32::MAX);
        self.profile.add_sample(thread, time, Some(stack), delta, weight);
        self.written += 1;
    }

    /// Returns the stack of a location: its callers, its symbol, and the functions inlined there.
    fn stack(&mut self, thread: ThreadHandle, location: &SampleLocation) -> StackHandle {
        let callers = self.callers(thread, location);
        self.functions(thread, callers, location, false)
    }

    /// Returns the stack of the callers of a location; `None` if it has none.
    fn callers(&mut self, thread: ThreadHandle, location: &SampleLocation) -> Option<StackHandle> {
        let mut new = Vec::new();
        let mut at = *location;
        let mut outer = loop {
            let Some(caller) = self.contents.caller(&at) else { break self.note(thread, at.stack) };
            let key = (thread, at.stack, caller.is_call());
            if let Some(known) = self.callers.get(&key) {
                break Some(*known);
            }
            new.push((key, caller));
            at = caller.location;
        };
        for (key, caller) in new.into_iter().rev() {
            let callers = self.functions(thread, outer, &caller.location, caller.is_call());
            self.callers.insert(key, callers);
            outer = Some(callers);
        }
        outer
    }

    /// Returns a stack that says why the outer callers are missing; `None` if none are.
    fn note(&mut self, thread: ThreadHandle, end: StackId) -> Option<StackHandle> {
        let text = self.profile.intern_string(&StackNote::of(end)?.text());
        let (frame, flags) = (Frame::Label(text), FrameFlags::empty());
        let frame = self.profile.intern_frame(thread, FrameInfo { frame, category_pair: self.user.into(), flags });
        Some(self.profile.intern_stack(thread, None, frame))
    }

    /// Adds the functions at a location, or of a call, to the stack of its callers.
    fn functions(
        &mut self,
        thread: ThreadHandle,
        callers: Option<StackHandle>,
        location: &SampleLocation,
        is_call: bool,
    ) -> StackHandle {
        let info = self.frame(location, is_call);
        let frame = self.profile.intern_frame(thread, info.clone());
        let mut stack = self.profile.intern_stack(thread, callers, frame);
        for name in self.symbol_index.inlined(location) {
            let name = self.profile.intern_string(name);
            let inlined = FrameInfo { frame: Frame::Label(name), ..info.clone() };
            let inlined = self.profile.intern_frame(thread, inlined);
            stack = self.profile.intern_stack(thread, Some(stack), inlined);
        }
        stack
    }

    /// Adds the events of a sample to the rate of its processor.
    fn rate(&mut self, sample: &AnySample, source: SampledSource, time: u64) {
        let key = (sample.processor, source);
        let number = time / self.rate_interval;
        let current = self.rates.entry(key).or_default();
        if current.number == number {
            current.events = current.events.saturating_add(sample.events);
            return;
        }
        let ended = std::mem::replace(current, Interval { number, events: sample.events });
        self.rate_marker(key, &ended);
    }

    fn end_rates(&mut self) {
        let last: BTreeMap<_, Interval> = std::mem::take(&mut self.rates).into_iter().collect();
        for (key, interval) in last {
            self.rate_marker(key, &interval);
        }
    }

    fn rate_marker(&mut self, (processor, source): (u32, SampledSource), Interval { number, events }: &Interval) {
        if *events == 0 {
            return;
        }
        let track = self.processor(processor);
        let source = self.profile.intern_string(&self.contents.source_name(source));
        let [begin, end] = [*number, number + 1].map(|number| number.saturating_mul(self.rate_interval));
        let [begin, end] = [begin, end].map(Timestamp::from_nanos_since_reference);
        let per_second = real(*events) * NANOSECONDS / real(self.rate_interval);
        self.profile.add_marker(track, MarkerTiming::Interval(begin, end), Rate { source, per_second });
    }

    /// Returns the frame of a location, or of a call: its address is before the return address.
    fn frame(&mut self, location: &SampleLocation, is_call: bool) -> FrameInfo {
        let found = self.contents.processes.module_at(location.process, location.kernel, location.ip);
        let inside = found.and_then(|(module, offset)| Some((self.library(module)?, u32::try_from(offset).ok()?)));
        let frame = match inside {
            Some((library, offset)) if is_call => Frame::RelativeAddressFromAdjustedReturnAddress(library, offset),
            Some((library, offset)) => Frame::RelativeAddressFromInstructionPointer(library, offset),
            None => match self.symbol_index.owner_and_name(location).1 {
                name @ (Name::Jit(_) | Name::Unmapped(_)) => {
                    Frame::Label(self.profile.intern_string(&self.symbol_index.name_text(name)))
                }
                _ if is_call => Frame::AdjustedReturnAddress(location.ip),
                _ => Frame::InstructionPointer(location.ip),
            },
        };
        let category = if location.kernel { self.kernel } else { self.user };
        FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
    }

    fn library(&mut self, id: ModuleId) -> Option<LibraryHandle> {
        if let Some(library) = self.libraries.get(&id) {
            return Some(*library);
        }
        let mut library = library_info(self.symbol_index.modules().get(id)?);
        library.symbol_table = self.symbols.remove(&id).map(|symbols| Arc::new(SymbolTable::new(symbols)));
        let library = self.profile.add_lib(library);
        self.libraries.insert(id, library);
        Some(library)
    }

    fn track(&mut self, process: ProcessKey, thread: u32, source: SampledSource) -> &mut Track {
        let Self { tracks, processes, profile, contents, .. } = self;
        tracks.entry((process, thread, source)).or_insert_with(|| {
            let start = Timestamp::from_nanos_since_reference(0);
            let name = contents.processes.name_or_unknown(process);
            let owner = *processes.entry(process).or_insert_with(|| profile.add_process(name, process.id, start));
            let handle = profile.add_thread(owner, thread, start, false);
            let mut name = match thread {
                UNKNOWN => format!("Thread {UNKNOWN_NAME}"),
                thread => format!("Thread {thread}"),
            };
            if contents.sample_counts.totals().count() > 1 {
                // Writing to a `String` cannot fail.
                let _ = write!(name, ": {}", contents.source_name(source));
            }
            profile.set_thread_name(handle, &name);
            Track { handle, last: 0 }
        })
    }

    /// Returns the track of a processor, in the pseudo-process for all processors.
    fn processor(&mut self, processor: u32) -> ThreadHandle {
        let start = Timestamp::from_nanos_since_reference(0);
        let owner = *self.sampling.get_or_insert_with(|| self.profile.add_process("Sampling", NO_PROCESS, start));
        *self.processors.entry(processor).or_insert_with(|| {
            let handle = self.profile.add_thread(owner, processor, start, false);
            self.profile.set_thread_name(handle, &format!("CPU {processor}"));
            handle
        })
    }

    /// Adds the time in which a thread did not run to its track.
    fn off_cpu_marker(&mut self, record: &OffCpuRecord, nanoseconds: u64) {
        let Some(sample) = Record::OffCpu(*record).sample() else { return };
        let process = self.contents.processes.location(&sample).process;
        let source = self.contents.sample_counts.source_of(&sample);
        let track = self.track(process, record.thread, source).handle;
        let waker = match record.waker {
            0 => String::new(),
            waker => format!("thread {waker}"),
        };
        let off = OffCpu {
            reason: self.profile.intern_string(&why_off_cpu(record)),
            waker: self.profile.intern_string(&waker),
        };
        let begin = nanoseconds.saturating_sub(record.duration);
        let [begin, end] = [begin, nanoseconds].map(Timestamp::from_nanos_since_reference);
        self.profile.add_marker(track, MarkerTiming::Interval(begin, end), off);
    }

    fn loss_marker(&mut self, record: &Record, nanoseconds: u64) {
        let track = self.processor(record.processor());
        let source = match record.event() {
            ALL_EVENTS => self.profile.intern_string("all sources"),
            source => {
                let source = self.contents.sample_counts.source_on(source, record.processor());
                self.profile.intern_string(&self.contents.source_name(source))
            }
        };
        let time = Timestamp::from_nanos_since_reference(nanoseconds);
        match record {
            Record::Sample(_)
            | Record::Precise(_)
            | Record::Branch(_)
            | Record::LastBranch(_)
            | Record::Access(_)
            | Record::OffCpu(_) => {}
            Record::Lost(lost) => {
                let lost = Lost { source, samples: real(lost.count) };
                self.profile.add_marker(track, MarkerTiming::Instant(time), lost);
            }
            Record::Stop(stop) => match stop.kind {
                StopKind::Throttled => {
                    self.profile.add_marker(track, MarkerTiming::IntervalStart(time), Throttled { source });
                }
                StopKind::Silenced => {
                    self.profile.add_marker(track, MarkerTiming::Instant(time), Silenced { source });
                }
                StopKind::Disconnected => {
                    self.profile.add_marker(track, MarkerTiming::IntervalStart(time), Disconnected { source });
                }
            },
            Record::Pause(pause) => match pause.kind {
                PauseKind::Resumed => {
                    self.profile.add_marker(track, MarkerTiming::IntervalEnd(time), Throttled { source });
                }
                PauseKind::Reconnected => {
                    self.profile.add_marker(track, MarkerTiming::IntervalEnd(time), Disconnected { source });
                }
                PauseKind::Slept => {
                    let slept = self.contents.duration(pause.duration);
                    let begin = Timestamp::from_nanos_since_reference(nanoseconds.saturating_sub(slept));
                    self.profile.add_marker(track, MarkerTiming::Interval(begin, time), Slept { source });
                }
            },
        }
    }
}

/// Returns the program of the command, or a placeholder.
fn product(command: &[String]) -> String {
    command.first().map_or("All processes", |program| file_name(program)).to_owned()
}

/// Returns the duration of the intervals of a rate in nanoseconds.
fn rate_interval(contents: &Contents, filter: &Filter) -> u64 {
    let latest = contents.sample_counts.latest().map_or(0, |latest| contents.nanoseconds(latest));
    let within = |time| contents.nanoseconds(time).min(latest);
    let duration =
        filter.slice.time.as_ref().map_or(latest, |time| within(time.end).saturating_sub(within(time.start)));
    let least = duration.saturating_mul(runs(contents, filter)).div_ceil(MAX_RATES);
    least.next_multiple_of(RATE_INTERVAL).max(RATE_INTERVAL)
}

/// Returns the average time between two samples of a processor in nanoseconds: in the whole recording, because a slice
/// of a process has fewer samples than were taken.
fn interval(contents: &Contents, filter: &Filter) -> u64 {
    let Some(summary) = &contents.summary else { return DEFAULT_INTERVAL };
    let samples: u64 = totals(contents, filter).map(|(_, total)| total.weight.samples).sum();
    let processors = contents.session.processors.len() as u64;
    let nanoseconds = summary.sampled_time().saturating_mul(100).saturating_mul(processors);
    nanoseconds.checked_div(samples).filter(|interval| *interval > 0).unwrap_or(DEFAULT_INTERVAL)
}

fn library_info(module: &Module) -> LibraryInfo {
    let debug = module.debug.as_ref();
    let debug_path = debug.map_or(&module.path, |debug| &debug.name);
    LibraryInfo {
        name: file_name(&module.path).to_owned(),
        debug_name: file_name(debug_path).to_owned(),
        path: module.path.clone(),
        debug_path: debug_path.clone(),
        debug_id: debug.and_then(|debug| DebugId::from_breakpad(&debug.id).ok()).unwrap_or_default(),
        code_id: Some(format!("{:08X}{:x}", module.timestamp, module.image_size)),
        arch: Some("x86_64".to_owned()),
        symbol_table: None,
    }
}
