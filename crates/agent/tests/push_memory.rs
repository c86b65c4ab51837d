//! However many profiles wait, one of them is in memory. This is a program of its own because it measures the heap.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use agent::config::{Push as Config, Server as Interface};
use agent::profiles::{Pauses, Profile, Push};
use http_server::{Server, answer, until, unused_address};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const SIZE: usize = 1 << 18;
const NUMBER: u64 = 16;

fn config(address: SocketAddr, buffer: &Path) -> Config {
    Config {
        // The interface with the largest request: the profile in base64 in JSON.
        to: Interface::Parca,
        url: format!("http://{address}"),
        application: "test".to_owned(),
        headers: Vec::new(),
        buffer: buffer.to_owned(),
        buffer_limit_mib: 64,
        timeout: Duration::from_secs(10),
    }
}

#[test]
fn one_profile_is_in_memory() {
    let place = TempDir::new().unwrap();
    let address = unused_address();
    let profiler = dhat::Profiler::builder().testing().build();
    let pauses = Pauses { first: Duration::from_millis(1), longest: Duration::from_millis(8) };
    let push = Push::start_with(&config(address, place.path()), pauses).unwrap();
    for number in 0..NUMBER {
        let begun = UNIX_EPOCH + Duration::from_secs(number);
        push.put(&Profile { pprof: vec![7; SIZE], begun, ended: begun }).unwrap();
    }
    let mut number = 0;
    let server = Server::start_at(address, 0, move |_| {
        number += 1;
        if number % 2 == 0 { answer("200 OK", b"") } else { answer("500 Internal Server Error", &vec![b'x'; 1 << 16]) }
    });
    until("all are sent", || push.statistics().sent == NUMBER);
    let sizes: Vec<_> = server.requests().iter().map(|request| request.size).collect();
    assert!(sizes.len() as u64 == 2 * NUMBER && sizes.iter().all(|size| *size > SIZE * 4 / 3));
    let heap = dhat::HeapStats::get();
    drop(profiler);
    // One in base64 and in JSON, whose buffer grows by doubling, and what the server has.
    let most = heap.max_bytes / SIZE;
    assert!(most < 7, "{most} times a profile");
}
