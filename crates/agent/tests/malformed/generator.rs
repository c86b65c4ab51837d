//! Requests that no well-behaved client sends.

use crate::scrape::{PASSWORD, SCRAPE, authorization};

/// A generator of pseudo-random numbers (SplitMix64). Each request has one of its own, so that its number alone says
/// what it was.
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, longest: usize) -> Vec<u8> {
        let length = self.below(longest);
        (0..length).map(|_| self.byte()).collect()
    }
}

/// How the client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It waits for the server.
    Wait,
    /// It says that nothing follows, and reads what comes.
    HalfClose,
    /// It goes away without reading.
    Close,
}

/// A request, or what is sent instead of one.
#[derive(Debug)]
pub struct Attack {
    /// The bytes, as they are handed to the socket.
    pub parts: Vec<Vec<u8>>,
    /// How the client ends.
    pub end: End,
    /// Whether the right name and password are among the bytes.
    pub authorized: bool,
    /// Whether it is a well-formed scrape.
    pub valid: bool,
}

const METHODS: &[&str] =
    &["GET", "HEAD", "POST", "get", "G\0T", "", "GET GET", "\u{7f}", "CONNECT", "PRI", "ÄÖ", "GET\t"];
const TARGETS: &[&str] =
    &["/metrics", "*", "", "//", "/\0", "http://[::1", "/%zz%00", "/metrics#", "a:80", "/ /", "/é"];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "", "http/1.1", "HTTP/1.1 x"];
const HEADERS: &[&str] = &[
    "Host: localhost\r\n",
    "Host: a\r\nHost: b\r\n",
    "Host\r\n",
    ": empty\r\n",
    " folded: x\r\n",
    "A: b\r\n continued\r\n",
    "A : b\r\n",
    "A: \0\r\n",
    "A: \x01\x7f\r\n",
    "A: b\n",
    "A: b\r",
    "Ä: ü\r\n",
    "Connection: keep-alive\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    "Upgrade: websocket\r\nConnection: Upgrade\r\n",
    "Expect: 100-continue\r\n",
    "Expect: something\r\n",
    "Range: bytes=0-99999999999999999999\r\n",
    "Accept-Encoding: gzip;q=nan\r\n",
    "TE: trailers\r\nTrailer: Host\r\n",
    "Authorization: Basic\r\n",
    "Authorization: Basic ====\r\n",
    "Authorization: Basic Og==\r\n",
    "Authorization: Basic YW5uOg==\r\n",
    "Authorization: Digest username=\"ann\"\r\n",
];
const BODIES: &[&str] = &[
    "Content-Length: 10\r\n\r\nabc",
    "Content-Length: 3\r\n\r\nabcdefgh",
    "Content-Length: -1\r\n\r\n",
    "Content-Length: +3\r\n\r\nabc",
    "Content-Length: 0x10\r\n\r\n0123456789abcdef",
    "Content-Length: 18446744073709551615\r\n\r\nx",
    "Content-Length: 99999999999999999999999\r\n\r\nx",
    "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "Content-Length: 3, 3\r\n\r\nabc",
    "Content-Length: \r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n",
    "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n3;ext=\"\0\r\nabc\r\n0\r\nTrailer\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    "Transfer-Encoding: gzip\r\n\r\nabc",
    "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
];

/// Returns the request of a number. The user is none on an endpoint without users.
pub fn attack(random: &mut Random, user: Option<&str>) -> Attack {
    let authorized = random.below(2) == 0;
    let credentials = match user {
        Some(name) if authorized => authorization(name, PASSWORD),
        Some(_) => authorization(random.pick(&["ann", "carl", "", "\u{e9}"]), random.pick(&["", "x", "correct", "\0"])),
        None => String::new(),
    };
    let sound = [b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n", credentials.as_bytes(), b"\r\n"].concat();
    let kind = random.below(14);
    let bytes = match kind {
        0 | 1 => sound,
        2 => start_line(random, &credentials),
        3 => random.bytes(4_096),
        4 => overlong(random, &credentials),
        5 | 6 => {
            let method = random.pick(METHODS);
            format!("{method} /metrics HTTP/1.1\r\nHost: a\r\n{credentials}{}", random.pick(BODIES)).into_bytes()
        }
        7 => pipeline(random, &sound),
        8 | 9 => mutate(random, sound),
        10 => sound[..random.below(sound.len())].to_vec(),
        11 => headers(random, &credentials),
        12 => client_hello(random),
        _ => {
            let texts = [
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
                "GET /metrics\r\n",
                "GET /metrics\r\n\r\n",
                "\r\n\r\n\r\n",
                "\n",
                "",
            ];
            random.pick(&texts).as_bytes().to_vec()
        }
    };
    let valid = kind <= 1 && (authorized || user.is_none());
    let end = match random.below(4) {
        0 if kind > 1 => End::Close,
        _ if kind <= 1 => End::Wait,
        _ => End::HalfClose,
    };
    Attack { parts: split(random, &bytes), end, authorized, valid }
}

fn start_line(random: &mut Random, credentials: &str) -> Vec<u8> {
    let (method, target, version) = (random.pick(METHODS), random.pick(TARGETS), random.pick(VERSIONS));
    let space = random.pick(&[" ", "  ", "\t", "", "\r\n"]);
    let line = random.pick(&["\r\n", "\n", "\r", "\n\r"]);
    format!("{method}{space}{target} {version}{line}Host: a\r\n{credentials}\r\n").into_bytes()
}

fn overlong(random: &mut Random, credentials: &str) -> Vec<u8> {
    let length = random.below(80_000);
    let long = random.pick(&["x", "\0", "%", "/", "a: b\r\n", "\r\n", " "]).repeat(length / 2);
    let texts = [
        format!("GET /{long} HTTP/1.1\r\nHost: a\r\n{credentials}\r\n"),
        format!("{long} /metrics HTTP/1.1\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\nX: {long}\r\n{credentials}\r\n"),
        format!("GET /metrics HTTP/1.1\r\n{long}: x\r\n{credentials}\r\n"),
        format!("GET /metrics HTTP/1.1\r\nAuthorization: Basic {long}\r\n\r\n"),
    ];
    texts[random.below(texts.len())].as_bytes().to_vec()
}

fn headers(random: &mut Random, credentials: &str) -> Vec<u8> {
    let count = random.below(130);
    let some: String = (0..count).map(|_| random.pick(HEADERS)).collect();
    format!("GET /metrics HTTP/1.1\r\n{some}{credentials}\r\n").into_bytes()
}

fn pipeline(random: &mut Random, sound: &[u8]) -> Vec<u8> {
    let count = random.below(50);
    (0..count)
        .flat_map(|_| if random.below(4) == 0 { mutate(random, sound.to_vec()) } else { sound.to_vec() })
        .collect()
}

/// Changes some bytes: flips, removes, inserts, or repeats them.
fn mutate(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=random.below(8) {
        let place = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.get_mut(place).into_iter().for_each(|byte| *byte = random.byte()),
            1 => drop(bytes.drain(place..bytes.len().min(place + 4))),
            2 => bytes.insert(place, b"\0\r\n :\xff"[random.below(6)]),
            3 => bytes.extend_from_within(place..),
            _ => bytes.truncate(place.max(1)),
        }
        bytes.truncate(100_000);
    }
    bytes
}

/// Returns a record of TLS with a handshake that is mostly garbage, or a truncated one.
fn client_hello(random: &mut Random) -> Vec<u8> {
    let rest = random.bytes(600);
    let length = if random.below(2) == 0 { u16::try_from(rest.len()).unwrap() + 4 } else { 0xffff };
    let [high, low] = length.to_be_bytes();
    [&[0x16, 3, 1, high, low, 1, 0, high, low][..], &rest].concat()
}

fn split(random: &mut Random, bytes: &[u8]) -> Vec<Vec<u8>> {
    let (head, tail) = bytes.split_at(random.below(bytes.len() + 1));
    match random.below(3) {
        0 => vec![head.to_vec(), tail.to_vec()],
        _ => vec![bytes.to_vec()],
    }
}

/// Returns the valid scrape of a user.
pub fn scrape_of(user: Option<&str>) -> Attack {
    let bytes = match user {
        Some(name) => {
            let header = authorization(name, PASSWORD);
            format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n").into_bytes()
        }
        None => SCRAPE.to_vec(),
    };
    Attack { parts: vec![bytes], end: End::Wait, authorized: true, valid: true }
}
