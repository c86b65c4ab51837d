//! The zip file holds the package, and the manifests obey the rules of their schemas and point to the zip file.

use std::io::{Cursor, Read};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;

const VERSION: &str = "1.2.3";

fn release() -> Release {
    let repository = "some-owner/some.name".parse().unwrap();
    Release { repository, version: VERSION.to_owned(), hash: format!("{:x}", Sha256::digest(b"zip")) }
}

/// Returns the manifests of winget with their names.
fn winget_manifests(release: &Release) -> [(String, Value); 3] {
    let parse = |text: &str| serde_saphyr::from_str(text).unwrap();
    winget::manifests(release).unwrap().map(|(name, text)| (name, parse(&text)))
}

/// Returns the violations of a schema.
fn violations(schema: &Value, manifest: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(manifest).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The rules of "winget-manifest.*.1.10.0.schema.json" for the fields in use. Any other field is a violation.
fn schemas_of_winget() -> [Value; 3] {
    let part = r#"[^\.\s\\/:\*\?"<>\|\x01-\x1f]{1,32}"#;
    let number = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let url = json!({ "type": "string", "pattern": "^https://.+$", "maxLength": 2048 });
    let text = |least: u32, most: u32| json!({ "type": "string", "minLength": least, "maxLength": most });
    let locale = json!({ "const": "en-US" });
    let with = |kind: &str, fields: Value, optional: &[&str]| {
        let mut all = json!({
            "PackageIdentifier": { "type": "string", "pattern": format!("^{part}(\\.{part}){{1,7}}$") },
            "PackageVersion": { "type": "string", "pattern": r#"^[^\\/:\*\?"<>\|\x01-\x1f]+$"#, "maxLength": 128 },
            "ManifestType": { "const": kind },
            "ManifestVersion": { "type": "string", "pattern": format!("^{number}(\\.{number}){{2}}$") },
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let required: Vec<&String> =
            all.as_object().unwrap().keys().filter(|key| !optional.contains(&key.as_str())).collect();
        json!({ "type": "object", "required": required, "properties": all, "additionalProperties": false })
    };
    let nested = json!({
        "type": "object",
        "required": ["RelativeFilePath"],
        "properties": { "RelativeFilePath": text(1, 512), "PortableCommandAlias": text(1, 40) },
        "additionalProperties": false
    });
    let download = json!({
        "type": "object",
        "required": ["Architecture", "InstallerUrl", "InstallerSha256"],
        "properties": {
            "Architecture": { "const": "x64" },
            "InstallerUrl": url,
            "InstallerSha256": { "type": "string", "pattern": "^[A-Fa-f0-9]{64}$" }
        },
        "additionalProperties": false
    });
    [
        with("version", json!({ "DefaultLocale": locale }), &[]),
        with(
            "installer",
            json!({
                "Platform": { "type": "array", "items": { "enum": ["Windows.Desktop", "Windows.Universal"] } },
                "MinimumOSVersion": { "type": "string", "pattern": format!("^{number}(\\.{number}){{0,3}}$") },
                "InstallerType": { "const": "zip" },
                "NestedInstallerType": { "const": "portable" },
                "NestedInstallerFiles": { "type": "array", "items": nested },
                "ArchiveBinariesDependOnPath": { "const": true },
                "Installers": { "type": "array", "minItems": 1, "items": download }
            }),
            &["Platform", "MinimumOSVersion"],
        ),
        with(
            "defaultLocale",
            json!({
                "PackageLocale": locale,
                "Publisher": text(2, 256),
                "PublisherSupportUrl": url,
                "PackageName": text(2, 256),
                "PackageUrl": url,
                "License": text(3, 512),
                "ShortDescription": text(3, 256),
                "Tags": { "type": "array", "items": text(1, 40), "maxItems": 16, "uniqueItems": true },
                "ReleaseNotesUrl": url,
                "InstallationNotes": text(1, 10_000)
            }),
            &["PublisherSupportUrl", "PackageUrl", "Tags", "ReleaseNotesUrl", "InstallationNotes"],
        ),
    ]
}

/// The rules of Scoop's "schema.json" for the fields in use.
fn schema_of_scoop() -> Value {
    let url = json!({ "type": "string", "pattern": "^https://[^ ]+$" });
    json!({
        "type": "object",
        "required": ["version", "homepage", "license", "architecture", "bin"],
        "properties": {
            "version": { "type": "string", "pattern": "^[\\w\\.\\-+_]+$" },
            "description": { "type": "string" },
            "homepage": url,
            "license": { "type": "string" },
            "notes": { "type": "string" },
            "architecture": {
                "type": "object",
                "required": ["64bit"],
                "properties": {
                    "64bit": {
                        "type": "object",
                        "required": ["url", "hash"],
                        "properties": {
                            "url": url,
                            "hash": { "type": "string", "pattern": "^[a-fA-F0-9]{64}$" },
                            "extract_dir": { "type": "string" }
                        },
                        "additionalProperties": false
                    }
                },
                "additionalProperties": false
            },
            "bin": { "type": "array", "items": { "type": "string" } },
            "checkver": { "const": "github" },
            "autoupdate": { "type": "object" }
        },
        "additionalProperties": false
    })
}

#[test]
fn the_manifests_of_winget_obey_their_schemas() {
    for ((name, manifest), schema) in winget_manifests(&release()).into_iter().zip(schemas_of_winget()) {
        assert_eq!(violations(&schema, &manifest), [""; 0], "{name}: {manifest:#}");
        for (field, wrong) in [
            ("PackageIdentifier", json!("halprof")),
            ("PackageVersion", json!(1.2)),
            ("ManifestType", json!("merged")),
            ("ManifestVersion", json!("1.10")),
            ("Unknown", json!(true)),
        ] {
            let mut manifest = manifest.clone();
            manifest[field] = wrong;
            assert!(!violations(&schema, &manifest).is_empty(), "{name}: a wrong {field} is not found");
        }
    }
}

/// A hash of digits alone, or with one e, is a number in YAML unless it is quoted.
#[test]
fn a_hash_that_looks_like_a_number_is_text() {
    for hash in ["1".repeat(64), format!("{}e{}", "1".repeat(30), "2".repeat(33))] {
        let [_, (_, installer), _] = winget_manifests(&Release { hash: hash.clone(), ..release() });
        assert_eq!(installer.pointer("/Installers/0/InstallerSha256").unwrap(), &json!(hash.to_uppercase()));
    }
}

#[test]
fn the_files_of_winget_are_named_by_the_identifier() {
    let names = winget_manifests(&release()).map(|(name, _)| name);
    let wanted =
        ["some-owner.halprof.yaml", "some-owner.halprof.installer.yaml", "some-owner.halprof.locale.en-US.yaml"];
    assert_eq!(names, wanted);
}

#[test]
fn the_manifest_of_scoop_obeys_its_schema() {
    let manifest: Value = serde_json::from_str(&scoop(&release()).unwrap()).unwrap();
    assert_eq!(violations(&schema_of_scoop(), &manifest), [""; 0]);
    assert_eq!(manifest["license"], "MIT|Apache-2.0");
    let mut wrong = manifest;
    wrong["architecture"]["64bit"]["hash"] = json!("abc");
    assert!(!violations(&schema_of_scoop(), &wrong).is_empty());
}

#[test]
fn every_manifest_points_to_the_zip_file_of_the_release() {
    let url = "https://github.com/some-owner/some.name/releases/download/v1.2.3/halprof-1.2.3-x86_64.zip";
    let scoop: Value = serde_json::from_str(&scoop(&release()).unwrap()).unwrap();
    assert_eq!(scoop.pointer("/architecture/64bit/url").unwrap(), url);
    let automatic = scoop.pointer("/autoupdate/architecture/64bit/url").unwrap().as_str().unwrap();
    assert_eq!(automatic.replace("$version", VERSION), url);
    let [_, (_, installer), (_, texts)] = winget_manifests(&release());
    assert_eq!(installer.pointer("/Installers/0/InstallerUrl").unwrap(), url);
    assert_eq!(texts["ReleaseNotesUrl"], "https://github.com/some-owner/some.name/releases/tag/v1.2.3");
}

/// Makes the distribution of a package with these files, and returns the contents of the zip file.
fn distribute(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<(String, Vec<u8>)>) {
    let root = tempfile::tempdir().unwrap();
    let workspace = Workspace::at(root.path().to_owned());
    files::make_folder(&workspace.package()).unwrap();
    for (name, content) in files {
        files::write(&workspace.package().join(name), content).unwrap();
    }
    let made = make(&workspace, &"some-owner/some.name".parse().unwrap()).unwrap();
    let packed = files::read(&made.join(archive_name(env!("CARGO_PKG_VERSION")))).unwrap();
    let mut packed = zip::ZipArchive::new(Cursor::new(packed)).unwrap();
    let mut contents = Vec::new();
    for index in 0..packed.len() {
        let mut file = packed.by_index(index).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        contents.push((file.name().unwrap().into_owned(), content));
    }
    (root, contents)
}

const FILES: [(&str, &[u8]); 4] =
    [("a.txt", b""), ("client.exe", &[0x90; 70_000]), ("halprof.exe", b"MZ"), ("halprof.sys", b"MZ driver")];

#[test]
fn the_zip_file_has_every_file_of_the_package_in_one_folder() {
    let (_root, contents) = distribute(&FILES);
    let folder = format!("halprof-{}", env!("CARGO_PKG_VERSION"));
    let wanted: Vec<_> = FILES.map(|(name, content)| (format!("{folder}/{name}"), content.to_vec())).into();
    assert_eq!(contents, wanted);
}

#[test]
fn the_hashes_of_the_manifests_are_those_of_the_zip_file_and_their_programs_are_in_it() {
    let (root, contents) = distribute(&FILES);
    let folder = Workspace::at(root.path().to_owned()).distribution();
    let packed = files::read(&folder.join(archive_name(env!("CARGO_PKG_VERSION")))).unwrap();
    let wanted = format!("{:X}", Sha256::digest(&packed));
    let text = files::read_text(&folder.join("some-owner.halprof.installer.yaml")).unwrap();
    let installer: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(installer.pointer("/Installers/0/InstallerSha256").unwrap(), &json!(wanted));
    let nested = installer["NestedInstallerFiles"].as_array().unwrap();
    let nested = nested.iter().map(|file| file["RelativeFilePath"].as_str().unwrap().replace('\\', "/"));
    let scoop: Value = serde_json::from_str(&files::read_text(&folder.join("halprof.json")).unwrap()).unwrap();
    let entry = scoop.pointer("/architecture/64bit").unwrap();
    assert_eq!(entry["hash"], wanted.to_lowercase());
    let programs = scoop["bin"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let programs = programs.map(|name| format!("{}/{name}", entry["extract_dir"].as_str().unwrap()));
    let programs: Vec<String> = nested.chain(programs).collect();
    assert_eq!(programs.len(), 4);
    for program in programs {
        assert!(contents.iter().any(|(name, _)| *name == program), "{program} is not in the zip file");
    }
}

#[test]
fn the_same_package_gives_the_same_zip_file_and_another_one_another() {
    let packed = |files| {
        let (root, _) = distribute(files);
        files::read(&Workspace::at(root.path().to_owned()).distribution().join(archive_name(env!("CARGO_PKG_VERSION"))))
            .unwrap()
    };
    assert_eq!(packed(&FILES), packed(&FILES));
    assert_ne!(packed(&FILES), packed(&FILES[..3]));
}

#[test]
fn a_repository_is_an_owner_and_a_name() {
    let good: Repository = "some-owner/some.name".parse().unwrap();
    assert_eq!((good.owner.as_str(), good.name.as_str()), ("some-owner", "some.name"));
    let long = format!("{}/halprof", "a".repeat(33));
    for wrong in ["", "halprof", "/halprof", "owner/", "a b/halprof", "a.b/halprof", "owner/a/b", &long] {
        assert!(wrong.parse::<Repository>().is_err(), "{wrong}");
    }
}
