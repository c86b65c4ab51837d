//! Folders with the layout of symbol stores.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use cab::{CabinetBuilder, CompressionType};
use http_server::{Server, answer};
use recording::{DebugFile, Module};
use report::{Reason, SymbolFinder};
use tempfile::TempDir;

use super::pe_image::PeImage;
use super::support::APP;
use super::symbols::{dll, look_up, pdb};

/// The build of the PDB among the fixtures.
const KEY: &str = "FB43168BD573ADCA4C4C44205044422E1";

/// Returns a folder with these files, in folders of their own.
fn store(files: &[(&str, &[u8])]) -> TempDir {
    let store = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        let path = store.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    store
}

/// Returns finders that get a folder by an option, and by the symbol path: as a folder, and as a store.
fn finders(folder: &Path) -> [SymbolFinder; 4] {
    let text = folder.to_str().unwrap();
    let by_path = |path: String| SymbolFinder::new(Vec::new(), None, Some(path)).unwrap();
    [
        SymbolFinder::new(vec![folder.to_owned()], None, None).unwrap(),
        by_path(text.to_owned()),
        by_path(format!("nowhere;;{text}")),
        by_path(format!("srv*{text}")),
    ]
}

/// Asserts that each finder names the first function of the PDB, or says why not.
fn assert_found(store: &TempDir, wanted: &Result<(), Reason>) {
    for (index, finder) in finders(store.path()).iter().enumerate() {
        let found = look_up(&dll(), &[0x1000], finder);
        match wanted {
            Ok(()) => assert_eq!(found, (vec!["functions::inner::beta()".to_owned()], None), "{index}"),
            Err(reason) => {
                assert_eq!(found, (vec!["functions.dll+0x1000".to_owned()], Some(reason.clone())), "{index}");
            }
        }
    }
}

#[test]
fn a_folder_is_flat_or_a_store_with_one_tier_or_two() {
    let pdb = pdb();
    assert_found(&store(&[("functions.pdb", &pdb)]), &Ok(()));
    let one = format!("functions.pdb/{KEY}/functions.pdb");
    assert_found(&store(&[(&one, &pdb)]), &Ok(()));
    let two = format!("fu/{one}");
    assert_found(&store(&[(&two, &pdb), ("index2.txt", b"")]), &Ok(()));
    // Without the file, a store has one tier.
    assert_found(&store(&[(&two, &pdb)]), &Err(Reason::NotFound));
}

#[test]
fn the_file_of_another_build_does_not_hide_that_of_the_recorded_one() {
    let other = {
        let mut bytes = Vec::new();
        let compressed = include_bytes!("../fixtures/folded.pdb.gz");
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&compressed[..]), &mut bytes).unwrap();
        bytes
    };
    let right = format!("fu/functions.pdb/{KEY}/functions.pdb");
    let both = [("functions.pdb", &other[..]), (&right, &pdb()), ("index2.txt", b"")];
    assert_found(&store(&both), &Ok(()));
    let wrong = store(&[("functions.pdb", &other)]);
    assert_found(&wrong, &Err(Reason::OtherBuild(wrong.path().join("functions.pdb"))));
}

#[test]
fn an_entry_can_point_to_a_file_elsewhere() {
    let elsewhere = store(&[("real.pdb", &pdb())]);
    let path = elsewhere.path().join("real.pdb");
    let pointer = format!("functions.pdb/{KEY}/file.ptr");
    for text in [format!("PATH:{}", path.display()), format!("{}\r\n", path.display())] {
        assert_found(&store(&[(&pointer, text.as_bytes())]), &Ok(()));
    }
    for (text, cause) in [
        ("PATH:real.pdb", "it has no absolute path, but \"real.pdb\""),
        ("MSG: ask the build team\u{1b}", "it says: ask the build team"),
    ] {
        let store = store(&[(&pointer, text.as_bytes())]);
        let found = look_up(&dll(), &[0x1000], &finders(store.path())[0]).1.unwrap();
        let Reason::Unreadable { path, cause: found } = found else { panic!("{found}") };
        assert_eq!(path, store.path().join(&pointer));
        assert!(found.starts_with(cause) && !found.contains(char::is_control), "{found}");
    }
}

#[test]
fn images_are_found_in_stores_by_time_stamp_and_size() {
    let code = vec![0xC3; 0x10];
    let image = PeImage { timestamp: 0xABC, code, exports: vec![("leaf", 0x1000)], ..PeImage::default() };
    let path = format!("app.exe/00000ABC{:x}/app.exe", PeImage::size());
    let store = store(&[(&path, &image.bytes())]);
    let module = Module {
        base: APP,
        size: PeImage::size().into(),
        path: "C:\\app\\app.exe".to_owned(),
        timestamp: 0xABC,
        image_size: PeImage::size(),
        debug: None,
    };
    for finder in finders(store.path()) {
        assert_eq!(look_up(&module, &[0x1000], &finder).0, ["leaf"]);
    }
}

#[test]
fn a_name_that_leads_out_of_a_store_is_not_searched_for() {
    let outside = store(&[("functions.pdb", &pdb()), ("store/index2.txt", b"")]);
    let debug = Some(DebugFile { name: "..".to_owned(), id: KEY.to_owned() });
    let module = Module { debug, image_size: 0, ..dll() };
    let folder: PathBuf = outside.path().join("store");
    for finder in finders(&folder) {
        assert_eq!(look_up(&module, &[0x1000], &finder).1, Some(Reason::NotFound));
    }
}

/// Returns a cabinet with one file.
fn cabinet(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut builder = CabinetBuilder::new();
    builder.add_folder(CompressionType::MsZip).add_file(name);
    let mut writer = builder.build(Cursor::new(Vec::new())).unwrap();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn packed_files_of_stores_are_unpacked_once() {
    let packed = cabinet("functions.pdb", &pdb());
    let one = format!("functions.pdb/{KEY}/functions.pd_");
    let two = format!("fu/{one}");
    for files in [&[(one.as_str(), packed.as_slice())][..], &[(&two, &packed), ("index2.txt", b"")]] {
        let store = store(files);
        let given = || vec![store.path().to_owned()];
        let as_path = format!(";{}", store.path().display());
        for (given, symbol_path) in [(given(), ""), (Vec::new(), as_path.as_str())] {
            let cache = tempfile::tempdir().unwrap();
            let symbol_path = format!("cache*{}{symbol_path}", cache.path().display());
            let finder = SymbolFinder::new(given, None, Some(symbol_path)).unwrap();
            let names = || look_up(&dll(), &[0x1000], &finder);
            let wanted = (vec!["functions::inner::beta()".to_owned()], None);
            assert_eq!(names(), wanted, "{files:?}", files = files.iter().map(|file| file.0).collect::<Vec<_>>());
            let unpacked = cache.path().join(format!("functions.pdb/{KEY}/functions.pdb"));
            let written = || fs::metadata(&unpacked).unwrap().modified().unwrap();
            let before = written();
            assert_eq!(names(), wanted);
            assert_eq!(written(), before);
        }
    }
}

#[test]
fn a_packed_file_that_is_damaged_is_told() {
    let packed = cabinet("functions.pdb", &pdb());
    let path = format!("functions.pdb/{KEY}/functions.pd_");
    for packed in [&b"MSCF, but no cabinet"[..], &packed[..packed.len() / 2]] {
        let (store, cache) = (store(&[(&path, packed)]), tempfile::tempdir().unwrap());
        let symbol_path = format!("cache*{}", cache.path().display());
        let finder = SymbolFinder::new(vec![store.path().to_owned()], None, Some(symbol_path)).unwrap();
        let (names, missing) = look_up(&dll(), &[0x1000], &finder);
        assert_eq!(names, ["functions.dll+0x1000"]);
        let Some(Reason::Unreadable { path: told, .. }) = missing else { panic!("{missing:?}") };
        assert_eq!(told, store.path().join(&path));
    }
}

/// Returns a server of these files, and the requests that it got.
fn serve(files: Vec<(String, Vec<u8>)>) -> Server {
    Server::start(0, move |request| {
        let file = files.iter().find(|(path, _)| request.target == format!("GET /symbols/{path}"));
        file.map_or_else(|| answer("404 Not Found", b""), |(_, bytes)| answer("200 OK", bytes))
    })
}

#[test]
fn a_symbol_server_has_one_tier_or_two() {
    let other = DebugFile { name: "other.pdb".to_owned(), id: KEY.to_owned() };
    let other = Module { debug: Some(other), image_size: 0, ..dll() };
    let index = || ("index2.txt".to_owned(), Vec::new());
    let whole = |folder: &str| (format!("{folder}functions.pdb/{KEY}/functions.pdb"), pdb());
    let packed = cabinet("functions.pdb", &pdb());
    let packed = |folder: &str| (format!("{folder}functions.pdb/{KEY}/functions.pd_"), packed.clone());
    for (files, is_found) in [
        (vec![whole("")], true),
        (vec![packed("")], true),
        (vec![index(), whole("fu/")], true),
        (vec![index(), packed("fu/")], true),
        // A store may have been extended to two tiers.
        (vec![index(), whole("")], true),
        // Without the file, a store has one tier.
        (vec![whole("fu/")], false),
    ] {
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        let (server, cache) = (serve(files), tempfile::tempdir().unwrap());
        let symbol_path = format!("srv*{}*http://{}/symbols", cache.path().display(), server.address());
        let finder = SymbolFinder::new(Vec::new(), None, Some(symbol_path)).unwrap();
        let found = look_up(&dll(), &[0x1000], &finder);
        let wanted = if is_found { "functions::inner::beta()" } else { "functions.dll+0x1000" };
        assert_eq!(found, (vec![wanted.to_owned()], (!is_found).then_some(Reason::NotFound)), "{paths:?}");
        assert_eq!(look_up(&other, &[0x1000], &finder).1, Some(Reason::NotFound));
        assert_eq!(look_up(&other, &[0x1000], &finder).1, Some(Reason::NotFound));
        // The server is asked for its tiers once.
        let indexes = server.requests().iter().filter(|request| request.target.ends_with("/index2.txt")).count();
        assert_eq!(indexes, 1, "{paths:?}");
        // The next report has the file without the server.
        let alone = SymbolFinder::new(vec![cache.path().to_owned()], None, None).unwrap();
        assert_eq!(look_up(&dll(), &[0x1000], &alone).0, [wanted], "{paths:?}");
    }
}
