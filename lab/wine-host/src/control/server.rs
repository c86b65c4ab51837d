//! The lab's end of the wire: a thread that accepts, and one for each connection.

use crate::{control::answer::answer, lock::lock};
use bench_protocol::Answer;
use std::{
    collections::HashMap,
    fs,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Mutex, OnceLock},
    thread::{self, JoinHandle},
};

/// The lab's folder.
pub const FOLDER: &str = "C:\\lab";

/// The connections; None when no more are taken.
static CONNECTIONS: Mutex<Option<HashMap<SocketAddr, TcpStream>>> = Mutex::new(None);
static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();

fn port_file() -> String {
    format!("{FOLDER}\\port")
}

/// Listens on a free port and tells its number in a file, which is there whole or not at all.
pub fn start() -> io::Result<JoinHandle<()>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let unfinished = format!("{FOLDER}\\port.new");
    fs::write(&unfinished, format!("{}\n", address.port()))?;
    fs::rename(&unfinished, port_file())?;
    *lock(&CONNECTIONS) = Some(HashMap::new());
    ADDRESS.get_or_init(|| address);
    Ok(thread::spawn(move || accept(&listener)))
}

pub fn stop() {
    // Nobody may be told of a port that nobody listens to; a file that is gone already is as good.
    let _ = fs::remove_file(port_file());
    for (_, stream) in lock(&CONNECTIONS).take().into_iter().flatten() {
        // A connection that is closed already is as good.
        let _ = stream.shutdown(Shutdown::Both);
    }
    if let Some(address) = ADDRESS.get() {
        // Wakes the thread that accepts; if nobody can connect, it is not waiting.
        let _ = TcpStream::connect(address);
    }
}

fn accept(listener: &TcpListener) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        let (done, open): (Vec<_>, Vec<_>) = threads.into_iter().partition(JoinHandle::is_finished);
        threads = open;
        join(done);
        let connection = stream.and_then(|stream| Ok((stream.peer_addr()?, stream.try_clone()?, stream)));
        let mut connections = lock(&CONNECTIONS);
        let Some(connections) = &mut *connections else { break };
        if let Ok((peer, ours, stream)) = connection {
            connections.insert(peer, ours);
            threads.push(thread::spawn(move || {
                // The test sees a connection that fails; the lab goes on.
                let _ = serve(stream);
                if let Some(connections) = &mut *lock(&CONNECTIONS) {
                    connections.remove(&peer);
                }
            }));
        }
    }
    join(threads);
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        // What failed there ended its connection, which the test has seen.
        let _ = thread.join();
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(command) => answer(command),
            Err(error) => Answer::Refused(format!("not a command: {error}")),
        };
        let mut text = serde_json::to_string(&reply)?;
        text.push('\n');
        stream.write_all(text.as_bytes())?;
    }
    Ok(())
}
