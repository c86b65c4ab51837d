//! What the service uses as SYSTEM must not be changed by others, and must be there for its account.

use std::collections::BTreeSet;
use std::io;
use std::path::{self, Path};

use agent::config::Config;
use events::import::Imported;
use events::metric::Metric;
use halprof::event::event_cache::EventCache;
use halprof::protected::{self, Unprotected, Volume};

use super::{AgentError, OwnImport};
use user_error::Error;

/// Makes a folder that only administrators can change.
const REMEDY: &str = "put it into a folder for administrators only, made from an elevated prompt:\n       \
                      mkdir C:\\halprof\n       \
                      icacls C:\\halprof /inheritance:r /grant:r \"*S-1-5-18:(OI)(CI)F\" \"*S-1-5-32-544:(OI)(CI)F\"";

/// Returns what to do about a file or folder that others can change.
pub fn remedy(unprotected: &Unprotected) -> String {
    match unprotected.cause {
        protected::Cause::Kind => "name a folder that only administrators can change".to_owned(),
        protected::Cause::Link | protected::Cause::Exposed(_) => REMEDY.to_owned(),
    }
}

/// Checks that only administrators can change a configuration, and its folder, which has the log.
///
/// # Errors
/// If others can, or it cannot be opened.
pub fn check_config(volume: &dyn Volume, config: &Path) -> Result<(), AgentError> {
    protected::check_file(volume, config).map_err(|cause| exposed(config, cause))
}

/// Checks the files that a configuration names, and its folders, which are created for administrators only if they do
/// not exist: the service writes and deletes files there.
///
/// # Errors
/// If others can change one, or a folder cannot be created.
pub fn prepare(volume: &dyn Volume, config: &Config) -> Result<(), AgentError> {
    let tls = config.prometheus.as_ref().and_then(|prometheus| prometheus.tls.as_ref());
    for file in tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]) {
        match path::absolute(file).and_then(|path| protected::check_file(volume, &path)) {
            // The endpoint reports it.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            checked => checked.map_err(|cause| exposed(file, cause))?,
        }
    }
    let profiles = config.profiles.as_ref();
    let folder = profiles.and_then(|profiles| profiles.folder.as_ref()).map(|folder| &folder.path);
    let buffer = profiles.and_then(|profiles| profiles.push.as_ref()).map(|push| &push.buffer);
    for folder in folder.into_iter().chain(buffer) {
        path::absolute(folder)
            .and_then(|path| protected::ensure_folder(volume, &path))
            .map_err(|cause| exposed(folder, cause))?;
    }
    Ok(())
}

/// Returns the error for a path that the service must not use.
pub fn exposed(path: &Path, cause: io::Error) -> AgentError {
    AgentError::Exposed { path: path.to_owned(), cause }
}

/// Checks that the service will find each imported event and metric that this account finds.
///
/// # Errors
/// If some were imported for this account only, or a file of imported events cannot be read.
pub fn check_imports(config: &Config, cache: &EventCache) -> Result<(), Error> {
    let Some(own) = cache.load_own()? else { return Ok(()) };
    let of_machine = cache.load_for_machine()?.map(|imported| names(&imported)).unwrap_or_default();
    let own: BTreeSet<String> = names(&own).difference(&of_machine).cloned().collect();
    let is_built_in = |name: &str| events::tables().any(|table| table.find(name).is_some());
    let profiled = config.profiles.as_ref().map(|profiles| &profiles.event);
    let texts = config.counting.events.iter().chain(&config.counting.metrics).chain(profiled);
    let words =
        texts.flat_map(|text| text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "._".contains(letter))));
    let missing: BTreeSet<&str> =
        words.filter(|word| own.contains(&word.to_ascii_uppercase()) && !is_built_in(word)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.into_iter().collect::<Vec<_>>().join(", ");
    Err(AgentError::OwnImport { names, cause: OwnImport }.into())
}

/// Returns the names of imported events and metrics, in capital letters.
fn names(imported: &Imported) -> BTreeSet<String> {
    let events = imported.files.iter().flat_map(|file| &file.events).map(|event| event.name().to_ascii_uppercase());
    let metrics = imported.files.iter().flat_map(|file| &file.metrics);
    let metrics = metrics.filter_map(|metric| Some(Metric::parse(metric).ok()?.name.to_ascii_uppercase()));
    events.chain(metrics).collect()
}
