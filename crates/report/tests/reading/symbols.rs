//! Symbols of real images; see `fixtures/README.md`.

use std::fs;
use std::io::Cursor;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use flate2::read::GzDecoder;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use recording::{Block, CallStack, DebugFile, Module, Process, SampleStack, StackEnd, Writer};
use report::{
    Column, Contents, Detail, Filter, NamePattern, Reason, SampleLocation, SymbolFinder, SymbolIndex, Table, firefox,
    script,
};
use serde_json::Value;
use tempfile::TempDir;

use super::support::{APP, CYCLES, file, read, sample, session, summary};

const DLL: &[u8] = include_bytes!("../fixtures/functions.dll");
const PDB: &[u8] = include_bytes!("../fixtures/functions.pdb.gz");
const FOLDED: &[u8] = include_bytes!("../fixtures/folded.pdb.gz");
const EXE: &[u8] = include_bytes!("../fixtures/functions.exe");

pub fn pdb() -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(PDB).read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn dll() -> Module {
    let debug = DebugFile { name: "functions.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E1".to_owned() };
    Module {
        base: APP,
        size: 20480,
        path: "C:\\fixtures\\functions.dll".to_owned(),
        timestamp: 0x52AB_7D57,
        image_size: 20480,
        debug: Some(debug),
    }
}

fn exe() -> Module {
    Module {
        size: 53248,
        path: "C:\\fixtures\\functions.exe".to_owned(),
        timestamp: 0x6B01_31C8,
        image_size: 53248,
        debug: None,
        ..dll()
    }
}

/// Creates a folder with these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

pub fn given(folder: &Path) -> SymbolFinder {
    SymbolFinder::new(vec![folder.to_owned()], None, None).unwrap()
}

pub fn location(offset: u64) -> SampleLocation {
    let ip = APP + offset;
    SampleLocation {
        stack: recording::StackId::NOT_RECORDED,
        event: CYCLES,
        core_type: 0,
        process: 8.into(),
        thread: 0,
        processor: 0,
        parallelism: 0,
        kernel: false,
        ip,
    }
}

/// Returns a recording with a sample at each of these offsets in `module`.
pub fn recorded(module: &Module, offsets: &[u64]) -> Vec<u8> {
    let process = Process { id: 8, created: None, name: "app.exe".to_owned(), modules: vec![module.clone()] };
    let samples = offsets.iter().map(|offset| sample(CYCLES, 8, APP + offset, 1).into()).collect();
    file(&[Block::Process(process), Block::Samples(samples)])
}

/// Returns the names at these offsets in `module`, and the reason if no symbols were found.
pub fn look_up(module: &Module, offsets: &[u64], finder: &SymbolFinder) -> (Vec<String>, Option<Reason>) {
    let contents = Contents::read(&mut Cursor::new(recorded(module, offsets)), Detail::default()).unwrap();
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), finder);
    let names = offsets.iter().map(|offset| symbol_index.symbol(&location(*offset)).into_owned()).collect();
    (names, symbol_index.missing().first().map(|missing| missing.reason.clone()))
}

#[test]
fn pdb_names_every_function_from_its_first_byte_to_its_last() {
    let folder = folder(&[("functions.pdb", &pdb())]);
    let (names, missing) = look_up(&dll(), &[0x1000, 0x1010, 0x1020, 0x1030, 0x1040, 0x105D], &given(folder.path()));
    let [beta, alpha, entry] = ["functions::inner::beta()", "functions::alpha()", "functions::entry()"];
    assert_eq!(names, [beta, beta, alpha, alpha, entry, entry]);
    assert_eq!(missing, None);
}

/// Returns a PDB with public names only, and its name and build.
pub fn public_pdb() -> (Vec<u8>, DebugFile) {
    let mut pdb = Vec::new();
    GzDecoder::new(FOLDED).read_to_end(&mut pdb).unwrap();
    (pdb, DebugFile { name: "folded.pdb".to_owned(), id: "CA03220C90555DEA4C4C44205044422E1".to_owned() })
}

#[test]
fn names_in_a_pdb_keep_their_underscores_and_say_what_was_folded() {
    let (pdb, debug) = public_pdb();
    let folder = folder(&[("folded.pdb", &pdb)]);
    let module = Module { debug: Some(debug), ..dll() };
    let (names, missing) = look_up(&module, &[0x1000, 0x1060], &given(folder.path()));
    assert_eq!(names[0], "__mod_MOD_step");
    let shared = ["first (+2 folded)", "second (+2 folded)", "third (+2 folded)"];
    assert!(shared.contains(&names[1].as_str()), "{names:?}");
    assert_eq!(missing, None);
}

#[test]
fn inlined_functions_are_frames_below_the_symbol() {
    let folder = folder(&[("functions.pdb", &pdb())]);
    let bytes = recorded(&dll(), &[0x1020, 0x1027, 0x1028, 0x1030, 0x1053]);
    let contents = Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &given(folder.path()));
    let [fetch_add, atomic_add] = ["core::sync::atomic::AtomicU32::fetch_add()", "core::sync::atomic::atomic_add()"];
    for (offset, wanted) in [
        (0x1020, &["functions::alpha()", fetch_add, atomic_add][..]),
        (0x1030, &["functions::alpha()"]),
        (0x1053, &["functions::entry()", "core::sync::atomic::AtomicU32::load()", "core::sync::atomic::atomic_load()"]),
    ] {
        let names: Vec<_> = symbol_index.names(&location(offset)).map(|[plain, _]| plain).collect();
        assert_eq!(names, wanted, "{offset:#x}");
        assert_eq!(symbol_index.inlined(&location(offset)).collect::<Vec<_>>(), &wanted[1..], "{offset:#x}");
        assert_eq!(symbol_index.symbol(&location(offset)), wanted[0], "{offset:#x}");
    }
    let table = |column| Table::new(&contents, &symbol_index, CYCLES, &[column], &Filter::default());
    let symbols = |column| {
        let rows = table(column).sorted_rows().into_iter();
        rows.map(|row| format!("{} {}", row.weight.samples, row.symbol.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(symbols(Column::Symbol), ["4 functions::alpha()", "1 functions::entry()"]);
    assert_eq!(
        symbols(Column::InlinedSymbol),
        [
            "2 core::sync::atomic::atomic_add() (inlined)",
            "1 core::sync::atomic::atomic_load() (inlined)",
            "1 core::sync::atomic::atomic_xor() (inlined)",
            "1 functions::alpha()",
        ]
    );
    for (pattern, samples) in [
        ("functions::alpha()", 4),
        ("*atomic_add()", 2),
        ("core::..omic_add() (inlined)", 2),
        ("*load*", 1),
        ("alpha", 0),
    ] {
        let filter = Filter { symbols: vec![NamePattern::new(pattern)], ..Filter::default() };
        let selected = Table::new(&contents, &symbol_index, CYCLES, &[], &filter).selected;
        assert_eq!(selected.samples, samples, "{pattern}");
    }
    let stacks = report::folded(&contents, &symbol_index, CYCLES, &Filter::default());
    assert!(
        stacks.contains(&format!("app.exe;functions.dll;functions::alpha();{fetch_add};{atomic_add} 2")),
        "{stacks:?}"
    );
    let mut text = Vec::new();
    script(&contents, &symbol_index, &Filter::default(), &mut Cursor::new(&bytes), &mut text).unwrap();
    let mut collapsed = Vec::new();
    Folder::from(Options::default()).collapse(text.as_slice(), &mut collapsed).unwrap();
    let collapsed = String::from_utf8(collapsed).unwrap();
    let names = format!("app.exe;functions::alpha();{fetch_add};{atomic_add} 2\n").replace("()", "");
    assert!(collapsed.contains(&names), "{collapsed}");
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(" functions::alpha()+0x10 (functions.dll)\n"), "{text}");
    let mut profile = Vec::new();
    firefox(&contents, &symbol_index, &Filter::default(), u64::MAX, &mut Cursor::new(&bytes), &mut profile).unwrap();
    let profile: Value = serde_json::from_slice(&profile).unwrap();
    let thread =
        profile["threads"].as_array().unwrap().iter().find(|thread| thread["processName"] == "app.exe").unwrap();
    let names = thread["stringArray"].as_array().unwrap();
    let index = names.iter().position(|name| name == atomic_add).unwrap();
    let function = thread["funcTable"]["name"].as_array().unwrap().iter().position(|name| *name == index).unwrap();
    let frame = thread["frameTable"]["func"].as_array().unwrap().iter().position(|one| *one == function).unwrap();
    let stack_table = &thread["stackTable"];
    let stack = stack_table["frame"].as_array().unwrap().iter().position(|one| *one == frame).unwrap();
    // Two callers: the function into which it is inlined, and the symbol.
    let caller = stack_table["prefix"][stack].as_u64().unwrap();
    let caller = stack_table["prefix"][usize::try_from(caller).unwrap()].as_u64().unwrap();
    assert!(stack_table["prefix"][usize::try_from(caller).unwrap()].is_null());
}

#[test]
fn inlined_functions_of_callers_are_frames_of_their_own() {
    let folder = folder(&[("functions.pdb", &pdb())]);
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    let modules = vec![dll()];
    writer.process(&Process { id: 8, created: None, name: "app.exe".to_owned(), modules }).unwrap();
    // The call is in the last byte of the inlined function.
    let stack = CallStack { callers: vec![APP + 0x1054], end: StackEnd::Complete };
    let sampled = (sample(CYCLES, 8, APP + 0x1020, 1).into(), SampleStack::Stack(stack));
    writer.stacked_samples(&[sampled]).unwrap();
    let contents = read(&writer.finish(&summary()).unwrap());
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &given(folder.path()));
    let atomic = "core::sync::atomic";
    assert_eq!(
        report::folded(&contents, &symbol_index, CYCLES, &Filter::default()),
        [format!(
            "app.exe;functions::entry();{atomic}::AtomicU32::load()_[i];{atomic}::atomic_load()_[i];\
             functions::alpha();{atomic}::AtomicU32::fetch_add()_[i];{atomic}::atomic_add()_[i] 1"
        )]
    );
}

#[test]
fn mingw_image_names_its_functions_including_static_ones() {
    let folder = folder(&[("functions.exe", EXE)]);
    let (names, missing) = look_up(&exe(), &[0x1000, 0x101E, 0x101F, 0x103D, 0x103E], &given(folder.path()));
    assert_eq!(names, ["beta", "beta", "alpha", "alpha", "entry"]);
    assert_eq!(missing, None);
}

#[test]
fn image_without_pdb_names_its_exports() {
    let folder = folder(&[("functions.dll", DLL)]);
    let (names, missing) = look_up(&dll(), &[0x1020, 0x1028, 0x1040], &given(folder.path()));
    assert_eq!(names, ["alpha", "alpha", "entry"]);
    assert_eq!(missing, None);
}

#[test]
fn only_files_of_the_recorded_build_are_used() {
    let other_id = DebugFile { name: "functions.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E2".to_owned() };
    let pdb = pdb();
    let both = folder(&[("functions.pdb", &pdb), ("functions.dll", DLL), ("functions.exe", EXE)]);
    let images = folder(&[("functions.dll", DLL), ("functions.exe", EXE)]);
    let path = |folder: &TempDir, name| folder.path().join(name);
    for (module, folder, file) in [
        (Module { timestamp: 1, ..exe() }, &both, "functions.exe"),
        (Module { image_size: 53249, ..exe() }, &both, "functions.exe"),
        (Module { timestamp: 1, ..dll() }, &images, "functions.dll"),
        (Module { debug: Some(other_id), image_size: 0, ..dll() }, &both, "functions.pdb"),
    ] {
        let (names, missing) = look_up(&module, &[0x1020], &given(folder.path()));
        assert_eq!(names, [format!("{}+0x1020", module.path.trim_start_matches("C:\\fixtures\\"))]);
        assert_eq!(missing, Some(Reason::OtherBuild(path(folder, file))));
    }
}

#[test]
fn addresses_stay_offsets_without_a_readable_file() {
    let empty = folder(&[]);
    let (names, missing) = look_up(&exe(), &[0x1020], &given(empty.path()));
    assert_eq!((names, missing), (vec!["functions.exe+0x1020".to_owned()], Some(Reason::NotFound)));

    let without_build = Module { image_size: 0, ..exe() };
    assert_eq!(look_up(&without_build, &[0x1020], &given(empty.path())).1, Some(Reason::UnknownBuild));

    let pdb = pdb();
    for (bytes, name, module) in [
        (&b"MZ, but no image"[..], "functions.exe", exe()),
        (&EXE[..100], "functions.exe", exe()),
        (&pdb[..5000], "functions.pdb", dll()),
        (b"", "functions.pdb", dll()),
    ] {
        let folder = folder(&[(name, bytes)]);
        let (names, missing) = look_up(&module, &[0x1020], &given(folder.path()));
        assert!(names[0].ends_with("+0x1020"), "{names:?}");
        let wanted = folder.path().join(name);
        assert!(matches!(&missing, Some(Reason::Unreadable { path, .. }) if *path == wanted), "{missing:?}");
    }
}

#[test]
fn symbols_are_found_in_given_folders_at_the_recorded_path_and_beside_the_recording() {
    let folder = folder(&[("functions.exe", EXE)]);
    let nowhere = || SymbolFinder::new(Vec::new(), None, None).unwrap();
    let recorded = Module { path: folder.path().join("functions.exe").to_str().unwrap().to_owned(), ..exe() };
    let beside = SymbolFinder::new(Vec::new(), Some(folder.path().to_owned()), None).unwrap();
    let several = SymbolFinder::new(vec![PathBuf::from("nowhere"), folder.path().to_owned()], None, None).unwrap();
    for (module, finder) in [(&recorded, &nowhere()), (&exe(), &beside), (&exe(), &several)] {
        assert_eq!(look_up(module, &[0x1020], finder).0, ["alpha"]);
    }
    assert_eq!(look_up(&exe(), &[0x1020], &nowhere()).1, Some(Reason::NotFound));
}

#[test]
fn symbol_path_names_stores_with_the_layout_of_symbol_servers() {
    let store = tempfile::tempdir().unwrap();
    let inside = store.path().join("functions.pdb").join("FB43168BD573ADCA4C4C44205044422E1");
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("functions.pdb"), pdb()).unwrap();
    let finder = |path: String| SymbolFinder::new(Vec::new(), None, Some(path)).unwrap();
    let path = store.path().to_str().unwrap();
    for symbol_path in [format!("srv*{path}"), path.to_owned()] {
        assert_eq!(look_up(&dll(), &[0x1000], &finder(symbol_path)).0, ["functions::inner::beta()"]);
    }
    assert_eq!(look_up(&dll(), &[0x1000], &finder(" ".to_owned())).1, Some(Reason::NotFound));
}

/// Serves the PDB under its name and build ID like a symbol server, and 404 for every other request.
fn serve(listener: &TcpListener, body: &[u8]) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let request = BufReader::new(&stream).lines().next().unwrap().unwrap();
        let wanted = "GET /functions.pdb/FB43168BD573ADCA4C4C44205044422E1/functions.pdb HTTP/1.1";
        let (status, body) = if request == wanted { ("200 OK", body) } else { ("404 Not Found", &[][..]) };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
        stream.write_all(body).unwrap();
    }
}

#[test]
fn symbol_server_response_is_cached() {
    let cache = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve(&listener, &pdb()));
    let finder = |port: u16| {
        let path = format!("srv*{}*http://127.0.0.1:{port}", cache.path().display());
        SymbolFinder::new(Vec::new(), None, Some(path)).unwrap()
    };
    assert_eq!(look_up(&dll(), &[0x1000], &finder(port)).0, ["functions::inner::beta()"]);
    let closed_port = 1;
    assert_eq!(look_up(&dll(), &[0x1000], &finder(closed_port)).0, ["functions::inner::beta()"]);
    let other = DebugFile { name: "functions.pdb".to_owned(), id: "FB43168BD573ADCA4C4C44205044422E2".to_owned() };
    let other = Module { debug: Some(other), ..dll() };
    assert_eq!(look_up(&other, &[0x1000], &finder(port)).1, Some(Reason::NotFound));
}
