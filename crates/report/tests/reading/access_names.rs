//! Data of accesses by the types of PDBs, in recordings of programs whose accesses are known.

use std::fs::{self, File};
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use object::read::pe::PeFile64;
use object::{ExportTarget, Object as _, ObjectSection as _};
use protocol::{PreciseKind, PreciseSample, SampleRecord};
use recording::{Block, Module, Process};
use report::{AccessColumn, AccessNames, AccessTable, Accesses, Contents, Filter, NamedBy, PeHeaders, SymbolIndex};
use tempfile::TempDir;

use super::access_table::Step;
use super::support::{APP, file, read};
use super::symbols::given;

/// Base addresses of the programs `objects` and `pointers`, and one outside of them.
const OBJECTS: u64 = APP;
const POINTERS: u64 = 0x1_5000_0000;
const ELSEWHERE: u64 = 0x6000_0000;

fn program(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data-types/tests/programs"));
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(folder.join(format!("{name}.gz"))).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Puts image and PDB of a program into a folder. Returns its module at `base`.
fn module(folder: &Path, name: &str, base: u64) -> Module {
    for name in [format!("{name}.exe"), format!("{name}.pdb")] {
        fs::write(folder.join(&name), program(&name)).unwrap();
    }
    let image = program(&format!("{name}.exe"));
    let PeHeaders { timestamp, image_size, debug, .. } = PeHeaders::parse(&*image).unwrap();
    Module { base, size: image_size.into(), path: format!("C:\\app\\{name}.exe"), timestamp, image_size, debug }
}

/// Returns where a path is that the program `objects` says about itself.
fn known(path: &str) -> u64 {
    let bytes = program("objects.exe");
    let image = PeFile64::parse(&*bytes).unwrap();
    let base = image.relative_address_base();
    let text = |address: u64| {
        let section = image.sections().find(|one| (one.address()..one.address() + one.size()).contains(&address));
        let section = section.unwrap();
        let rest = section.data().unwrap().get(usize::try_from(address - section.address()).unwrap()..).unwrap();
        String::from_utf8(rest.iter().take_while(|byte| **byte != 0).copied().collect()).unwrap()
    };
    let words: Vec<u64> = image
        .section_by_name(".known")
        .unwrap()
        .data()
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .filter(|word| *word != 0)
        .collect();
    let found = words.as_chunks::<5>().0.iter().find(|[_, _, known, ..]| text(*known) == path);
    OBJECTS + found.unwrap()[0] - base
}

/// Returns the address of a function of the program `pointers`.
fn function(name: &str) -> u64 {
    let bytes = program("pointers.exe");
    let image = PeFile64::parse(&*bytes).unwrap();
    let mut exports = image.exports().unwrap().map(Result::unwrap);
    let found = exports.find(|export| export.name().into_name() == Some(name.as_bytes())).unwrap();
    let address = match found.target() {
        ExportTarget::Address { address } => Some(address),
        _ => None,
    };
    POINTERS + address.unwrap() - image.relative_address_base()
}

/// Returns steps of a script that load at an address.
fn loads(number: usize, ip: u64, address: u64, latency: u32) -> Vec<Step> {
    vec![Step { ip, address, ..Step::load(1, latency) }; number]
}

/// Returns the recording of a script, and puts the files of its programs into a folder.
fn recording(folder: &TempDir, steps: &[Step], kind: PreciseKind) -> Vec<u8> {
    let modules = vec![module(folder.path(), "objects", OBJECTS), module(folder.path(), "pointers", POINTERS)];
    let process = Process { id: 8, created: None, name: "app.exe".to_owned(), modules };
    let records = (0..).zip(steps).flat_map(|(number, step)| {
        let (sample, access) = step.records(number);
        [SampleRecord::from(PreciseSample { kind, ..sample }), access.into()]
    });
    file(&[Block::Process(process), Block::Samples(records.collect())])
}

/// A recording, and the names of its data.
struct Named {
    contents: Contents,
    symbol_index: SymbolIndex,
    accesses: Accesses,
    names: AccessNames,
}

impl Named {
    fn new(folder: &TempDir, file: &[u8]) -> Self {
        let (contents, finder) = (read(file), given(folder.path()));
        let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &finder);
        let accesses = Accesses::read(&contents, &Filter::default(), &mut Cursor::new(file)).unwrap();
        let names = AccessNames::new(&accesses, &contents, &symbol_index, &finder);
        Self { contents, symbol_index, accesses, names }
    }

    /// Returns what has named each access.
    fn kinds(&self) -> Vec<NamedBy> {
        self.accesses.all().iter().map(|access| self.names.named_by(access)).collect()
    }

    /// Returns cells, samples and share of the latency of each row.
    fn rows(&self, columns: &[AccessColumn]) -> Vec<(String, u64, f64)> {
        let accesses = self.accesses.all().iter();
        let table = AccessTable::new(accesses, columns, &self.contents, &self.symbol_index, &self.names);
        let rows = table.first(None).0.into_iter();
        rows.map(|row| (row.cells.join("|"), row.samples, row.latency_share.unwrap())).collect()
    }
}

/// Samples and latency of each type and member are those of the script. What nothing names has the operand.
#[test]
fn rows_by_type_have_the_shares_of_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let [value, payload, opaque] = ["value", "payload_size", "opaque"].map(function);
    let heap = 0x5000_0000;
    let script = [
        loads(40, ELSEWHERE, known("table.rows[2].lock.owner"), 100),
        loads(20, ELSEWHERE, known("rows[1].lock.owner"), 100),
        loads(10, value, known("table.count"), 10),
        loads(15, value, heap, 40),
        loads(5, payload + 4, heap + 0x1000, 20),
        loads(6, opaque, heap, 30),
        loads(4, ELSEWHERE, heap, 5),
    ]
    .concat();
    let named = Named::new(&folder, &recording(&folder, &script, PreciseKind::Precise));
    let all = 6000.0 + 100.0 + 600.0 + 100.0 + 180.0 + 20.0;
    let expected = [
        ("shop::Row|lock.owner +0x8", 60, 6000.0),
        ("Node|value +0x8", 15, 600.0),
        ("[unknown]|[rcx+0x8]", 6, 180.0),
        ("Payload|size +0xc", 5, 100.0),
        ("shop::Table|count +0x0", 10, 100.0),
        ("[unknown]|", 4, 20.0),
    ];
    let mut found = named.rows(&[AccessColumn::Type, AccessColumn::Member]);
    found.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(&other.0)));
    assert_eq!(found, expected.map(|(cells, samples, cycles)| (cells.to_owned(), samples, cycles / all)));
    let variables: Vec<(String, u64)> =
        named.rows(&[AccessColumn::Variable]).into_iter().map(|row| (row.0, row.1)).collect();
    let expected =
        [("table.rows[2].lock.owner", 40), ("rows[1].lock.owner", 20), ("node->value", 15), ("[rcx+0x8]", 6)];
    assert_eq!(variables[..4], expected.map(|(path, samples)| (path.to_owned(), samples)));
    let kinds = [NamedBy::Address, NamedBy::Instruction, NamedBy::Operand, NamedBy::Nothing];
    assert_eq!(kinds.map(|kind| named.kinds().iter().filter(|one| **one == kind).count()), [70, 20, 6, 4]);
}

/// The record of some processors has the address of the next instruction, whose operand is another.
#[test]
fn the_operand_of_the_next_instruction_names_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = [loads(3, function("value"), 0x5000_0000, 40), loads(2, function("value"), known("table.count"), 40)];
    let named = Named::new(&folder, &recording(&folder, &script.concat(), PreciseKind::PreciseNext));
    let [nothing, address] = [NamedBy::Nothing, NamedBy::Address];
    assert_eq!(named.kinds(), [nothing, nothing, nothing, address, address]);
}

/// Without the PDB of the recorded build, data has no name, and the image still has the operand.
#[test]
fn a_pdb_of_another_build_names_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = [loads(1, function("value"), 0x5000_0000, 40), loads(1, ELSEWHERE, known("table.count"), 40)];
    let file = recording(&folder, &script.concat(), PreciseKind::Precise);
    for name in ["objects", "pointers"] {
        fs::write(folder.path().join(format!("{name}.pdb")), program("records.pdb")).unwrap();
    }
    assert_eq!(Named::new(&folder, &file).kinds(), [NamedBy::Operand, NamedBy::Nothing]);
}
