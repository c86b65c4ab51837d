//! Accesses by the types of PDBs: of the programs in `crates/data-types/tests/programs`.

use std::io::Read as _;
use std::path::PathBuf;

use ::report::PeHeaders;
use flate2::read::GzDecoder;
use recording::{Module, Process, Writer};

use super::*;

/// Base address of the program `pointers`.
const POINTERS: u64 = 0x1_5000_0000;

/// The load of its function `value`, and the second one of `payload_size`, which uses what the first has loaded.
const VALUE: u64 = POINTERS + 0x1000;
const PAYLOAD: u64 = POINTERS + 0x1014;

fn program(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/data-types/tests/programs"));
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(folder.join(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns the recording of a script in the program, beside its image and its PDB if `has_pdb`.
pub fn recording_with(steps: &[Step], has_pdb: bool) -> File {
    let image = program("pointers.exe.gz");
    let PeHeaders { timestamp, image_size, debug, .. } = PeHeaders::parse(&*image).unwrap();
    let module = Module {
        base: POINTERS,
        size: image_size.into(),
        path: "C:\\app\\pointers.exe".to_owned(),
        timestamp,
        image_size,
        debug,
    };
    let process = Process { id: 8, created: None, name: "pointers.exe".to_owned(), modules: vec![module] };
    let mut writer = Writer::new(Vec::new(), &memory_session()).unwrap();
    writer.process(&process).unwrap();
    writer.samples(&records(steps)).unwrap();
    let file = File::holding(&writer.finish(&summary()).unwrap());
    fs::write(file.beside("pointers.exe"), image).unwrap();
    if has_pdb {
        fs::write(file.beside("pointers.pdb"), program("pointers.pdb.gz")).unwrap();
    }
    file
}

pub fn script() -> Vec<Step> {
    let at = |ip, step: Step| Step { ip, ..step };
    [
        times(60, at(VALUE, load(9, HEAP + 8, 0x0B, 200))),
        times(20, at(PAYLOAD, load(9, HEAP + 0x100C, 0x03, 20))),
        times(15, at(PAYLOAD - 4, load(9, HEAP + 0x18, 0x01, 5))),
        times(5, at(HEAP, load(9, HEAP, 0x01, 5))),
    ]
    .concat()
}

#[test]
fn accesses_are_shown_by_type_and_member() {
    let file = recording_with(&script(), true);
    let text = file.run_on(Some(79), "mem report FILE --type -e 0").out;
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
    insta::assert_snapshot!(text);
    let json = file.run("mem report FILE --sort variable --json").json();
    let loads = &json["events"][0];
    let named = json!({ "by_address": 0, "by_instruction": 95, "only_operand": 0, "unknown": 5 });
    assert_eq!(loads["named"], named);
    let variables: Vec<&str> =
        loads["rows"].as_array().unwrap().iter().map(|row| row["columns"]["variable"].as_str().unwrap()).collect();
    assert_eq!(variables, ["node->value", "node->payload->size", "node->payload", "[unknown]"]);
}

#[test]
fn without_a_pdb_accesses_have_their_operands() {
    let file = recording_with(&script(), false);
    let text = file.run("mem report FILE --type -e 0").out;
    assert!(text.contains("\nNamed     0.0 % by the address of the data, 0.0 % by the instruction\n"), "{text}");
    assert!(text.contains("\nNo name   100.0 %: no PDB says what the data is\n"), "{text}");
    for operand in ["[rcx+0x8]", "[rax+0xc]", "[rcx+0x18]"] {
        assert!(text.lines().any(|line| line.ends_with(&format!("[unknown]  {operand}"))), "{text}");
    }
}

#[test]
fn what_threads_share_has_the_names_of_its_members() {
    let at = |ip, step: Step| Step { ip, ..step };
    let steps = [
        times(9, at(VALUE, load(9, HEAP + 8, 0x07, 100))),
        times(4, at(PAYLOAD - 4, load(10, HEAP + 0x18, 0x07, 90))),
        times(1, at(HEAP, load(10, HEAP + 0x20, 0x01, 5))),
    ];
    let file = recording_with(&steps.concat(), true);
    let json = file.run("c2c FILE --type --json").json();
    let places = json["lines"][0]["places"].as_array().unwrap();
    let names = places.iter().map(|place| (place["offset"].as_u64().unwrap(), place["variable"].as_str()));
    assert_eq!(names.collect::<Vec<_>>(), [(8, Some("node->value")), (0x18, Some("node->payload")), (0x20, None)]);
    let text = file.run("c2c FILE --type").out;
    assert!(text.lines().any(|line| line.contains("  value(Node*)  ") && line.ends_with("  node->value")), "{text}");
    assert!(!file.run("c2c FILE").out.contains("node->"), "without the option nothing is named");
}
