//! The schemas of the JSON output.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use halprof::source::SourceInfo;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use super::*;
use crate::document::Document;

/// What rewrites the schemas, if it is set.
const UPDATE: &str = "HALPROF_UPDATE_SCHEMAS";

/// Returns the name of the schema of `T`, and its text.
fn schema<T: Document + JsonSchema>() -> (&'static str, String) {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let members = schema.ensure_object();
    members.insert("title".to_owned(), T::SCHEMA.into());
    let properties = members["properties"].as_object_mut().unwrap();
    properties.insert("schema".to_owned(), json!({ "const": T::SCHEMA }));
    let required = members.entry("required").or_insert_with(|| json!([]));
    required.as_array_mut().unwrap().insert(0, "schema".into());
    (T::SCHEMA, format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()))
}

fn schemas() -> BTreeMap<&'static str, String> {
    let schemas = [
        schema::<Aggregate<'_>>(),
        schema::<Annotated<'_>>(),
        schema::<Answer>(),
        schema::<BranchReport>(),
        schema::<Contents>(),
        schema::<Comparison>(),
        schema::<ControlAreas>(),
        schema::<Counts>(),
        schema::<Diagnosis>(),
        schema::<Encodings>(),
        schema::<Info>(),
        schema::<InterfaceTable>(),
        schema::<Interval>(),
        schema::<List<'_>>(),
        schema::<Live>(),
        schema::<Matches>(),
        schema::<Metrics>(),
        schema::<Selftest>(),
        schema::<SourceInfo>(),
        schema::<Started>(),
        schema::<Stat>(),
        schema::<Status>(),
        schema::<Timeline<'_>>(),
    ];
    let count = schemas.len();
    let schemas = BTreeMap::from(schemas);
    assert_eq!(schemas.len(), count, "two documents have the same schema");
    schemas
}

#[test]
fn the_schemas_of_the_documents_are_those_of_the_code() {
    for (name, text) in schemas() {
        let path = json_schemas::path(name);
        if env::var_os(UPDATE).is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is outdated: run the test with {UPDATE}=1", path.display());
    }
}

#[test]
fn every_schema_of_the_documents_is_in_the_code() {
    let schemas = schemas();
    let known: Vec<_> = schemas.keys().map(|name| json_schemas::path(name)).collect();
    let folder = json_schemas::path("halprof.stat/1").parent().unwrap().to_owned();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.extension().is_none_or(|it| it != "json") || known.contains(&path), "{}", path.display());
    }
}

#[test]
fn the_readme_lists_every_schema() {
    let readme = fs::read_to_string(json_schemas::path("halprof.stat/1").with_file_name("README.md")).unwrap();
    let listed = readme.lines().filter_map(|line| line.strip_prefix("| `halprof.")?.split_once('`'));
    let listed: BTreeSet<String> = listed.map(|(name, _)| format!("halprof.{name}")).collect();
    assert_eq!(listed, schemas().into_keys().map(str::to_owned).collect::<BTreeSet<_>>());
}

/// Programs that read what earlier clients printed find its members, with their types, in what is printed today.
#[test]
fn what_earlier_clients_printed_agrees_with_the_schemas() {
    for name in schemas().keys() {
        let path = json_schemas::path(name);
        let example = path.parent().unwrap().join("examples").join(path.file_name().unwrap());
        let text = fs::read_to_string(&example).unwrap_or_else(|_| panic!("{name} needs {}", example.display()));
        let example: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(example["schema"], *name);
        json_schemas::check(&example, Writer::Earlier).unwrap();
    }
}
