//! What the tests of the endpoint share: a snapshot, configurations, and requests as bytes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use agent::config::{Prometheus, User};
use agent::{Family, Latest, Point, Snapshot, Statistics, Value};

pub mod tls;

/// The password of every user.
pub const PASSWORD: &str = "correct horse: battery";

/// Text that only a response with metrics has.
pub const SECRET: &str = "halprof_events_total";

pub const SCRAPE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Returns a snapshot in which an event has this count.
pub fn latest(count: u64) -> Latest {
    let labels = vec![("event", "cycles".to_owned())];
    let points = vec![Point { family: Family::Events, labels, value: Value::Integer(count) }];
    let latest = Latest::default();
    latest.set(Snapshot { time: SystemTime::now(), begun: SystemTime::now(), driver_begun: SystemTime::now(), points });
    latest
}

/// Returns the configuration of an endpoint on a free port, with these users.
pub fn configuration(users: &[&str]) -> Prometheus {
    let password_hash = bcrypt::hash_with_salt(PASSWORD, 4, [3; 16]).unwrap().to_string();
    let user = |name: &&str| User { name: (*name).to_owned(), password_hash: password_hash.clone() };
    Prometheus { listen: "127.0.0.1:0".parse().unwrap(), tls: None, users: users.iter().map(user).collect() }
}

/// Returns the header of a user.
pub fn authorization(name: &str, password: &str) -> String {
    use base64ct::Encoding as _;
    format!("Authorization: Basic {}\r\n", base64ct::Base64::encode_string(format!("{name}:{password}").as_bytes()))
}

/// What does not happen within this time hangs, however busy the machine is.
const HANG_LIMIT: Duration = Duration::from_mins(2);

/// Connects, and gives up on a server that is silent for so long that it hangs.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG_LIMIT)).unwrap();
    stream.set_write_timeout(Some(HANG_LIMIT)).unwrap();
    stream
}

/// Waits until the statistics are as expected.
pub fn wait_until(statistics: impl Fn() -> Statistics, expected: impl Fn(&Statistics) -> bool) {
    let begun = Instant::now();
    while !expected(&statistics()) {
        assert!(begun.elapsed() < HANG_LIMIT, "{:?}", statistics());
        thread::sleep(Duration::from_millis(1));
    }
}
