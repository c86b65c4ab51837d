//! Profiles on their way to a server: whatever the server does, those that are kept arrive once and in order.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use agent::StartError;
use agent::config::{Header, Push as Config, Server as Interface};
use agent::profiles::{Pauses, Profile, Push, Statistics};
use base64ct::{Base64, Encoding};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_server::{Reaction, Request, Server, answer, response, until, unused_address};
use tempfile::TempDir;

const PAUSES: Pauses = Pauses { first: Duration::from_millis(1), longest: Duration::from_millis(8) };
/// The longest wait for an answer of a server that hangs.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Of all others, however busy the machine is.
const HANG_LIMIT: Duration = Duration::from_mins(2);

fn config(address: SocketAddr, buffer: &Path) -> Config {
    Config {
        to: Interface::Pyroscope,
        url: format!("http://{address}"),
        application: "my app & co".to_owned(),
        headers: vec![Header { name: "X-Scope-OrgID".to_owned(), value: "tenant".to_owned() }],
        buffer: buffer.to_owned(),
        buffer_limit_mib: 1,
        timeout: HANG_LIMIT,
    }
}

/// Returns a profile of a time, of at least so many bytes.
fn profile(seconds: u64, size: usize) -> Profile {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(&seconds.to_le_bytes()).unwrap();
    gzip.write_all(&vec![0; size]).unwrap();
    let begun = UNIX_EPOCH + Duration::from_secs(seconds);
    Profile { pprof: gzip.finish().unwrap(), begun, ended: begun + Duration::from_secs(10) }
}

fn put(push: &Push, seconds: impl IntoIterator<Item = u64>, size: usize) {
    for seconds in seconds {
        push.put(&profile(seconds, size)).unwrap();
    }
}

/// Returns the query of a request, decoded.
fn query(request: &Request) -> Vec<(String, String)> {
    let (_, query) = request.target.split_once('?').unwrap();
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), decode(value))).unwrap();
    query.split('&').map(pair).collect()
}

fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns when the profile of a request began, in seconds, by its query.
fn begun(request: &Request) -> u64 {
    query(request).iter().find(|(name, _)| name == "from").unwrap().1.parse().unwrap()
}

fn id(request: &Request) -> String {
    let id = request.header("idempotency-key");
    assert_eq!(id.len(), 36, "{id}");
    id.to_owned()
}

/// Returns the size of all files in a folder; of a file that goes meanwhile, none.
fn disk(folder: &Path) -> u64 {
    let sizes = fs::read_dir(folder).unwrap().filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
    sizes.sum()
}

fn sent(push: &Push, number: u64) {
    until("all are sent", || push.statistics().sent >= number);
}

#[test]
fn pyroscope_gets_what_its_interface_asks_for() {
    let place = TempDir::new().unwrap();
    let server = Server::start(usize::MAX, |_| answer("200 OK", b""));
    let config = Config { url: format!("http://{}/base/", server.address()), ..config(server.address(), place.path()) };
    let push = Push::start(&config).unwrap();
    put(&push, [1_764_164_038], 100);
    let request = server.request();
    assert!(request.target.starts_with("POST /base/ingest?"), "{}", request.target);
    let query = query(&request);
    let [(name, application), from, until, format] = query.as_slice() else { panic!("{query:?}") };
    assert!(name == "name" && application.starts_with("my app & co{host=") && application.ends_with('}'), "{query:?}");
    assert_eq!(*from, ("from".to_owned(), "1764164038".to_owned()));
    assert_eq!(*until, ("until".to_owned(), "1764164048".to_owned()));
    assert_eq!(*format, ("format".to_owned(), "pprof".to_owned()));
    assert_eq!(request.header("content-type"), "application/octet-stream");
    assert_eq!(request.header("x-scope-orgid"), "tenant");
    assert_eq!(request.body, profile(1_764_164_038, 100).pprof);
    sent(&push, 1);
    assert_eq!(push.statistics(), Statistics { sent: 1, ..Statistics::default() });
    assert_eq!(disk(place.path()), 0);
}

#[test]
fn parca_gets_what_its_interface_asks_for() {
    let place = TempDir::new().unwrap();
    let server = Server::start(usize::MAX, |_| answer("200 OK", b"{}"));
    let config = Config { to: Interface::Parca, ..config(server.address(), place.path()) };
    let push = Push::start(&config).unwrap();
    put(&push, [1_764_164_038], 100);
    let request = server.request();
    assert_eq!(request.target, "POST /api/profiles/writeraw");
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("x-scope-orgid"), "tenant");
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let series = &body["series"][0];
    let labels = series["labels"]["labels"].as_array().unwrap();
    assert_eq!(labels[0], serde_json::json!({ "name": "__name__", "value": "halprof" }));
    assert_eq!(labels[1], serde_json::json!({ "name": "job", "value": "my app & co" }));
    assert_eq!(labels[2]["name"], "node");
    let profile = Base64::decode_vec(series["samples"][0]["rawProfile"].as_str().unwrap()).unwrap();
    assert_eq!(profile, self::profile(1_764_164_038, 100).pprof);
    sent(&push, 1);
}

/// Returns what a bad server does at its n-th request, and whether it has taken the profile.
fn misbehave(number: usize) -> (Reaction, bool) {
    let pause = Duration::from_micros(400);
    match number % 12 {
        0 => (answer("500 Internal Server Error", b"oops"), false),
        1 => (Reaction::Hangs(vec![]), false),
        2 => (Reaction::Slowly(response("200 OK", b"{}"), pause), true),
        3 => (Reaction::Bytes(b"\x15\x03\x01\x00\x02\x02\x16".to_vec()), false),
        4 => (answer("429 Too Many Requests", b""), false),
        5 => (Reaction::Bytes(vec![]), false),
        6 => (answer("302 Found\r\nLocation: /login", b""), false),
        7 => (answer("204 No Content", b""), true),
        8 => (Reaction::Hangs(b"HTTP/1.1 200".to_vec()), false),
        9 => (answer("408 Request Timeout", &vec![b'x'; 200_000]), false),
        10 => (Reaction::Hangs(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec()), true),
        _ => (Reaction::Slowly(response("503 Service Unavailable", b"{}"), pause), false),
    }
}

#[test]
fn all_arrive_once_and_in_order_however_bad_the_server_is() {
    let place = TempDir::new().unwrap();
    let address = unused_address();
    let config = Config { timeout: TIMEOUT, ..config(address, place.path()) };
    let push = Push::start_with(&config, PAUSES).unwrap();
    put(&push, 1..=6, 1_000);
    until("refused connections", || push.statistics().send_failures >= 3);
    let (sender, receiver) = mpsc::channel();
    let mut number = 0;
    let server = Server::start_at(address, usize::MAX, move |request| {
        let (reaction, succeeds) = misbehave(number);
        number += 1;
        if succeeds {
            assert_eq!(request.body, profile(begun(request), 1_000).pprof);
            sender.send((begun(request), id(request))).unwrap();
        }
        reaction
    });
    put(&push, 7..=9, 1_000);
    sent(&push, 9);
    let taken: Vec<_> = receiver.try_iter().collect();
    assert_eq!(taken.iter().map(|(begun, _)| *begun).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
    // Every attempt of a profile has its identifier, and no two profiles have the same.
    for (begun, id) in server.requests().iter().map(|request| (begun(request), id(request))) {
        assert!(taken.contains(&(begun, id)), "{begun}");
    }
    let mut ids: Vec<_> = taken.into_iter().map(|(_, id)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 9);
    let statistics = push.statistics();
    assert!(statistics.send_failures >= 3 + 2 * 9, "{statistics:?}");
    let expected = Statistics { sent: 9, send_failures: statistics.send_failures, ..Statistics::default() };
    assert_eq!(statistics, expected);
    assert_eq!(disk(place.path()), 0);
}

#[test]
fn what_the_server_refuses_for_good_does_not_hold_up_the_rest() {
    let place = TempDir::new().unwrap();
    let server = Server::start(usize::MAX, |request| match begun(request) {
        2 => answer("400 Bad Request", br#"{"message":"no profile"}"#),
        4 => answer("413 Content Too Large", b""),
        _ => answer("200 OK", b""),
    });
    let push = Push::start_with(&config(server.address(), place.path()), PAUSES).unwrap();
    put(&push, 1..=5, 100);
    sent(&push, 3);
    let order: Vec<_> = server.requests().iter().map(begun).collect();
    assert_eq!(order, [1, 2, 3, 4, 5]);
    assert_eq!(push.last_error().unwrap(), "the server answered 413");
    let expected = Statistics { sent: 3, failed: 2, send_failures: 2, ..Statistics::default() };
    assert_eq!(push.statistics(), expected);
}

#[test]
fn the_disk_stays_within_the_limit_and_the_newest_are_kept() {
    const SIZE: usize = 100_000;
    const LIMIT: u64 = 1_024 * 1_024;
    let place = TempDir::new().unwrap();
    let address = unused_address();
    let push = Push::start_with(&config(address, place.path()), PAUSES).unwrap();
    let ends = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !ends.load(Ordering::SeqCst) {
                most = disk(place.path()).max(most);
            }
            most
        });
        put(&push, 1..=40, SIZE);
        ends.store(true, Ordering::SeqCst);
        watch.join().unwrap()
    });
    assert!(most > LIMIT / 2 && most <= LIMIT, "{most}");
    let Statistics { waiting, dropped, waiting_size, .. } = push.statistics();
    assert_eq!((waiting + dropped, waiting_size), (40, disk(place.path())));
    assert!(waiting >= 9, "{waiting}");
    let server = Server::start_at(address, 0, |_| answer("200 OK", b""));
    sent(&push, waiting);
    let order: Vec<_> = server.requests().iter().map(begun).collect();
    assert_eq!(order.len() as u64, waiting);
    // At most one was not the newest: that which was being sent when it would have been dropped.
    assert!(order.is_sorted() && order[1..] == ((40 - waiting + 2)..=40).collect::<Vec<_>>(), "{order:?}");
}

#[test]
fn a_profile_beyond_the_limit_is_dropped_alone() {
    let place = TempDir::new().unwrap();
    let push = Push::start_with(&config(unused_address(), place.path()), PAUSES).unwrap();
    put(&push, 1..=3, 1_000);
    put(&push, [4], 2 << 20);
    let Statistics { waiting, dropped, .. } = push.statistics();
    assert_eq!((waiting, dropped), (3, 1));
}

#[test]
fn what_waits_survives_a_restart() {
    let place = TempDir::new().unwrap();
    let address = unused_address();
    let config = config(address, place.path());
    let first = Push::start_with(&config, PAUSES).unwrap();
    put(&first, 1..=3, 1_000);
    first.stop();
    // A process that is killed leaves its half-written files.
    let half = place.path().join(".halprof-x.tmp");
    fs::write(&half, "half").unwrap();
    let server = Server::start_at(address, usize::MAX, |_| answer("200 OK", b""));
    let second = Push::start_with(&config, PAUSES).unwrap();
    put(&second, 4..=5, 1_000);
    sent(&second, 5);
    assert_eq!(server.requests().iter().map(begun).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(!half.exists());
    second.stop();
    let third = Push::start_with(&config, PAUSES).unwrap();
    assert_eq!(third.statistics(), Statistics::default());
}

#[test]
fn a_profile_has_the_same_identifier_after_a_restart() {
    let place = TempDir::new().unwrap();
    let server = Server::start(usize::MAX, |_| answer("500 Internal Server Error", b""));
    let start = || Push::start_with(&config(server.address(), place.path()), PAUSES).unwrap();
    let first = start();
    put(&first, [1], 100);
    let before = id(&server.request());
    first.stop();
    server.requests();
    let _second = start();
    assert_eq!(id(&server.request()), before);
}

#[test]
fn a_profile_that_somebody_deletes_does_not_hold_up_the_rest() {
    let place = TempDir::new().unwrap();
    let address = unused_address();
    let pauses = Pauses { first: Duration::from_millis(500), longest: Duration::from_secs(1) };
    let push = Push::start_with(&config(address, place.path()), pauses).unwrap();
    put(&push, [1], 100);
    // It is not read in the pause that follows.
    until("a failure", || push.statistics().send_failures >= 1);
    for entry in fs::read_dir(place.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    put(&push, [2], 100);
    let server = Server::start_at(address, usize::MAX, |_| answer("200 OK", b""));
    sent(&push, 1);
    assert_eq!(begun(&server.request()), 2);
    assert_eq!(push.statistics().dropped, 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_and_the_next_profile_is_sent() {
    let place = TempDir::new().unwrap();
    let buffer = place.path().join("buffer");
    let server = Server::start(usize::MAX, |_| answer("200 OK", b""));
    let push = Push::start_with(&config(server.address(), &buffer), PAUSES).unwrap();
    fs::remove_dir(&buffer).unwrap();
    assert!(push.put(&profile(1, 100)).is_err());
    fs::create_dir(&buffer).unwrap();
    put(&push, [2], 100);
    sent(&push, 1);
    assert_eq!(push.statistics(), Statistics { sent: 1, failed: 1, ..Statistics::default() });
}

#[test]
fn the_end_waits_neither_for_a_pause_nor_longer_than_the_timeout() {
    let place = TempDir::new().unwrap();
    let begun = Instant::now();
    let pauses = Pauses { first: 10 * HANG_LIMIT, longest: 10 * HANG_LIMIT };
    let push = Push::start_with(&config(unused_address(), place.path()), pauses).unwrap();
    put(&push, [1], 100);
    until("a failure", || push.statistics().send_failures == 1);
    push.stop();
    let server = Server::start(usize::MAX, |_| Reaction::Hangs(vec![]));
    let config = Config { timeout: TIMEOUT, ..config(server.address(), place.path()) };
    let push = Push::start(&config).unwrap();
    server.request();
    push.stop();
    assert!(begun.elapsed() < HANG_LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn a_wrong_configuration_is_refused_at_the_start() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let right = config(unused_address(), place.path());
    let cases = [
        (Config { url: "localhost:4040".to_owned(), ..right.clone() }, "Scheme"),
        (Config { url: "http://localhost:4040/?x=y".to_owned(), ..right.clone() }, "Query"),
        (Config { headers: vec![Header { name: "a".to_owned(), value: "\n".to_owned() }], ..right.clone() }, "Header"),
        (Config { buffer: file, ..right }, "Buffer"),
    ];
    for (config, expected) in cases {
        let error: StartError = Push::start(&config).unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    }
}
