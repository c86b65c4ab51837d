//! The state of a run on the host. It is written after each step, so that a run goes on after a crash of the guest, and
//! after the host's command was ended.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{facts::Facts, proof::Outcome};
use xtask::files;

/// Schema of the file.
const SCHEMA: &str = "halprof.vm-state/1";

/// Name of the file in the folder of the run.
const FILE: &str = "state.json";

/// A crash of the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Dumps that were copied, as paths in the folder of the run.
    pub dumps: Vec<String>,
    /// Dumps that could not be copied, with the reason.
    pub missing: Vec<String>,
}

/// The result of a step. Its output is in files of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// What it means.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Exit code, if a program ran to its end.
    pub code: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// The crash that it caused.
    pub crash: Option<Crash>,
}

/// A step that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Its name.
    pub step: String,
    /// When the guest had booted before it.
    pub boot: Option<String>,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    schema: String,
    /// SHA-256 of the driver in the package.
    pub package: String,
    /// When the run began.
    pub started: String,
    /// When its last step ended.
    pub finished: Option<String>,
    /// What is known about the guest.
    pub facts: Facts,
    /// The result of each step that ended, by its name.
    pub results: BTreeMap<String, StepResult>,
    /// The step that runs.
    pub running: Option<Running>,
    /// The step that ended last.
    pub last: Option<String>,
    /// When the guest had booted at the last step.
    pub boot: Option<String>,
    /// Whether the driver runs (true) or is not installed (false), if that is known.
    pub driver_runs: Option<bool>,
    /// The crash dumps of the guest that are known, as it lists them.
    pub dumps: Option<Vec<String>>,
}

impl State {
    /// Returns the state of a run that begins.
    pub fn new(package: String, facts: Facts) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            package,
            started: now(),
            finished: None,
            facts,
            results: BTreeMap::new(),
            running: None,
            last: None,
            boot: None,
            driver_runs: None,
            dumps: None,
        }
    }

    /// Reads the state of the run in a folder, if there is one that has not ended.
    pub fn unfinished(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let advice = || format!("{} is not the state of a run\n  try: --fresh, which begins a new one", path.display());
        let state: Self = serde_json::from_str(&text).with_context(advice)?;
        ensure!(state.schema == SCHEMA, advice());
        Ok(Some(state).filter(|state| state.finished.is_none()))
    }

    /// Writes the state. A crash of the host leaves the old or the new file.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let temporary: PathBuf = folder.join("state.tmp");
        files::write(&temporary, serde_json::to_string(self)?)?;
        fs::rename(&temporary, folder.join(FILE))
            .with_context(|| format!("cannot replace {FILE} in {}", folder.display()))
    }
}

/// Returns the present time.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
