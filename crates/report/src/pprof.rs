//! Profiles for pprof (<https://github.com/google/pprof>): a compressed message of Protocol Buffers.
//!
//! The sample types are the number of samples and the events of each source; the default is the first event of the
//! recording. A sample is an address and its callers, with labels for its process, which `go tool pprof -tagroot
//! process` shows as frames. The address of a caller is the one before its return address. A stack that is not complete
//! ends with a function that says so. The file of a function is its module.

mod message;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use protocol::UNKNOWN;
use recording::RecordedSession;
use rustc_hash::FxHashMap;

use self::message::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::call_stacks::{CallStacks, Frame, StackNote};
use crate::filter::Filter;
use crate::locations::SampleLocation;
use crate::modules::ModuleId;
use crate::processes::UNKNOWN_NAME;
use crate::read::{Contents, ExportError};
use crate::sample_counts::{LossStats, Total};
use crate::sampled_sources::SampledSource;
use crate::sums::SampleWeight;
use crate::symbol_index::{Name, SymbolIndex};

/// Number of samples that are encoded at a time.
const PART: usize = 10_000;

/// Writes the samples that `filter` selects, which `contents` has counted.
///
/// # Errors
/// If the output cannot be written.
pub fn pprof(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    // Fast, as Go's own profiles: the exports of large recordings take most of their time here.
    let mut compressed = GzEncoder::new(out, Compression::fast());
    let mut builder = Builder::new(contents, symbol_index, filter);
    let mut stacks = CallStacks::new(contents, symbol_index);
    // The order in the table of locations differs from run to run.
    let locations = contents.sample_counts.sorted_locations(|location| filter.selects_location(location, symbol_index));
    for (location, weight) in locations {
        builder.add(&location, stacks.frames(&location), weight);
        if builder.profile.sample.len() == PART {
            compressed.write_all(&builder.take_part().encode_to_vec())?;
        }
    }
    compressed.write_all(&builder.take_part().encode_to_vec())?;
    compressed.finish()?.flush()?;
    Ok(())
}

struct Builder<'a> {
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    /// What was not written yet. Encoded messages in a row are one message, whose lists are those of all of them.
    profile: Profile,
    /// Number of texts so far.
    texts: i64,
    /// Texts that occur more than once.
    strings: FxHashMap<String, i64>,
    /// Number of sample types.
    sample_types: usize,
    /// The place of each source among the values of a sample.
    sources: FxHashMap<SampledSource, usize>,
    /// Mappings by module; that of code in no module has none.
    mappings: FxHashMap<Option<ModuleId>, u64>,
    /// Number of functions so far.
    function_count: u64,
    /// Functions that can have more than one address.
    functions: FxHashMap<(u64, Name), u64>,
    /// Number of locations so far.
    location_count: u32,
    /// Locations by module and offset, of which there can be as many as samples. Their functions follow from both.
    in_modules: FxHashMap<(ModuleId, u32), u32>,
    /// Locations of callers by module and the offset before the return address. Without a symbol, their functions are
    /// named after the return address.
    calls: FxHashMap<(ModuleId, u32), u32>,
    /// Other locations by address and function.
    others: FxHashMap<(u64, Name), u32>,
    /// Locations of what a stack has instead of its outer callers.
    notes: FxHashMap<StackNote, u64>,
}

impl<'a> Builder<'a> {
    fn new(contents: &'a Contents, symbol_index: &'a SymbolIndex, filter: &Filter) -> Self {
        let mut builder = Self {
            contents,
            symbol_index,
            profile: Profile::default(),
            texts: 0,
            strings: FxHashMap::default(),
            sample_types: 0,
            sources: FxHashMap::default(),
            mappings: FxHashMap::default(),
            function_count: 0,
            functions: FxHashMap::default(),
            location_count: 0,
            in_modules: FxHashMap::default(),
            calls: FxHashMap::default(),
            others: FxHashMap::default(),
            notes: FxHashMap::default(),
        };
        builder.text("");
        let unit = builder.text("count");
        let samples = ValueType { kind: builder.text("samples"), unit };
        builder.profile.sample_type.push(samples);
        for (source, total) in sources(contents) {
            if !filter.selects_source(source) {
                continue;
            }
            let kind = ValueType { kind: builder.text(&contents.source_name(source)), unit };
            builder.sources.insert(source, builder.profile.sample_type.len());
            builder.profile.sample_type.push(kind);
            if builder.profile.period_type.is_none() || is_default(source, contents) {
                builder.profile.period_type = Some(kind);
                builder.profile.default_sample_type = kind.kind;
                builder.profile.period = signed(total.weight.events / total.weight.samples.max(1));
            }
        }
        let Range { start, end } = contents.selected_time(&filter.slice);
        builder.profile.time_nanos = signed(contents.selected_since(&filter.slice));
        builder.profile.duration_nanos = signed(end.saturating_sub(start));
        for comment in comments(contents, filter) {
            let comment = builder.text(&comment);
            builder.profile.comment.push(comment);
        }
        builder.sample_types = builder.profile.sample_type.len();
        builder
    }

    /// Returns what was added since the last call.
    fn take_part(&mut self) -> Profile {
        std::mem::take(&mut self.profile)
    }

    /// Returns the index of a text.
    fn text(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.new_text(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    /// Returns the index of a text that occurs once.
    fn new_text(&mut self, text: String) -> i64 {
        self.profile.string_table.push(text);
        self.texts += 1;
        self.texts - 1
    }

    /// Adds samples of a location with these frames, the innermost first.
    fn add(&mut self, location: &SampleLocation, frames: &[Frame], weight: SampleWeight) {
        let mut value = vec![0; self.sample_types];
        let event = self.sources.get(&location.sampled_source()).and_then(|place| value.get_mut(*place));
        if let Some(event) = event {
            *event = signed(weight.events);
        }
        if let Some(samples) = value.first_mut() {
            *samples = signed(weight.samples);
        }
        let addresses = frames.chunk_by(|inner, _| inner.function.is_inlined());
        let location_id = addresses.filter_map(|frames| self.location(frames)).collect();
        let label = self.labels(location);
        self.profile.sample.push(Sample { location_id, value, label });
    }

    fn labels(&mut self, location: &SampleLocation) -> Vec<Label> {
        let name = self.contents.processes.name_or_unknown(location.process).to_owned();
        let mode = if location.kernel { "kernel" } else { "user" };
        let mut labels: Vec<Label> = [("process", name.as_str()), ("mode", mode)]
            .map(|(key, text)| Label { key: self.text(key), str: self.text(text), num: 0 })
            .into();
        if location.process.id != UNKNOWN {
            labels.push(Label { key: self.text("pid"), str: 0, num: location.process.id.into() });
        }
        labels
    }

    /// Returns the number of the location of a note: at no address, with a function that has its text.
    fn note(&mut self, note: StackNote) -> u64 {
        if let Some(id) = self.notes.get(&note) {
            return *id;
        }
        let id = self.new_location();
        let (mapping_id, filename) = self.unknown_mapping();
        let function_id = self.new_function(note.text().into_owned(), filename);
        self.profile.location.push(Location { id, mapping_id, address: 0, line: vec![Line { function_id }] });
        self.notes.insert(note, id);
        id
    }

    /// Returns the number of a new location.
    fn new_location(&mut self) -> u64 {
        // More locations than this do not fit into memory.
        self.location_count = self.location_count.saturating_add(1);
        self.location_count.into()
    }

    /// Returns the number of the location of these frames: the functions of an address, the innermost first. Locations
    /// of different processes are the same if their functions are.
    fn location(&mut self, frames: &[Frame]) -> Option<u64> {
        let Frame { function, address, location } = frames.last()?;
        if let Some(note) = function.note() {
            return Some(self.note(note));
        }
        let (_, name) = function.code()?;
        let found = self.contents.processes.module_at(location.process, location.kernel, location.ip);
        let new = self.location_count.saturating_add(1);
        let in_module = found.and_then(|(module, offset)| Some((module, u32::try_from(offset).ok()?)));
        let number = match in_module {
            Some(place) if *address == location.ip => *self.in_modules.entry(place).or_insert(new),
            Some(place) => *self.calls.entry(place).or_insert(new),
            None => *self.others.entry((location.ip, name)).or_insert(new),
        };
        if number <= self.location_count {
            return Some(number.into());
        }
        let id = self.new_location();
        let (mapping, address) = match found {
            Some((module, offset)) => {
                let (mapping, start) = self.mapping(module);
                (mapping, start.saturating_add(offset))
            }
            None => (self.unknown_mapping(), location.ip),
        };
        let (mapping_id, _) = mapping;
        let names = frames.iter().filter_map(|frame| frame.function.code());
        let line = names.map(|(_, name)| Line { function_id: self.function(mapping, name) }).collect();
        self.profile.location.push(Location { id, mapping_id, address, line });
        Some(id)
    }

    /// Returns the number of a function of a new location in a mapping of this number and file name.
    fn function(&mut self, (mapping_id, filename): (u64, i64), name: Name) -> u64 {
        if let Some(id) = self.functions.get(&(mapping_id, name)) {
            return *id;
        }
        let id = self.new_function(self.symbol_index.function_text(name).into_owned(), filename);
        // No other location has a function that is named after this address.
        if !matches!(name, Name::Offset(..) | Name::Address(_)) {
            self.functions.insert((mapping_id, name), id);
        }
        id
    }

    /// Returns the number of a new function with a name that no other of the file has.
    fn new_function(&mut self, name: String, filename: i64) -> u64 {
        self.function_count += 1;
        let (id, name) = (self.function_count, self.new_text(name));
        self.profile.function.push(Function { id, name, filename });
        id
    }

    /// Returns the number and file name of a module's mapping, and its first address.
    fn mapping(&mut self, id: ModuleId) -> ((u64, i64), u64) {
        let module = self.symbol_index.modules().get(id);
        let start = module.map_or(0, |module| module.base);
        let build = module.and_then(|module| module.debug.as_ref()).map_or("", |debug| debug.id.as_str());
        let path = module.map_or("", |module| module.path.as_str());
        let limit = start.saturating_add(module.map_or(0, |module| module.size));
        (self.mapping_of(Some(id), start..limit, [path, build]), start)
    }

    /// Returns the number and file name of the mapping of code that is in no module. Programs that group by mapping
    /// have no name for locations without one. pprof searches no symbols for names in brackets.
    fn unknown_mapping(&mut self) -> (u64, i64) {
        self.mapping_of(None, 0..u64::MAX, [UNKNOWN_NAME, ""])
    }

    fn mapping_of(&mut self, id: Option<ModuleId>, addresses: Range<u64>, [path, build]: [&str; 2]) -> (u64, i64) {
        let filename = self.text(path);
        let next = self.mappings.len() as u64 + 1;
        let number = *self.mappings.entry(id).or_insert(next);
        if number == next {
            let mapping = Mapping {
                id: number,
                memory_start: addresses.start,
                memory_limit: addresses.end,
                filename,
                build_id: self.text(build),
                // All names are in the profile, so pprof must not look for symbols.
                has_functions: true,
                has_inline_frames: true,
            };
            self.profile.mapping.push(mapping);
        }
        (number, filename)
    }
}

/// Returns every source with its samples. An event without samples is among them: profiles of the same command have the
/// same sample types, which pprof demands of those that it compares.
fn sources(contents: &Contents) -> BTreeMap<SampledSource, Total> {
    let RecordedSession { events, processors, .. } = &contents.session;
    let on = |(event, _)| processors.iter().map(move |cpu| contents.sample_counts.source_on(event, *cpu));
    let asked = (0..).zip(events).flat_map(on).map(|source| (source, contents.sample_counts.total(source)));
    asked.chain(contents.sample_counts.totals()).collect()
}

/// Returns command and processor, the slice, and what was lost of the selected sources in it.
fn comments(contents: &Contents, filter: &Filter) -> Vec<String> {
    let (mut all, mut sleeps) = (LossStats::default(), 0);
    for (source, processor, stats) in contents.sample_counts.selected_losses() {
        sleeps = sleeps.max(stats.sleeps);
        if filter.selects_source(contents.sample_counts.source_on(source, processor)) {
            all += stats;
        }
    }
    let LossStats { lost, pauses, silences, disconnections, .. } = all;
    let stops = silences + disconnections;
    let (command, processor) = (contents.session.command.join(" "), contents.session.processor.clone());
    let selected = contents.slice_text(&filter.slice).map(|text| format!("selected: {text}"));
    let account = format!("samples lost: {lost}; pauses: {pauses}; stops: {stops}; sleeps of the machine: {sleeps}");
    let told = [command, processor].into_iter().chain(selected).chain([account]);
    told.filter(|text| !text.is_empty()).collect()
}

/// Returns whether a source is the first event of the recording, on a hybrid on the core type with the lower number.
fn is_default(source: SampledSource, contents: &Contents) -> bool {
    sources(contents).into_keys().find(|one| one.event == 0) == Some(source)
}

/// Returns a number that the format stores with a sign.
fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
