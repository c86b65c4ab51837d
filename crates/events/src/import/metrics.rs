//! Checks of metrics that are about several files.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ImportError, ImportedFile, line_of, text};
use crate::metric::{Metric, MetricSet};

/// The metrics of a folder for a kind of cores, and the file of each.
#[derive(Default)]
struct Folder<'a> {
    metrics: Vec<Metric>,
    paths: Vec<&'a str>,
}

/// Checks that no metric uses itself through others. Those of a folder can use each other.
pub fn check<'a>(root: &Path, files: impl Iterator<Item = &'a ImportedFile>) -> Result<(), ImportError> {
    let mut folders: BTreeMap<(&str, u32), Folder> = BTreeMap::new();
    for file in files {
        let name = file.path.rsplit_once('/').map_or("", |(name, _)| name);
        let folder = folders.entry((name, file.core_type)).or_default();
        for metric in file.metrics.iter().filter_map(|value| Metric::parse(value).ok()) {
            folder.metrics.push(metric);
            folder.paths.push(&file.path);
        }
    }
    for Folder { metrics, paths } in folders.into_values() {
        let set = MetricSet::new(metrics);
        if let Err((index, cause)) = set.check() {
            let path = root.join(paths.get(index).copied().unwrap_or_default());
            let name = set.metrics().get(index).map_or("", |metric| &metric.name);
            let line = line_of(&text(&path)?, name);
            return Err(ImportError::Invalid { path, line, what: format!("{}: {cause}", name.escape_default()) });
        }
    }
    Ok(())
}
