//! Malformed requests against the running endpoint: 2,000 by default, 100,000 with `HALPROF_SOAK=1`.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

use agent::Server;

use generator::{Attack, End, Random, attack, scrape_of};
use scrape::tls::{self, Client};
use scrape::{SECRET, configuration, connect, latest, wait_until};

#[path = "malformed/generator.rs"]
mod generator;
mod scrape;

/// Growth of the process that is not a leak: buffers and thread stacks that come and go, in bytes.
const GROWTH: usize = 16 << 20;
const BATCHES: usize = 20;
const USER: &str = "ann";

/// An endpoint, and how it is reached.
struct Target {
    server: Server,
    user: Option<&'static str>,
    client: Option<Client>,
}

impl Target {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sends an attack, and checks the response. If the endpoint has TLS, the attack is inside of it, or `raw`.
    fn endure(&self, attack: &Attack, raw: bool) -> Result<(), String> {
        let socket = connect(self.address());
        let handle = socket.try_clone().unwrap();
        match &self.client {
            Some(client) if !raw => {
                let mut stream = client.wrap(socket);
                let received = deliver(&mut stream, attack, |stream| {
                    stream.conn.send_close_notify();
                    stream.flush()
                });
                self.check(attack, &received?)
            }
            Some(_) => {
                let received = deliver(&mut &socket, attack, |_| handle.shutdown(Shutdown::Write))?;
                let text = String::from_utf8_lossy(&received);
                require(!text.contains("HTTP/") && !text.contains(SECRET), "plain text", &text)
            }
            None => {
                let received = deliver(&mut &socket, attack, |_| handle.shutdown(Shutdown::Write));
                self.check(attack, &received?)
            }
        }
    }

    fn check(&self, attack: &Attack, received: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(received);
        if self.user.is_some() && !attack.authorized {
            require(!text.contains(SECRET), "metrics for a stranger", &text)?;
        }
        if attack.valid {
            require(text.starts_with("HTTP/1.1 200 ") && text.contains(SECRET), "a valid scrape failed", &text)?;
        }
        let Some(line) = text.lines().next() else { return Ok(()) };
        let status = line.strip_prefix("HTTP/1.1 ").or(line.strip_prefix("HTTP/1.0 ")).and_then(|rest| rest.get(..3));
        let known = ["200", "400", "401", "404", "405", "414", "431"];
        require(status.is_some_and(|status| known.contains(&status)), "an unexpected status", &text)?;
        require(text.matches("HTTP/1.").count() == 1, "more than one response", &text)
    }
}

fn require(holds: bool, otherwise: &str, text: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{otherwise}: `{text}`")) }
}

/// Writes an attack, and returns the response. The server may end the connection at any time, but not be silent.
fn deliver<S: Read + Write>(
    stream: &mut S,
    attack: &Attack,
    half_close: impl Fn(&mut S) -> io::Result<()>,
) -> Result<Vec<u8>, String> {
    let written = attack.parts.iter().try_for_each(|part| stream.write_all(part));
    let written = written.and_then(|()| stream.flush());
    let written = match attack.end {
        End::Wait => written,
        End::HalfClose => written.and_then(|()| half_close(stream)),
        End::Close => return Ok(Vec::new()),
    };
    let mut received = Vec::new();
    let read = stream.read_to_end(&mut received).map(|_| ());
    for error in [written, read].into_iter().filter_map(Result::err) {
        let is_silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        require(!is_silent, "the server is silent", &error.to_string())?;
    }
    Ok(received)
}

/// Opens more connections than the endpoint takes, sends half a request on every other, and leaves them.
fn crowd(target: &Target) {
    let begun = target.server.statistics().refused;
    let crowd: Vec<_> = (0..40).map(|_| connect(target.address())).collect();
    wait_until(|| target.server.statistics(), |now| now.refused == begun + 24);
    for mut stream in crowd.iter().step_by(2) {
        // It may be one that was refused.
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n");
    }
}

/// Returns the bytes of memory of this process, where the system tells.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4_096)
}

#[test]
fn the_endpoint_survives_malformed_requests() {
    let requests = if env::var_os("HALPROF_SOAK").is_some_and(|value| value == "1") { 100_000 } else { 2_000 };
    let folder = tempfile::tempdir().unwrap();
    let (with_tls, client) = tls::configuration(folder.path(), &[USER]);
    let start = |config| Server::start(config, latest(1)).unwrap();
    let targets = [
        Target { server: start(&configuration(&[])), user: None, client: None },
        Target { server: start(&configuration(&[USER])), user: Some(USER), client: None },
        Target { server: start(&with_tls), user: Some(USER), client: Some(client) },
    ];
    let mut settled = None;
    for batch in 0..BATCHES {
        for index in batch * requests / BATCHES..(batch + 1) * requests / BATCHES {
            let mut random = Random::new(u64::try_from(index).unwrap());
            let target = &targets[random.below(targets.len())];
            let attack = attack(&mut random, target.user);
            let raw = random.below(2) == 0;
            let result = target.endure(&attack, raw);
            assert!(result.is_ok(), "request {index}, raw {raw}: {attack:?}: {result:?}");
        }
        for target in &targets {
            // Connections are accepted in order: after a scrape, none of the batch waits to be accepted any more. One
            // that did would take a place from the crowd.
            let scrape = scrape_of(target.user);
            target.endure(&scrape, false).unwrap();
            wait_until(|| target.server.statistics(), |now| now.open == 0);
            crowd(target);
            wait_until(|| target.server.statistics(), |now| now.open == 0);
            target.endure(&scrape, false).unwrap();
            wait_until(|| target.server.statistics(), |now| now.open == 0);
        }
        // The first batches fill caches and the allocator's arenas.
        let now = resident();
        if batch < BATCHES / 4 {
            settled = now;
        }
        let growth = now.zip(settled).map(|(now, settled)| now.saturating_sub(settled));
        assert!(growth.is_none_or(|growth| growth < GROWTH), "batch {batch}: {growth:?} bytes more");
    }
    for target in &targets {
        println!("{:?}", target.server.statistics());
    }
    println!("{requests} requests, resident {:?} after the first batches, {:?} now", settled, resident());
}
