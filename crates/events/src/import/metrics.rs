//! Checks of metrics that are about several files.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ImportError, ImportedFile, line_of, text};
use crate::metric::{Metric, MetricSet};

/// A metric that uses itself through others.
pub struct Recursion {
    /// Index of its file.
    pub file: usize,
    /// Index of the metric in the file.
    pub metric: usize,
    /// What the message says about it.
    pub problem: ImportError,
}

/// The metrics of a folder for a kind of cores, and the file and the index in it of each.
#[derive(Default)]
struct Folder {
    metrics: Vec<Metric>,
    places: Vec<(usize, usize)>,
}

/// Finds a metric that uses itself through others. Those of a folder can use each other.
///
/// # Errors
/// If a file cannot be read again.
pub fn check(root: &Path, files: &[ImportedFile]) -> Result<Result<(), Recursion>, ImportError> {
    let mut folders: BTreeMap<(&str, u32), Folder> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let name = file.path.rsplit_once('/').map_or("", |(name, _)| name);
        let folder = folders.entry((name, file.core_type)).or_default();
        for (at, metric) in file.metrics.iter().enumerate() {
            if let Ok(metric) = Metric::parse(metric) {
                folder.metrics.push(metric);
                folder.places.push((index, at));
            }
        }
    }
    for Folder { metrics, places } in folders.into_values() {
        let set = MetricSet::new(metrics);
        if let Err((index, cause)) = set.check() {
            let (file, metric) = places.get(index).copied().unwrap_or_default();
            let path = root.join(files.get(file).map_or("", |file| &file.path));
            let name = set.metrics().get(index).map_or("", |metric| &metric.name);
            let line = line_of(&text(&path)?, name);
            let problem = ImportError::Invalid { path, line, what: format!("{}: {cause}", name.escape_default()) };
            return Ok(Err(Recursion { file, metric, problem }));
        }
    }
    Ok(Ok(()))
}
