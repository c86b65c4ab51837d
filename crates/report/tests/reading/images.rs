//! Names of code in images without a PDB: no function is called what its file does not call it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use recording::{Block, DebugFile, Module, Process};
use report::{Annotation, Filter, NamePattern, Reason, SymbolFinder, SymbolIndex};

use super::pe_image::{FUNCTION, GO, PeImage, TIMESTAMP, UNTYPED};
use super::support::{APP, CYCLES, file, read, sample};
use super::symbols::{folder, given, location, look_up, pdb, public_pdb, recorded};

/// GUID of the PDB among the fixtures.
const GUID: [u32; 4] = [0xFB43_168B, 0xADCA_D573, 0x2044_4C4C, 0x2E42_4450];

/// The module app.exe with the bytes of an image.
fn app() -> Module {
    Module {
        base: APP,
        size: PeImage::size().into(),
        path: "C:\\app\\app.exe".to_owned(),
        timestamp: TIMESTAMP,
        image_size: PeImage::size(),
        debug: None,
    }
}

/// Returns the names at these offsets in an image, and why there are not more.
fn names(image: &PeImage, offsets: &[u64]) -> (Vec<String>, Option<Reason>) {
    let folder = folder(&[("app.exe", &image.bytes())]);
    look_up(&app(), offsets, &given(folder.path()))
}

/// Code of 0x100 bytes: one `ret` after another.
fn code() -> Vec<u8> {
    vec![0xC3; 0x100]
}

#[test]
fn a_function_without_a_name_is_its_offset_with_all_its_parts() {
    let unwind = vec![
        ([0x1000, 0x1010], None),
        ([0x1010, 0x1020], Some([0x1000, 0x1010])),
        ([0x1020, 0x1030], None),
        // A part that was moved away.
        ([0x1080, 0x1090], Some([0x1000, 0x1010])),
    ];
    let image = PeImage { code: code(), unwind, ..PeImage::default() };
    let (names, missing) = names(&image, &[0x1000, 0x1015, 0x1025, 0x1085, 0x1095]);
    assert_eq!(names, ["app.exe+0x1000", "app.exe+0x1000", "app.exe+0x1020", "app.exe+0x1000", "app.exe+0x1095"]);
    assert_eq!(missing, Some(Reason::NotFound));
}

#[test]
fn an_export_names_its_own_code_only() {
    let unwind = vec![([0x1010, 0x1020], None), ([0x1020, 0x1028], Some([0x1010, 0x1020])), ([0x1040, 0x1050], None)];
    let mut code = code();
    // Two instructions and a return.
    code[..3].copy_from_slice(&[0x90, 0x90, 0xC3]);
    let exports = vec![("leaf", 0x1000), ("unwound", 0x1010)];
    let image = PeImage { code, unwind, exports, ..PeImage::default() };
    let offsets = [0x1000, 0x1002, 0x1003, 0x100F, 0x1010, 0x1027, 0x1028, 0x1045];
    let (names, missing) = names(&image, &offsets);
    let found = ["leaf", "leaf", "app.exe+0x1003", "app.exe+0x100f", "unwound", "unwound", "app.exe+0x1028"];
    assert_eq!(names[..7], found);
    assert_eq!(names[7], "app.exe+0x1040");
    assert_eq!(missing, Some(Reason::OnlyExports));
}

#[test]
fn an_export_without_a_name_ends_the_one_before_it() {
    let mut code = code();
    code[..2].copy_from_slice(&[0x74, 0x10]);
    let image = |exports| PeImage { code: code.clone(), exports, ..PeImage::default() };
    // The branch shows that the function has the code behind the first return.
    assert_eq!(names(&image(vec![("first", 0x1000)]), &[0x1002, 0x1003]).0, ["first", "app.exe+0x1003"]);
    let (names, missing) = names(&image(vec![("", 0x1001), ("first", 0x1000)]), &[0x1000, 0x1001]);
    assert_eq!(names, ["first", "app.exe+0x1001"]);
    assert_eq!(missing, Some(Reason::OnlyExports));
}

#[test]
fn no_note_tells_that_symbols_are_missing_if_all_code_has_a_name() {
    let image = PeImage { code: code(), exports: vec![("leaf", 0x1000)], ..PeImage::default() };
    assert_eq!(names(&image, &[0x1000]), (vec!["leaf".to_owned()], None));
}

#[test]
fn symbols_of_any_type_name_functions_but_not_their_inside() {
    let unwind = vec![([0x1000, 0x1020], None), ([0x1020, 0x1040], None)];
    for kind in [FUNCTION, GO, UNTYPED] {
        let symbols = vec![("main.main", 0x1000, kind, true), ("main.work", 0x1020, kind, false)];
        let image = PeImage { code: code(), unwind: unwind.clone(), symbols, ..PeImage::default() };
        let (names, missing) = names(&image, &[0x1000, 0x101F, 0x1020]);
        assert_eq!(names, ["main.main", "main.main", "main.work"], "{kind:#x}");
        assert_eq!(missing, None);
    }
    let symbols = vec![("loop", 0x1008, UNTYPED, false), ("main", 0x1000, FUNCTION, true)];
    let image = PeImage { code: code(), unwind, symbols, ..PeImage::default() };
    assert_eq!(names(&image, &[0x1008, 0x1020]).0, ["main", "app.exe+0x1020"]);
}

#[test]
fn names_keep_their_underscores() {
    let symbols = vec![("__mod_MOD_step", 0x1000, FUNCTION, true), ("_initterm", 0x1010, FUNCTION, true)];
    let image = PeImage { code: code(), symbols, ..PeImage::default() };
    assert_eq!(names(&image, &[0x1000, 0x1010]).0, ["__mod_MOD_step", "_initterm"]);
}

#[test]
fn names_have_no_control_characters() {
    let symbols = vec![("a\u{1b}[2Jb", 0x1000, FUNCTION, true)];
    let image = PeImage { code: code(), symbols, exports: vec![("c\u{1b}d", 0x1010)], ..PeImage::default() };
    let names = names(&image, &[0x1000, 0x1010]).0;
    assert!(names.iter().all(|name| !name.contains(char::is_control) && name.len() > 1), "{names:?}");
}

#[test]
fn a_folded_function_says_how_many_it_stands_for() {
    let symbols = vec![
        ("_ZN1A3getEv", 0x1000, FUNCTION, true),
        ("_ZN1B3getEv", 0x1000, FUNCTION, true),
        ("size", 0x1000, FUNCTION, false),
        // Two constructors with one name in the source code.
        ("_ZN1AC1Ev", 0x1010, FUNCTION, true),
        ("_ZN1AC2Ev", 0x1010, FUNCTION, true),
    ];
    let image = PeImage { code: code(), symbols, ..PeImage::default() };
    assert_eq!(names(&image, &[0x1000, 0x1010]).0, ["A::get() (+2 folded)", "A::A()"]);
    // A pattern is one of the name.
    let folder = folder(&[("app.exe", &image.bytes())]);
    let contents = read(&recorded(&app(), &[0x1000, 0x1010]));
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &given(folder.path()));
    let filter = Filter { symbols: vec![NamePattern::new("A::get()")], ..Filter::default() };
    assert!(filter.selects_location(&location(0x1000), &symbol_index));
    assert!(!filter.selects_location(&location(0x1010), &symbol_index));
}

#[test]
fn instructions_that_the_decoder_does_not_know_are_bytes_and_the_next_ones_are_right() {
    // add r16, rax; {nf} add ecx, 04030201h; vaddps zmm0, zmm1, [r16]; ret
    let mut code = vec![0xD5, 0x18, 0x01, 0xC0, 0x62, 0xF4, 0x7C, 0x0C, 0x81, 0xC1, 1, 2, 3, 4];
    code.extend([0x62, 0xF9, 0x74, 0x48, 0x58, 0x00, 0xC3]);
    let unwind = vec![([0x1000, 0x1000 + u32::try_from(code.len()).unwrap()], None)];
    let symbols = vec![("work", 0x1000, FUNCTION, true)];
    let image = PeImage { code, unwind, symbols, ..PeImage::default() };
    let folder = folder(&[("app.exe", &image.bytes())]);
    let contents = read(&recorded(&app(), &[0x1004, 0x1006, 0x100E, 0x1014]));
    let finder = given(folder.path());
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &finder);
    let id = symbol_index.symbol_id(&location(0x1004)).unwrap();
    let annotation = Annotation::new(&contents, &symbol_index, id, CYCLES, &Filter::default(), &finder).unwrap();
    let lines: Vec<_> = annotation
        .instructions
        .iter()
        .map(|one| format!("{:x} {} {}", one.address, one.weight.samples, one.text))
        .collect();
    let wanted = [
        "1000 0 bytes d5 18 01 c0",
        "1004 2 bytes 62 f4 7c 0c 81 c1 01 02 03 04",
        "100e 1 bytes 62 f9 74 48 58 00",
        "1014 1 ret",
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn a_debug_link_leads_to_the_file_with_the_symbols() {
    let symbols = vec![("work", 0x1000, FUNCTION, true)];
    let debug = PeImage { code: code(), symbols, ..PeImage::default() }.bytes();
    let stripped =
        |checksum| PeImage { code: code(), debug_link: Some(("app.debug", checksum)), ..PeImage::default() }.bytes();
    let checksum = crc32fast::hash(&debug);
    let image = stripped(checksum);
    let beside = folder(&[("app.exe", &image), ("app.debug", &debug)]);
    assert_eq!(look_up(&app(), &[0x1000], &given(beside.path())), (vec!["work".to_owned()], None));

    // In a folder of its own.
    let (images, symbols) = (folder(&[("app.exe", &image)]), folder(&[("app.debug", &debug)]));
    let finder = SymbolFinder::new(vec![images.path().to_owned(), symbols.path().to_owned()], None, None).unwrap();
    assert_eq!(look_up(&app(), &[0x1000], &finder).0, ["work"]);

    let other = folder(&[("app.exe", &stripped(checksum ^ 1)), ("app.debug", &debug)]);
    let wanted = Reason::OtherBuild(other.path().join("app.debug"));
    assert_eq!(look_up(&app(), &[0x1000], &given(other.path())), (vec!["app.exe+0x1000".to_owned()], Some(wanted)));
}

#[test]
fn a_pdb_of_another_build_is_told_although_the_image_is_present() {
    let pdb_name = Some(("app.pdb".to_owned(), [1, 0, 0, 0]));
    let image = PeImage { code: code(), exports: vec![("leaf", 0x1000)], pdb: pdb_name, ..PeImage::default() };
    let debug = DebugFile { name: "app.pdb".to_owned(), id: "000000010000000000000000000000001".to_owned() };
    let module = Module { debug: Some(debug), ..app() };
    let folder = folder(&[("app.exe", &image.bytes()), ("app.pdb", &pdb())]);
    let (names, missing) = look_up(&module, &[0x1000], &given(folder.path()));
    assert_eq!(names, ["leaf"]);
    assert_eq!(missing, Some(Reason::OtherBuild(folder.path().join("app.pdb"))));
}

/// Go writes zero, Delphi until 2009 one moment of 1992 into every image.
const SAME_IN_ALL_BUILDS: [u32; 2] = [0, 0x2A42_5E19];

#[test]
fn a_file_that_nothing_tells_from_another_build_is_used_and_reported_once() {
    let exports = vec![("leaf", 0x1000)];
    for timestamp in SAME_IN_ALL_BUILDS {
        let image = PeImage { timestamp, code: code(), exports: exports.clone(), ..PeImage::default() };
        let folder = folder(&[("app.exe", &image.bytes())]);
        let module = Module { timestamp, ..app() };
        // The module is in two processes.
        let process = |id| Process { id, created: None, name: "app.exe".to_owned(), modules: vec![module.clone()] };
        let samples = [8, 9].map(|id| sample(CYCLES, id, APP + 0x1000, 1).into()).to_vec();
        let recording = file(&[Block::Process(process(8)), Block::Process(process(9)), Block::Samples(samples)]);
        let contents = read(&recording);
        let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &given(folder.path()));
        assert_eq!(symbol_index.symbol(&location(0x1000)), "leaf");
        let reasons: Vec<&Reason> = symbol_index.missing().iter().map(|missing| &missing.reason).collect();
        assert_eq!(reasons, [&Reason::Unverified(folder.path().join("app.exe"))], "{timestamp:#x}");
    }
    // Another lack is reported as well.
    let folder = folder(&[("app.exe", &PeImage { timestamp: 0, code: code(), exports, ..PeImage::default() }.bytes())]);
    let contents = read(&recorded(&Module { timestamp: 0, ..app() }, &[0x1000, 0x1050]));
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &given(folder.path()));
    let reasons: Vec<&Reason> = symbol_index.missing().iter().map(|missing| &missing.reason).collect();
    assert_eq!(reasons, [&Reason::OnlyExports, &Reason::Unverified(folder.path().join("app.exe"))]);
}

#[test]
fn a_pdb_whose_id_is_zero_is_used_and_reported() {
    let mut pdb = pdb();
    let guid: Vec<u8> = GUID.iter().flat_map(|word| word.to_le_bytes()).collect();
    while let Some(id) = pdb.windows(16).position(|bytes| bytes == guid) {
        pdb[id..id + 16].fill(0);
    }
    let debug = DebugFile { name: "functions.pdb".to_owned(), id: format!("{}1", "0".repeat(32)) };
    let folder = folder(&[("functions.pdb", &pdb)]);
    let module = Module { debug: Some(debug), timestamp: 0, ..app() };
    let wanted = (vec!["functions::alpha()".to_owned()], Some(Reason::Unverified(folder.path().join("functions.pdb"))));
    assert_eq!(look_up(&module, &[0x1020], &given(folder.path())), wanted);
}

#[test]
fn an_image_that_names_another_pdb_than_the_recorded_one_is_of_another_build() {
    let exports = vec![("leaf", 0x1000)];
    let debug = |first: u32| DebugFile { name: "app.pdb".to_owned(), id: format!("{first:08X}{}1", "0".repeat(24)) };
    let image = |pdb| PeImage { timestamp: 0, code: code(), exports: exports.clone(), pdb, ..PeImage::default() };
    let module = |debug| Module { timestamp: 0, debug, ..app() };
    let named = Some(("app.pdb".to_owned(), [1, 0, 0, 0]));
    for (pdb, recorded, is_same) in [(named.clone(), 1, true), (named, 2, false), (None, 1, false)] {
        let folder = folder(&[("app.exe", &image(pdb).bytes())]);
        let path = folder.path().join("app.exe");
        let (name, reason) = if is_same { ("leaf", None) } else { ("app.exe+0x1000", Some(Reason::OtherBuild(path))) };
        let module = module(Some(debug(recorded)));
        assert_eq!(look_up(&module, &[0x1000], &given(folder.path())), (vec![name.to_owned()], reason));
    }
}

/// Symbols that are kept are those of the file that is there now.
#[test]
fn a_file_that_nothing_tells_from_another_build_is_read_again_when_it_changes() {
    let image = |name| PeImage { timestamp: 0, code: code(), exports: vec![(name, 0x1000)], ..PeImage::default() };
    let folder = folder(&[("app.exe", &image("leaf").bytes())]);
    let finder = given(folder.path()).with_cache();
    let module = Module { timestamp: 0, ..app() };
    assert_eq!(look_up(&module, &[0x1000], &finder).0, ["leaf"]);
    let path = folder.path().join("app.exe");
    let modified = fs::metadata(&path).unwrap().modified().unwrap() + Duration::from_secs(2);
    fs::write(&path, image("twig").bytes()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(look_up(&module, &[0x1000], &finder).0, ["twig"]);
}

/// Microsoft's PDBs have no names of static functions: the code behind a public name is often another function's.
#[test]
fn a_public_name_of_a_pdb_names_its_own_code_only() {
    let (pdb, debug) = public_pdb();
    let unwind = vec![([0x1000, 0x1008], None), ([0x1008, 0x1010], None), ([0x1010, 0x1018], Some([0x1000, 0x1008]))];
    let pdb_name = Some((debug.name.clone(), [0xCA03_220C, 0x5DEA_9055, 0x2044_4C4C, 0x2E42_4450]));
    let image = PeImage { code: code(), unwind, pdb: pdb_name, ..PeImage::default() };
    let module = Module { debug: Some(debug), ..app() };
    let offsets = [0x1004, 0x100C, 0x1014, 0x101C, 0x1020, 0x1028];
    let with_image = folder(&[("app.exe", &image.bytes()), ("folded.pdb", &pdb)]);
    let (names, _) = look_up(&module, &offsets, &given(with_image.path()));
    let step = "__mod_MOD_step";
    assert_eq!(names, [step, "app.exe+0x1008", step, "app.exe+0x101c", "entry", "app.exe+0x1028"]);
    // Without the image nothing says where functions end.
    let alone = folder(&[("folded.pdb", &pdb)]);
    let (names, _) = look_up(&module, &offsets, &given(alone.path()));
    assert_eq!(names, [step, step, step, step, "entry", "entry"]);
}

#[test]
fn a_file_is_not_opened_relative_to_the_current_directory_because_another_one_names_it() {
    // The tests run in the folder of the crate, so this is a relative path of the file.
    let here = tempfile::tempdir_in(".").unwrap();
    fs::write(here.path().join("functions.pdb"), pdb()).unwrap();
    fs::write(here.path().join("functions.exe"), include_bytes!("../fixtures/functions.exe")).unwrap();
    let relative = Path::new(".").join(here.path().file_name().unwrap());
    let named = |name: &str| relative.join(name).to_str().unwrap().to_owned();

    // An image names its PDB.
    let image = PeImage { code: code(), pdb: Some((named("functions.pdb"), GUID)), ..PeImage::default() };
    assert_eq!(names(&image, &[0x1000]).0, ["app.exe+0x1000"]);

    // A recording names its modules.
    let nowhere = SymbolFinder::new(Vec::new(), None, None).unwrap();
    let id = "FB43168BD573ADCA4C4C44205044422E1".to_owned();
    let debug = DebugFile { name: named("functions.pdb"), id };
    for (module, name) in [
        (Module { debug: Some(debug), ..app() }, "app.exe"),
        (Module { path: named("functions.exe"), timestamp: 0x6B01_31C8, image_size: 53248, ..app() }, "functions.exe"),
    ] {
        let wanted = (vec![format!("{name}+0x1020")], Some(Reason::NotFound));
        assert_eq!(look_up(&module, &[0x1020], &nowhere), wanted);
    }
}

#[test]
fn a_name_with_a_drive_or_of_a_folder_is_no_file_of_a_folder() {
    // On Windows, joined to a folder they are files elsewhere.
    let image = PeImage { code: code(), exports: vec![("leaf", 0x1000)], ..PeImage::default() };
    let folder = folder(&[("C:app.exe", &image.bytes())]);
    for path in ["C:app.exe", "C:\\app\\..", "C:\\app\\"] {
        let module = Module { path: path.to_owned(), ..app() };
        assert_eq!(look_up(&module, &[0x1000], &given(folder.path())).1, Some(Reason::NotFound), "{path}");
    }
}
