//! The endpoint that Prometheus scrapes, over real sockets.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use agent::config::Prometheus;
use agent::{Latest, Server};

use crate::scrape::tls::{self, Client};
use crate::scrape::{PASSWORD, SCRAPE, SECRET, authorization, configuration, connect, latest, wait_until};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A response.
#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn parse(bytes: Vec<u8>) -> Self {
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: `{text}`"));
        let status = head.strip_prefix("HTTP/1.1 ").unwrap().get(..3).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends bytes, and returns all that comes back until the end of the connection.
fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address);
    let mut received = Vec::new();
    // The server may close the connection before it has read everything.
    let written = stream.write_all(bytes);
    let read = stream.read_to_end(&mut received);
    if received.is_empty() {
        written?;
        read?;
    }
    Ok(received)
}

fn request(address: SocketAddr, method: &str, path: &str, headers: &str) -> Response {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    Response::parse(exchange(address, text.as_bytes()).unwrap())
}

#[test]
fn pages_methods_and_content_types() {
    let server = Server::start(&configuration(&[]), latest(u64::MAX)).unwrap();
    let cases = [
        ("GET", "/metrics", 200, TEXT, "cycles\"} 18446744073709551615\n"),
        ("GET", "/metrics?name=x", 200, TEXT, "15\n"),
        ("GET", "http://localhost/metrics", 200, TEXT, "15\n"),
        ("HEAD", "/metrics", 200, TEXT, ""),
        ("GET", "/", 200, PLAIN, "/metrics.\n"),
        ("HEAD", "/", 200, PLAIN, ""),
        ("GET", "/metrics/", 404, PLAIN, "/metrics.\n"),
        ("GET", "/..//metrics", 404, PLAIN, "/metrics.\n"),
        ("POST", "/", 405, PLAIN, "supported.\n"),
        ("POST", "/metrics", 405, PLAIN, "supported.\n"),
        ("OPTIONS", "/metrics", 405, PLAIN, "supported.\n"),
        ("get", "/metrics", 405, PLAIN, "supported.\n"),
        ("POST", "/other", 404, PLAIN, "/metrics.\n"),
    ];
    for (method, path, status, kind, end) in cases {
        let response = request(server.address(), method, path, "");
        assert_eq!(response.status, status, "{method} {path}: {response:?}");
        assert_eq!(response.header("content-type"), Some(kind), "{method} {path}");
        assert_eq!(response.header("connection"), Some("close"), "{method} {path}");
        assert_eq!(response.header("allow"), (status == 405).then_some("GET, HEAD"), "{method} {path}");
        assert!(response.body.ends_with(end) && end.is_empty() == response.body.is_empty(), "{method} {response:?}");
    }
    assert_eq!(server.statistics().requests, cases.len() as u64);
    let [get, head] = ["GET", "HEAD"].map(|method| request(server.address(), method, "/metrics", ""));
    assert_eq!(head.header("content-length"), Some(&*get.body.len().to_string()));
    assert!(get.body.contains(SECRET));
}

#[test]
fn the_metrics_have_the_format_that_is_accepted() {
    let server = Server::start(&configuration(&[]), latest(7)).unwrap();
    for (accepted, kind, family, end) in [
        ("", TEXT, "# TYPE halprof_events_total counter\n", "cycles\"} 7\n"),
        ("Accept: */*\r\n", TEXT, "# TYPE halprof_events_total counter\n", "cycles\"} 7\n"),
        (
            "Accept: application/openmetrics-text; version=1.0.0, text/plain;q=0.5\r\n",
            OPENMETRICS,
            "# TYPE halprof_events counter\n",
            "cycles\"} 7\n# EOF\n",
        ),
        (
            "Accept: application/openmetrics-text;q=0.1\r\nAccept: text/plain\r\n",
            TEXT,
            "# TYPE halprof_events_total counter\n",
            "cycles\"} 7\n",
        ),
    ] {
        let response = request(server.address(), "GET", "/metrics", accepted);
        assert_eq!(response.header("content-type"), Some(kind), "{accepted}");
        assert_eq!(response.header("vary"), Some("accept"), "{accepted}");
        assert!(response.body.contains(family) && response.body.ends_with(end), "{accepted}: {response:?}");
    }
}

#[test]
fn the_latest_snapshot_is_served_and_none_before_the_first() {
    let shared = Latest::default();
    let server = Server::start(&configuration(&[]), shared.clone()).unwrap();
    let scrape = || request(server.address(), "GET", "/metrics", "");
    assert_eq!(scrape().status, 503);
    assert_eq!(request(server.address(), "GET", "/", "").status, 200);
    for count in [1, 2] {
        let snapshot = latest(count).get().unwrap();
        shared.set((*snapshot).clone());
        let body = scrape().body;
        assert!(body.contains(&format!("{SECRET}{{event=\"cycles\"}} {count}\n")), "{body}");
    }
}

#[test]
fn only_users_may_scrape() {
    let server = Server::start(&configuration(&["ann", "bob"]), latest(1)).unwrap();
    let (ann, bob) = (authorization("ann", PASSWORD), authorization("bob", PASSWORD));
    let cases = [
        ("missing", String::new(), 401),
        ("wrong password", authorization("ann", "correct"), 401),
        ("no password", authorization("ann", ""), 401),
        ("unknown name", authorization("carl", PASSWORD), 401),
        ("name with other case", authorization("Ann", PASSWORD), 401),
        ("other scheme", ann.replace("Basic", "Bearer"), 401),
        ("not base64", "Authorization: Basic ***\r\n".to_owned(), 401),
        ("not text", "Authorization: Basic \u{e9}\r\n".to_owned(), 401),
        ("second header", format!("{}{ann}", authorization("ann", "wrong")), 401),
        ("right", ann.clone(), 200),
        ("right again", ann.clone(), 200),
        ("other user", bob, 200),
        ("lower case", ann.replace("Basic", "basic").replace("Authorization", "authorization"), 200),
        ("wrong after right", authorization("ann", "correct"), 401),
        ("missing after right", String::new(), 401),
    ];
    for (case, headers, status) in &cases {
        for (method, path) in [("GET", "/metrics"), ("HEAD", "/metrics"), ("GET", "/"), ("GET", "/no"), ("PUT", "/")] {
            let response = request(server.address(), method, path, headers);
            if *status == 401 {
                assert_eq!(response.status, 401, "{case} {method} {path}: {response:?}");
                assert!(response.header("www-authenticate").unwrap().starts_with("Basic realm="), "{case}");
                assert!(!response.body.contains(SECRET), "{case} {method} {path}: {response:?}");
            } else {
                assert_ne!(response.status, 401, "{case} {method} {path}: {response:?}");
            }
        }
        assert_eq!(request(server.address(), "GET", "/metrics", headers).status, *status, "{case}");
    }
}

#[test]
fn metrics_are_served_by_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (config, client) = tls::configuration(folder.path(), &["ann"]);
    // With TLS, users may also be on an address that other machines reach.
    let config = Prometheus { listen: "0.0.0.0:0".parse().unwrap(), ..config };
    let server = Server::start(&config, latest(1)).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
    let send = |client: &Client, bytes: &[u8]| -> io::Result<Response> {
        let mut stream = client.wrap(connect(address));
        stream.write_all(bytes)?;
        let mut received = Vec::new();
        // It also fails if the server does not end the stream as TLS demands, which guards against truncation.
        stream.read_to_end(&mut received)?;
        Ok(Response::parse(received))
    };
    let response = send(&client, SCRAPE).unwrap();
    assert_eq!((response.status, response.body.contains(SECRET)), (401, false), "{response:?}");
    let scrape = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", authorization("ann", PASSWORD));
    let response = send(&client, scrape.as_bytes()).unwrap();
    assert_eq!((response.status, response.body.contains(SECRET)), (200, true), "{response:?}");

    let plain = exchange(address, scrape.as_bytes()).unwrap_or_default();
    assert!(!plain.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&plain));
    let other = tls::configuration(folder.path(), &[]).1;
    send(&other, scrape.as_bytes()).unwrap_err();
    wait_until(|| server.statistics(), |now| now.open == 0);
}

/// Returns whether the server ends the connection, and after which time.
fn wait_for_end(mut stream: TcpStream) -> (Vec<u8>, Duration) {
    let begun = Instant::now();
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert!(!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}"),
    }
    (received, begun.elapsed())
}

#[test]
fn a_slow_header_is_not_awaited() {
    let server = Server::start(&configuration(&[]), latest(1)).unwrap();
    let mut slow = connect(server.address());
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let (received, waited) = wait_for_end(slow);
    assert!(received.is_empty() || received.starts_with(b"HTTP/1.1 408"), "{received:?}");
    assert!(waited > Duration::from_secs(4), "{waited:?}");
    wait_until(|| server.statistics(), |now| now.open == 0);
}

#[test]
fn a_seventeenth_connection_is_closed() {
    let server = Server::start(&configuration(&[]), latest(1)).unwrap();
    let mut waiting: Vec<_> = (0..16).map(|_| connect(server.address())).collect();
    wait_until(|| server.statistics(), |now| now.open == 16);
    let (received, _) = wait_for_end(connect(server.address()));
    assert!(received.is_empty(), "{received:?}");
    assert_eq!(server.statistics().refused, 1);
    // The others are not disturbed, and the place of one that ends is free again.
    for _ in 0..2 {
        let mut stream = waiting.pop().unwrap();
        stream.write_all(SCRAPE).unwrap();
        assert_eq!(Response::parse(wait_for_end(stream).0).status, 200);
    }
    wait_until(|| server.statistics(), |now| now.open == 14);
    assert_eq!(request(server.address(), "GET", "/metrics", "").status, 200);
    drop(waiting);
    wait_until(|| server.statistics(), |now| now.open == 0);
    assert_eq!(server.statistics().refused, 1);
}

#[test]
fn headers_have_a_size() {
    let server = Server::start(&configuration(&[]), latest(1)).unwrap();
    let long = |length: usize| "x".repeat(length);
    let many = |count: usize| "X-A: b\r\n".repeat(count);
    let cases = [
        ("/metrics", format!("X-Long: {}\r\n", long(15_000)), 200),
        ("/metrics", format!("X-Long: {}\r\n", long(17_000)), 431),
        ("/metrics", format!("X-Long: {}\r\n", long(1_000_000)), 431),
        ("/metrics", many(90), 200),
        ("/metrics", many(101), 431),
        (&*format!("/{}", long(15_000)), String::new(), 404),
        (&*format!("/{}", long(17_000)), String::new(), 431),
    ];
    for (path, headers, status) in cases {
        let response = request(server.address(), "GET", path, &headers);
        assert_eq!(response.status, status, "{} {}", path.len(), headers.len());
    }
}

#[test]
fn the_body_of_a_request_is_ignored() {
    let server = Server::start(&configuration(&[]), latest(1)).unwrap();
    for length in [1, 100_000] {
        let body = "x".repeat(length);
        let headers = format!("Content-Length: {length}\r\n\r\n{body}");
        let response = request(server.address(), "GET", "/metrics", &headers);
        assert_eq!((response.status, response.body.contains(SECRET)), (200, true), "{length}");
    }
    let response = request(server.address(), "GET", "/metrics", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn the_end_does_not_wait_for_idle_connections() {
    let server = Server::start(&configuration(&[]), latest(1)).unwrap();
    let idle = connect(server.address());
    wait_until(|| server.statistics(), |now| now.open == 1);
    server.stop();
    assert!(wait_for_end(idle).0.is_empty());
}
