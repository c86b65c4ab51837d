//! The schemas of the JSON output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, iter};

use halprof::source::SourceInfo;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use super::*;
use terminal::document::Document;

/// What rewrites the schemas, if it is set.
const UPDATE: &str = "HALPROF_UPDATE_SCHEMAS";

/// Returns the name of the schema of `T`, and what the present client prints.
fn schema<T: Document + JsonSchema>() -> (&'static str, Value) {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let members = schema.ensure_object();
    members.insert("title".to_owned(), T::SCHEMA.into());
    let properties = members["properties"].as_object_mut().unwrap();
    properties.insert("schema".to_owned(), json!({ "const": T::SCHEMA }));
    let required = members.entry("required").or_insert_with(|| json!([]));
    required.as_array_mut().unwrap().insert(0, "schema".into());
    let mut schema = serde_json::to_value(&schema).unwrap();
    remove_formats(&mut schema);
    (T::SCHEMA, schema)
}

/// Removes `format`, in which only the maker of the schemas has names for Rust's types of numbers.
fn remove_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|word, value| word != "format" || !value.is_string());
            members.values_mut().for_each(remove_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_formats),
        _ => {}
    }
}

/// By schema and object (its name in `$defs`, or nothing for the document): the members that it has had since its first
/// landed version. A document of any version has them, and no others are required.
type Landed = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn landed_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verb/tests/schemas/required.json")
}

fn landed() -> Landed {
    serde_json::from_str(&fs::read_to_string(landed_file()).unwrap()).unwrap()
}

/// Returns the objects of a schema that can require members, by their names.
fn objects(schema: &Value) -> Vec<(String, BTreeSet<String>)> {
    let parts = schema["$defs"].as_object().into_iter().flatten().map(|(name, part)| (name.as_str(), part));
    let required = |one: &Value| serde_json::from_value(one["required"].clone()).unwrap_or_default();
    let has_members = |(_, one): &(&str, &Value)| one.get("properties").is_some();
    let all = iter::once(("", schema)).chain(parts).filter(has_members);
    all.map(|(name, one)| (name.to_owned(), required(one))).collect()
}

/// Requires no member that an object lacked when it landed. An object that is new requires what it has.
fn require_landed(name: &str, schema: &mut Value, landed: &Landed) {
    for (object, required) in objects(schema) {
        let Some(known) = landed.get(name).and_then(|objects| objects.get(&object)) else { continue };
        let one = if object.is_empty() { &mut *schema } else { &mut schema["$defs"][&object] };
        one["required"] = json!(required.intersection(known).collect::<Vec<_>>());
    }
}

/// Returns the schemas of the present client.
fn present() -> BTreeMap<&'static str, Value> {
    let schemas = [
        schema::<Aggregate<'_>>(),
        schema::<Annotated<'_>>(),
        schema::<Answer>(),
        schema::<BlockReport<'_>>(),
        schema::<BranchReport>(),
        schema::<Contents>(),
        schema::<Comparison>(),
        schema::<ControlAreas>(),
        schema::<Counts>(),
        schema::<Diagnosis>(),
        schema::<Encodings>(),
        schema::<Info>(),
        schema::<LastBranches<'_>>(),
        schema::<InterfaceTable>(),
        schema::<Interval>(),
        schema::<List<'_>>(),
        schema::<Live>(),
        schema::<Matches>(),
        schema::<MemoryReport<'_>>(),
        schema::<Metrics>(),
        schema::<Sched>(),
        schema::<Selftest>(),
        schema::<SharedLines<'_>>(),
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

/// Returns the texts of the schemas, with which documents of every client agree.
fn schemas() -> BTreeMap<&'static str, String> {
    let landed = landed();
    let text = |(name, mut schema): (&'static str, Value)| {
        require_landed(name, &mut schema, &landed);
        (name, format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()))
    };
    present().into_iter().map(text).collect()
}

/// Every object is listed with members that it still has; the update adds those that are new.
#[test]
fn every_object_is_listed_with_the_members_of_its_first_version() {
    let mut listed = landed();
    let mut missing = Vec::new();
    for (name, schema) in present() {
        for (object, required) in objects(&schema) {
            match listed.get(name).and_then(|objects| objects.get(&object)) {
                Some(known) => assert!(known.is_subset(&required), "{name} {object} lost a member: {known:?}"),
                None => missing.push((name, object, required)),
            }
        }
    }
    let names: Vec<_> = missing.iter().map(|(name, object, _)| format!("{name} {object}")).collect();
    if env::var_os(UPDATE).is_some() && !missing.is_empty() {
        for (name, object, required) in missing {
            listed.entry(name.to_owned()).or_default().insert(object, required);
        }
        let object = |(name, members): (&String, &BTreeSet<String>)| format!("    {}: {}", json!(name), json!(members));
        let schema = |(name, objects): (&String, &BTreeMap<_, _>)| {
            let objects: Vec<String> = objects.iter().map(object).collect();
            format!("  {}: {{\n{}\n  }}", json!(name), objects.join(",\n"))
        };
        let schemas: Vec<String> = listed.iter().map(schema).collect();
        fs::write(landed_file(), format!("{{\n{}\n}}\n", schemas.join(",\n"))).unwrap();
        return;
    }
    assert!(names.is_empty(), "new: {names:?}; run the test with {UPDATE}=1, and then the other one");
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

/// Returns an output of the first client of each schema.
fn examples() -> Vec<Value> {
    let path = json_schemas::path("halprof.stat/1").with_file_name("examples").join("outputs.json");
    let outputs: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let names: Vec<&str> = outputs.iter().map(|output| output["schema"].as_str().unwrap()).collect();
    assert_eq!(names, schemas().into_keys().collect::<Vec<_>>(), "{} has one of each", path.display());
    outputs
}

/// Programs that read what earlier clients printed find its members, with their types, in what is printed today. What
/// was printed then is valid today: a member that was added later is not required.
#[test]
fn what_earlier_clients_printed_agrees_with_the_schemas() {
    let failed: Vec<String> =
        examples().iter().filter_map(|one| json_schemas::check(one).err()).map(|error| error.to_string()).collect();
    let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    assert!(failed.is_empty(), "{:#?}", failed.iter().map(first).collect::<Vec<_>>());
}

/// The words of JSON Schema that validators know without a setting. In its default mode, ajv 8 refuses a schema with
/// another word, or with a `format` that it does not know: https://ajv.js.org/strict-mode.html.
const KEYWORDS: [&str; 20] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "properties",
    "additionalProperties",
    "required",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "pattern",
    "maximum",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "default",
];

#[test]
fn validators_need_no_setting_for_the_schemas() {
    fn check(schema: &Value, place: &str, unknown: &mut BTreeSet<String>) {
        let Some(members) = schema.as_object() else { return };
        for (word, value) in members {
            if !KEYWORDS.contains(&word.as_str()) {
                unknown.insert(format!("{word} {value} in {place}"));
            }
            match (word.as_str(), value) {
                ("properties" | "$defs", Value::Object(named)) => {
                    named.iter().for_each(|(name, one)| check(one, &format!("{place}/{name}"), unknown));
                }
                ("items" | "additionalProperties", one) => check(one, place, unknown),
                ("anyOf" | "oneOf", Value::Array(all)) => all.iter().for_each(|one| check(one, place, unknown)),
                _ => {}
            }
        }
    }
    let mut unknown = BTreeSet::new();
    for (name, text) in schemas() {
        check(&serde_json::from_str(&text).unwrap(), name, &mut unknown);
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
