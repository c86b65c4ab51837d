//! Servers that redirect, pack, break off and are silent.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_server::{Reaction, Server, answer, response};
use tempfile::TempDir;

use super::*;
use crate::symbol_path::parse;

/// The file of every test.
const NAME: &str = "a b+1.pdb";

/// Its key.
const KEY: &str = "0123456789ABCDEF1";

/// Its content.
const CONTENT: &[u8] = b"the symbols";

/// Returns the file that a server gives, and its caches: the near one, and the far one.
fn served(handler: impl Fn(&str) -> Reaction + Send + 'static) -> (Result<PathBuf, Reason>, [TempDir; 2], Vec<String>) {
    let patience = Duration::from_secs(20);
    served_within(patience, handler)
}

fn served_within(
    patience: Duration,
    handler: impl Fn(&str) -> Reaction + Send + 'static,
) -> (Result<PathBuf, Reason>, [TempDir; 2], Vec<String>) {
    let server = Server::start(0, move |request| handler(&request.target));
    let caches = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [near, far] = caches.each_ref().map(|cache| cache.path().display().to_string());
    let path = format!("srv*{near}*{far}*http://{}/symbols/", server.address());
    let found = SymbolServers::with_patience(parse(&path), patience, patience).file(NAME, KEY);
    let targets = server.requests().into_iter().map(|request| request.target).collect();
    (found, caches, targets)
}

/// The request for the whole file.
const WHOLE: &str = "GET /symbols/a%20b+1.pdb/0123456789ABCDEF1/a%20b+1.pdb";

/// Returns every file in a folder, with its content.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    all
}

fn stored_file() -> PathBuf {
    [NAME, KEY, NAME].iter().collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_file_is_kept_by_every_store_of_its_chain() {
    let (found, caches, targets) =
        served(|target| if target == WHOLE { answer("200 OK", CONTENT) } else { answer("404 Not Found", b"") });
    assert_eq!(found.unwrap(), caches[1].path().join(stored_file()));
    assert_eq!(targets, [WHOLE]);
    for cache in &caches {
        assert_eq!(files(cache.path()), [(stored_file(), CONTENT.to_vec())]);
    }
}

#[test]
fn a_redirection_is_followed() {
    let (found, _caches, _) = served(|target| match target {
        WHOLE => Reaction::Bytes(
            b"HTTP/1.1 302 Found\r\nLocation: /blob/7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        ),
        "GET /blob/7" => answer("200 OK", CONTENT),
        _ => answer("404 Not Found", b""),
    });
    assert_eq!(fs::read(found.unwrap()).unwrap(), CONTENT);
}

#[test]
fn an_answer_in_gzip_is_unpacked_and_one_in_another_encoding_is_no_file() {
    for (encoding, is_found) in [("gzip", true), ("br", false)] {
        let (found, caches, _) = served(move |target| {
            let mut bytes = response("200 OK", &gzip(CONTENT));
            let header = format!("Content-Encoding: {encoding}\r\n");
            bytes.splice(b"HTTP/1.1 200 OK\r\n".len()..b"HTTP/1.1 200 OK\r\n".len(), header.into_bytes());
            if target == WHOLE { Reaction::Bytes(bytes) } else { answer("404 Not Found", b"") }
        });
        match found {
            Ok(path) => assert_eq!((fs::read(path).unwrap().as_slice(), is_found), (CONTENT, true)),
            Err(reason) => assert_eq!((reason, is_found), (Reason::NotFound, false)),
        }
        assert_eq!(files(caches[0].path()).len(), usize::from(is_found));
    }
}

#[test]
fn nothing_is_left_of_an_answer_that_breaks_off_or_never_ends() {
    for hangs in [false, true] {
        let patience = Duration::from_millis(if hangs { 50 } else { 20_000 });
        let (found, caches, targets) = served_within(patience, move |_| {
            let whole = response("200 OK", CONTENT);
            let part = whole[..whole.len() - 1].to_vec();
            if hangs { Reaction::Hangs(part) } else { Reaction::Bytes(part) }
        });
        assert_eq!(found, Err(Reason::NotFound));
        assert!(targets.iter().any(|target| target == WHOLE) || hangs, "{targets:?}");
        for cache in &caches {
            assert_eq!(files(cache.path()), []);
        }
    }
}

#[test]
fn a_server_that_cannot_be_reached_has_no_file() {
    let cache = tempfile::tempdir().unwrap();
    let path = format!("srv*{}*http://{}", cache.path().display(), http_server::unused_address());
    assert_eq!(SymbolServers::new(parse(&path)).file(NAME, KEY), Err(Reason::NotFound));
}
