//! Checks JSON objects of the client against the schemas in docs/schemas.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, ensure};
use jsonschema::Validator;
use serde_json::Value;

/// The compiled schemas, by name.
static COMPILED: Mutex<Option<HashMap<String, Validator>>> = Mutex::new(None);

/// Environment variable with the folder of the schemas, for tests that run on a machine without the repository.
const FOLDER: &str = "HALPROF_SCHEMAS";

/// Returns the file of a schema such as `halprof.stat/1`.
#[must_use]
pub fn path(schema: &str) -> PathBuf {
    path_in(env::var_os(FOLDER).map(PathBuf::from), schema)
}

fn path_in(folder: Option<PathBuf>, schema: &str) -> PathBuf {
    let name = schema.trim_start_matches("halprof.").replace('/', "-");
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schemas"));
    folder.join(format!("{name}.json"))
}

/// Checks that an object agrees with the schema that it names, and has no member that the schema does not have.
///
/// # Errors
/// If the object names no schema, or does not agree with it.
pub fn check(object: &Value) -> Result<()> {
    let schema = object.get("schema").and_then(Value::as_str).context("no member \"schema\"")?;
    let mut compiled = COMPILED.lock().map_err(|_| anyhow!("another check has panicked"))?;
    let validators = compiled.get_or_insert_with(HashMap::new);
    if !validators.contains_key(schema) {
        validators.insert(schema.to_owned(), compile(schema)?);
    }
    let errors = validators[schema].iter_errors(object);
    let errors: Vec<String> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    ensure!(errors.is_empty(), "this does not agree with {schema}: {}\n{object:#}", errors.join("; "));
    Ok(())
}

fn compile(schema: &str) -> Result<Validator> {
    let path = path(schema);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut value = serde_json::from_str(&text)?;
    tighten(&mut value);
    jsonschema::validator_for(&value).map_err(|error| anyhow!("{}: {error}", path.display()))
}

/// Makes each object refuse unknown members, which a user's check allows, as a later client can have more.
fn tighten(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("type").is_some_and(|kind| kind == "object") && members.contains_key("properties") {
                members.insert("unevaluatedProperties".to_owned(), false.into());
            }
            members.values_mut().for_each(tighten);
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_in_the_repository_or_in_another_folder() {
        assert!(path_in(None, "halprof.stat/1").is_file());
        assert_eq!(path_in(Some("s".into()), "halprof.stat-interval/2"), Path::new("s/stat-interval-2.json"));
    }

    #[test]
    fn each_difference_from_the_schema_is_an_error() {
        let good = json!({
            "schema": "halprof.interval/1", "id": 2, "name": "TotalIssues", "requested": 5000, "interval": 5000,
            "previous_interval": 65_536, "clamped": false, "minimum": 4096, "maximum": 8,
        });
        check(&good).unwrap();
        for (member, value) in
            [("another", json!(1)), ("id", json!("2")), ("id", json!(-1)), ("schema", json!("halprof.other/1"))]
        {
            let mut bad = good.clone();
            bad[member] = value;
            assert!(check(&bad).is_err(), "{bad}");
        }
        for member in ["clamped", "schema"] {
            let mut lacking = good.clone();
            lacking.as_object_mut().unwrap().remove(member);
            assert!(check(&lacking).is_err(), "{member}");
        }
    }
}
