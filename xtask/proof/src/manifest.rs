//! The manifest of a driver: what was checked of it, by which commands and with which results.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use xtask_package::proof::DriverFile;

/// Name and version of the schema, which is docs/proof.schema.json.
pub const SCHEMA: &str = "halprof.proof/1";

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the product.
    pub version: String,
    /// The sources.
    pub sources: Sources,
    /// The driver that was checked.
    pub driver: DriverFile,
    /// `rustc --version`.
    pub compiler: String,
    /// Number of processors of the machine.
    pub processors: usize,
    /// The run.
    pub run: Run,
    /// Every stage, also those that were not run.
    pub stages: Vec<StageRecord>,
}

/// The sources of the driver and the tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// The commit.
    pub commit: String,
    /// Whether files differed from it.
    pub changed: bool,
}

/// The run in which everything was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its begin, in RFC 3339 and UTC.
    pub began: String,
    /// Its stated length.
    pub minutes: u64,
    /// Its actual length.
    pub seconds: u64,
}

/// What became of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every command of it succeeded, and it checked at least one thing.
    Passed,
    /// A command failed, or checked nothing.
    Failed,
    /// No command of it was run to its end.
    NotRun,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageRecord {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub subject: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it failed or was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its commands.
    pub commands: Vec<String>,
    /// How long it took.
    pub seconds: u64,
    /// What it counted, by its unit.
    pub figures: BTreeMap<String, u64>,
}

impl Manifest {
    /// Returns the text.
    pub fn to_text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads a text.
    ///
    /// # Errors
    /// It is not a manifest of this version.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(text).context("the manifest cannot be read")?;
        ensure!(manifest.schema == SCHEMA, "the manifest is {}, not {SCHEMA}", manifest.schema);
        Ok(manifest)
    }

    /// Returns the stages with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &StageRecord> {
        self.stages.iter().filter(move |stage| stage.verdict == verdict)
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SCHEMA_TEXT: &str = include_str!("../../../docs/proof.schema.json");

    /// Returns a manifest with a stage of each verdict.
    pub fn example() -> Manifest {
        let stage = |name: &str, verdict, reason: Option<&str>| StageRecord {
            name: name.to_owned(),
            subject: "something".to_owned(),
            verdict,
            reason: reason.map(str::to_owned),
            commands: vec!["cargo test".to_owned()],
            seconds: 61,
            figures: BTreeMap::from([("tests".to_owned(), 12_345)]),
        };
        Manifest {
            schema: SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            sources: Sources { commit: "0".repeat(40), changed: false },
            driver: DriverFile {
                name: "halprof.sys".to_owned(),
                bytes: 3,
                sha256: "a".repeat(64),
                authenticode_sha256: "b".repeat(64),
            },
            compiler: "rustc 1.93.0".to_owned(),
            processors: 2,
            run: Run { began: "2026-01-01T00:00:00Z".to_owned(), minutes: 10, seconds: 599 },
            stages: vec![
                stage("one", Verdict::Passed, None),
                stage("two", Verdict::Failed, Some("it broke")),
                stage("three", Verdict::NotRun, Some("no time was left")),
            ],
        }
    }

    fn is_valid(value: &Value) -> bool {
        let schema = serde_json::from_str(SCHEMA_TEXT).unwrap();
        jsonschema::validator_for(&schema).unwrap().is_valid(value)
    }

    #[test]
    fn a_manifest_agrees_with_the_schema_and_is_read_as_it_was_written() {
        let text = example().to_text().unwrap();
        assert_eq!(Manifest::parse(text.as_bytes()).unwrap(), example());
        assert!(is_valid(&serde_json::from_str(&text).unwrap()));
    }

    #[test]
    fn the_schema_requires_every_member_and_refuses_others() {
        let whole = serde_json::to_value(example()).unwrap();
        let optional = "reason";
        // Each object of the manifest, without each of its members, and with another.
        for path in ["", "/sources", "/driver", "/run", "/stages/0", "/stages/1"] {
            let object = whole.pointer(path).unwrap().as_object().unwrap();
            for name in object.keys().filter(|name| *name != optional) {
                let mut changed = whole.clone();
                changed.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(name);
                assert!(!is_valid(&changed), "{path}/{name} can be missing");
                assert!(Manifest::parse(changed.to_string().as_bytes()).is_err(), "{path}/{name} can be missing");
            }
            let mut changed = whole.clone();
            changed.pointer_mut(path).unwrap()["more"] = json!(1);
            assert!(!is_valid(&changed) && Manifest::parse(changed.to_string().as_bytes()).is_err(), "{path}");
        }
    }

    #[test]
    fn a_stage_that_did_not_pass_needs_a_reason() {
        let mut manifest = serde_json::to_value(example()).unwrap();
        manifest["stages"][2].as_object_mut().unwrap().remove("reason");
        assert!(!is_valid(&manifest));
        manifest["stages"][2]["verdict"] = json!("passed");
        assert!(is_valid(&manifest));
    }
}
