//! A server over HTTP that a test can make as bad as it likes.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::unwrap_used,
    reason = "only tests use it"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method and the target, such as `POST /ingest?name=x`.
    pub target: String,
    /// The lines of the header, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, except for what [`Server::start`] was told to leave out.
    pub body: Vec<u8>,
    /// The size of the whole body.
    pub size: usize,
}

impl Request {
    /// Returns the value of a header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

/// What the server does with a request.
pub enum Reaction {
    /// It sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// It sends these bytes one after the other, with pauses.
    Slowly(Vec<u8>, Duration),
    /// It sends these bytes, and then nothing more until the client gives up.
    Hangs(Vec<u8>),
}

/// Returns an answer over HTTP.
pub fn answer(status: &str, body: &[u8]) -> Reaction {
    Reaction::Bytes(response(status, body))
}

/// Returns the bytes of an answer over HTTP.
pub fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// What does not happen within this time hangs, however busy the machine is.
const HANG_LIMIT: Duration = Duration::from_mins(2);

type Handler = dyn FnMut(&Request) -> Reaction + Send;

/// A server. It ends with its value.
pub struct Server {
    address: SocketAddr,
    requests: Receiver<Request>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a free port. Of bodies, `keep` bytes are kept.
    pub fn start(keep: usize, handler: impl FnMut(&Request) -> Reaction + Send + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), keep, handler)
    }

    /// Starts a server at an address.
    pub fn start_at(
        address: SocketAddr,
        keep: usize,
        handler: impl FnMut(&Request) -> Reaction + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        let ends = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&ends);
        let handler: Arc<Mutex<Box<Handler>>> = Arc::new(Mutex::new(Box::new(handler)));
        let accept = move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                let (handler, sender) = (Arc::clone(&handler), sender.clone());
                thread::spawn(move || serve(&stream.unwrap(), keep, &handler, &sender));
            }
        };
        Self { address, requests, ends, thread: Some(thread::spawn(accept)) }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the next request.
    pub fn request(&self) -> Request {
        self.requests.recv_timeout(HANG_LIMIT).expect("no request came")
    }

    /// Returns the requests that came meanwhile.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the thread, which closes the port.
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Returns an address at which no server listens.
pub fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANG_LIMIT, "in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Serves one request. A client that goes away is none of the test's business.
fn serve(stream: &TcpStream, keep: usize, handler: &Mutex<Box<Handler>>, sender: &Sender<Request>) {
    let Some(request) = read(stream, keep) else { return };
    let reaction = handler.lock().unwrap()(&request);
    // The test may have ended.
    let _ = sender.send(request);
    let mut stream = stream;
    match reaction {
        Reaction::Bytes(bytes) => drop(stream.write_all(&bytes)),
        Reaction::Slowly(bytes, pause) => {
            for byte in bytes {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(pause);
            }
        }
        Reaction::Hangs(bytes) => {
            drop(stream.write_all(&bytes));
            drop(stream.read(&mut [0]));
        }
    }
}

fn read(stream: &TcpStream, keep: usize) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|size| *size > 0)?;
        Some(line.trim_end().to_owned())
    };
    let target = line()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ")?;
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Request { target, headers, body: Vec::new(), size: 0 };
    let size: usize = match request.header("content-length") {
        "" => 0, // a request without a body
        length => length.parse().ok()?,
    };
    let mut chunk = [0; 4_096];
    while request.size < size {
        let read = reader.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.size += read;
        let kept = read.min(keep - request.body.len());
        request.body.extend_from_slice(chunk.get(..kept)?);
    }
    Some(request)
}
