//! Events from the makers' own files: a checkout of Intel's perfmon, or of Linux's pmu-events.
//!
//! Both have a `mapfile.csv` that names the files of each processor, and JSON with an object for each event. What
//! cannot be read is left out, and told with its file and line: makers publish files with mistakes, and one must not
//! keep the others from being used.

mod entry;
mod metrics;
mod pattern;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::identity::Identity;
use crate::metric::Metric;

pub use entry::ImportedEvent;
use metrics::Recursion;

/// Version of the form in which imported events are stored.
pub const FORMAT: u32 = 1;

/// The file that names the others.
const MAP: &str = "mapfile.csv";
/// Maximum size of a file, in bytes. The largest has 3 MB.
const MAX_BYTES: u64 = 32 << 20;
/// Maximum number of files.
const MAX_FILES: usize = 2_000;

/// Why files cannot be imported. Lines are counted from 1.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file is larger than `MAX_BYTES`, or there are more than `MAX_FILES`.
    #[error("{}: too large", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file is not what it should be.
    #[error("{}, line {line}: {what}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// None of the files that the map names is there.
    #[error("{}: none of the files that it names is there", path.display())]
    Empty {
        /// The map.
        path: PathBuf,
    },
}

/// The events and metrics of kinds of cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// [`FORMAT`] of the program that stored it.
    pub format: u32,
    /// Whether only the first row of the map that matches a processor is for it, as in Linux.
    pub is_first_match: bool,
    /// The files.
    pub files: Vec<ImportedFile>,
    /// What was left out because it is malformed, each with its file, its line and the reason. It is not stored.
    #[serde(skip)]
    pub skipped: Vec<String>,
    /// Columns of events that are not known, for each file. Their events are imported without them. It is not stored.
    #[serde(skip)]
    pub unknown_columns: Vec<String>,
}

/// A file of events or metrics, with the processors that it is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Path in the imported folder.
    pub path: String,
    /// Version, as the map says.
    pub version: String,
    /// Patterns of processors: vendor, family in decimal, model and stepping in hexadecimal, with hyphens between them.
    pub processors: Vec<String>,
    /// The lines of the map with these patterns.
    pub lines: Vec<usize>,
    /// Number of the core type, or 0 for all.
    pub core_type: u32,
    /// The events.
    pub events: Vec<ImportedEvent>,
    /// The metrics, as they are in the file.
    pub metrics: Vec<Value>,
}

impl Imported {
    /// Iterates over the files of a processor, on a hybrid those of a core type.
    pub fn of(&self, identity: Identity, core_type: Option<u32>) -> impl Iterator<Item = &ImportedFile> {
        let text = pattern::text(identity);
        let line_of = move |file: &ImportedFile| {
            let mut rows = file.processors.iter().zip(&file.lines);
            rows.find(|(processor, _)| pattern::matches(processor, &text)).map(|(_, line)| *line)
        };
        let first = self.files.iter().filter_map(&line_of).min().filter(|_| self.is_first_match);
        self.files.iter().filter(move |file| {
            (file.core_type == 0 || core_type.is_none_or(|wanted| wanted == file.core_type))
                && line_of(file).is_some_and(|line| first.is_none_or(|first| line == first))
        })
    }

    /// Returns the metrics of a processor, on a hybrid those of a core type.
    #[must_use]
    pub fn metrics_of(&self, identity: Identity, core_type: Option<u32>) -> Vec<Metric> {
        let values = self.of(identity, core_type).flat_map(|file| &file.metrics);
        // What was stored was parsed at the import.
        values.filter_map(|value| Metric::parse(value).ok()).collect()
    }

    /// Returns the number of events.
    #[must_use]
    pub fn events(&self) -> usize {
        self.files.iter().map(|file| file.events.len()).sum()
    }

    /// Returns the number of metrics.
    #[must_use]
    pub fn metrics(&self) -> usize {
        self.files.iter().map(|file| file.metrics.len()).sum()
    }
}

/// A row of the map.
struct MapRow {
    line: usize,
    processor: String,
    version: String,
    file: String,
    core_type: u32,
}

/// Reads a checkout of perfmon, or the folder of an architecture of Linux's pmu-events.
///
/// # Errors
/// If the map or a file that is there cannot be read, none is there, or everything in them is malformed. Files that are
/// not there are left out.
pub fn read(folder: &Path) -> Result<Imported, ImportError> {
    let map_path = folder.join(MAP);
    let map = text(&map_path)?;
    let (mut problems, mut unknown_columns) = (Vec::new(), Vec::new());
    let rows = rows(&map, &map_path, &mut problems);
    // Linux has four columns.
    let is_first_match = map.lines().next().is_some_and(|header| header.split(',').count() <= 4);
    let mut files: BTreeMap<String, Vec<ImportedFile>> = BTreeMap::new();
    for row in &rows {
        for (path, name) in paths(folder, row)? {
            if !files.contains_key(&name) {
                if files.len() == MAX_FILES {
                    return Err(ImportError::TooLarge { path: map_path });
                }
                files.insert(name.clone(), parse(&path, &name, row, &mut problems, &mut unknown_columns)?);
            }
            for file in files.get_mut(&name).into_iter().flatten() {
                file.processors.push(row.processor.clone());
                file.lines.push(row.line);
            }
        }
    }
    if files.is_empty() {
        return Err(problems.into_iter().next().unwrap_or(ImportError::Empty { path: map_path }));
    }
    let mut files: Vec<ImportedFile> = files.into_values().flatten().collect();
    while let Err(Recursion { file, metric, problem }) = metrics::check(folder, &files)? {
        if let Some(file) = files.get_mut(file) {
            file.metrics.remove(metric);
        }
        problems.push(problem);
    }
    let skipped = problems.iter().map(ToString::to_string).collect();
    let imported = Imported { format: FORMAT, is_first_match, files, skipped, unknown_columns };
    let is_empty = imported.events() + imported.metrics() == 0;
    problems.into_iter().next().filter(|_| is_empty).map_or(Ok(imported), Err)
}

/// Returns the line with a name in quotation marks.
fn line_of(text: &str, name: &str) -> usize {
    let wanted = format!("\"{name}\"");
    text.lines().position(|line| line.contains(&wanted)).map_or(1, |index| index + 1)
}

/// Parses the map: processor, version, file, kind, and in perfmon core type, native model and role. A malformed row
/// becomes a problem.
fn rows(text: &str, path: &Path, problems: &mut Vec<ImportError>) -> Vec<MapRow> {
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()).skip(1).filter(|(_, text)| !text.trim().is_empty()) {
        match row(line, text) {
            Ok(row) => rows.extend(row),
            Err(what) => problems.push(ImportError::Invalid { path: path.to_owned(), line, what }),
        }
    }
    rows
}

/// Parses a row of the map. `None` if its file is not for cores.
fn row(line: usize, text: &str) -> Result<Option<MapRow>, String> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    let [processor, version, file, kind, ref more @ ..] = cells[..] else {
        return Err("fewer than four columns".to_owned());
    };
    let processor = pattern::without_classes(processor);
    // The files of low-power cores are for a part of the cores of a type, which no lookup can name.
    let is_low_power = more.get(2).is_some_and(|role| role.starts_with("LowPower"));
    if !matches!(kind, "core" | "hybridcore" | "metrics") || is_low_power {
        return Ok(None);
    }
    if !pattern::is_valid(&processor) {
        let what = "the pattern of the processor has other characters than letters, digits and -()[]|";
        return Err(what.to_owned());
    }
    let core_type = more.first().filter(|text| !text.is_empty()).map_or(Ok(0), |text| entry::number(text));
    let core_type = core_type.ok().and_then(|number| u32::try_from(number).ok());
    let core_type = core_type.ok_or_else(|| "the core type is no number".to_owned())?;
    let file = file.trim_start_matches('/').to_owned();
    let is_inside = Path::new(&file).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || file.is_empty() || file.contains('\\') {
        return Err(format!("\"{}\" is no file of the folder", file.escape_default()));
    }
    Ok(Some(MapRow { line, processor, version: version.to_owned(), file, core_type }))
}

/// Returns the files of a row of the map that are there: one, or those of a folder. Each has its name in the folder.
fn paths(folder: &Path, row: &MapRow) -> Result<Vec<(PathBuf, String)>, ImportError> {
    // A copy without the folders events and metrics is accepted, too.
    let short = row.file.replace("/events/", "/").replace("/metrics/", "/");
    let Some((path, name)) =
        [&row.file, &short].into_iter().map(|name| (folder.join(name), name.clone())).find(|(path, _)| path.exists())
    else {
        return Ok(Vec::new());
    };
    if !path.is_dir() {
        return Ok(vec![(path, name)]);
    }
    let mut files = Vec::new();
    let read = |cause| ImportError::Read { path: path.clone(), cause };
    for entry in fs::read_dir(&path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        let title = file.file_name().and_then(|title| title.to_str()).unwrap_or_default();
        let is_table = file.extension().is_some_and(|extension| extension == "json") && file.is_file();
        if is_table && title != "metricgroups.json" && !title.starts_with("uncore") {
            files.push((file.clone(), format!("{name}/{title}")));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file of at most [`MAX_BYTES`] of UTF-8.
fn text(path: &Path) -> Result<String, ImportError> {
    let read = |cause| ImportError::Read { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    File::open(path).map_err(read)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ImportError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.split(|byte| *byte == b'\n').count();
        ImportError::Invalid { path: path.to_owned(), line, what: "it is not UTF-8".to_owned() }
    })
}

/// Parses a file: the events of each core type, and the metrics. What is malformed becomes a problem, and columns that
/// are not known a line of `unknown_columns`.
///
/// # Errors
/// If the file cannot be read.
fn parse(
    path: &Path,
    name: &str,
    row: &MapRow,
    problems: &mut Vec<ImportError>,
    unknown_columns: &mut Vec<String>,
) -> Result<Vec<ImportedFile>, ImportError> {
    let text = match text(path) {
        Err(problem @ ImportError::Invalid { .. }) => {
            problems.push(problem);
            return Ok(Vec::new());
        }
        text => text?,
    };
    let invalid = |line: usize, what: String| ImportError::Invalid { path: path.to_owned(), line, what };
    let json: Result<Value, _> = serde_json::from_str(&text);
    let list = match &json {
        Ok(Value::Array(list)) => Ok(list),
        Ok(Value::Object(object)) => match object.get("Events").or_else(|| object.get("Metrics")) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(invalid(1, "it has neither Events nor Metrics".to_owned())),
        },
        Ok(_) => Err(invalid(1, "it is neither a list nor an object".to_owned())),
        Err(error) => Err(invalid(error.line(), error.to_string())),
    };
    let list = match list {
        Ok(list) => list,
        Err(problem) => {
            problems.push(problem);
            return Ok(Vec::new());
        }
    };
    let mut by_type: BTreeMap<u32, ImportedFile> = BTreeMap::new();
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for value in list {
        let title = |key: &str| value.get(key).and_then(Value::as_str);
        let core_type = match title("Unit") {
            Some("cpu_core") => 0x40,
            Some("cpu_atom") => 0x20,
            None => row.core_type,
            // Events of other units than cores.
            Some(_) => continue,
        };
        let file = by_type.entry(core_type).or_insert_with(|| ImportedFile {
            path: name.to_owned(),
            version: row.version.clone(),
            processors: Vec::new(),
            lines: Vec::new(),
            core_type,
            events: Vec::new(),
            metrics: Vec::new(),
        });
        if let Some(name) = title("MetricName") {
            match Metric::parse(value) {
                Ok(_) => file.metrics.push(value.clone()),
                Err(cause) => {
                    problems.push(invalid(line_of(&text, name), format!("{}: {cause}", name.escape_default())));
                }
            }
            continue;
        }
        // Files of Linux have rows that only describe metrics or refer to other architectures.
        let Some(event) = title("EventName") else {
            let what = format!("an event has no EventName: {value}").chars().take(200).collect();
            problems.push(invalid(1, what));
            continue;
        };
        unknown.extend(entry::unknown_columns(value));
        match entry::parse(value) {
            Ok(parsed) => file.events.push(parsed),
            Err(what) => problems.push(invalid(line_of(&text, event), format!("{}: {what}", event.escape_default()))),
        }
    }
    if !unknown.is_empty() {
        let columns: Vec<String> = unknown.iter().map(|column| column.escape_default().to_string()).collect();
        unknown_columns.push(format!("{}: {}", path.display(), columns.join(", ")));
    }
    Ok(by_type.into_values().collect())
}
