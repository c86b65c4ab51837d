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

/// Who has written an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    /// The present client: the object has each member that the schema requires.
    Present,
    /// A client of an earlier version: it lacks the members that were added since then.
    Earlier,
}

/// The compiled schemas, by name.
static COMPILED: Mutex<Option<HashMap<(String, Writer), Validator>>> = Mutex::new(None);

/// Environment variable with the folder of the schemas, for tests that run on a machine without the repository.
const FOLDER: &str = "HALPROF_SCHEMAS";

/// Returns the file of a schema such as `halprof.stat/1`.
#[must_use]
pub fn path(schema: &str) -> PathBuf {
    path_in(env::var_os(FOLDER).map(PathBuf::from), schema)
}

fn path_in(folder: Option<PathBuf>, schema: &str) -> PathBuf {
    let name = schema.trim_start_matches("halprof.").replace('/', "-");
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas"));
    folder.join(format!("{name}.json"))
}

/// Checks that an object agrees with the schema that it names, and has no member that the schema does not have.
///
/// # Errors
/// If the object names no schema, or does not agree with it.
pub fn check(object: &Value, writer: Writer) -> Result<()> {
    let schema = object.get("schema").and_then(Value::as_str).context("no member \"schema\"")?;
    let mut compiled = COMPILED.lock().map_err(|_| anyhow!("another check has panicked"))?;
    let validators = compiled.get_or_insert_with(HashMap::new);
    let key = (schema.to_owned(), writer);
    if !validators.contains_key(&key) {
        validators.insert(key.clone(), compile(schema, writer)?);
    }
    let errors = validators[&key].iter_errors(object);
    let errors: Vec<String> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    ensure!(errors.is_empty(), "this does not agree with {schema}: {}\n{object:#}", errors.join("; "));
    Ok(())
}

fn compile(schema: &str, writer: Writer) -> Result<Validator> {
    let path = path(schema);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut value = serde_json::from_str(&text)?;
    tighten(&mut value, writer);
    jsonschema::validator_for(&value).map_err(|error| anyhow!("{}: {error}", path.display()))
}

/// Makes each object refuse unknown members, which a user's check allows, as a later client can have more. Of an
/// earlier client's object no member is required.
fn tighten(schema: &mut Value, writer: Writer) {
    match schema {
        Value::Object(members) => {
            if members.get("type").is_some_and(|kind| kind == "object") && members.contains_key("properties") {
                members.insert("unevaluatedProperties".to_owned(), false.into());
                if writer == Writer::Earlier {
                    members.remove("required");
                }
            }
            members.values_mut().for_each(|member| tighten(member, writer));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tighten(item, writer)),
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
        for writer in [Writer::Present, Writer::Earlier] {
            check(&good, writer).unwrap();
            for (member, value) in
                [("another", json!(1)), ("id", json!("2")), ("id", json!(-1)), ("schema", json!("halprof.other/1"))]
            {
                let mut bad = good.clone();
                bad[member] = value;
                assert!(check(&bad, writer).is_err(), "{bad}");
            }
        }
        let mut lacking = good;
        lacking.as_object_mut().unwrap().remove("clamped");
        assert!(check(&lacking, Writer::Present).is_err());
        check(&lacking, Writer::Earlier).unwrap();
        lacking.as_object_mut().unwrap().remove("schema");
        assert!(check(&lacking, Writer::Earlier).is_err());
    }
}
