//! The server of the bench protocol: one thread accepts, and one thread serves each connection.

use crate::{control::answer::answer, lock::lock, state::machine::MACHINE};
use bench_protocol::Answer;
use std::{
    collections::HashMap,
    fs,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread::{self, JoinHandle},
};

/// The lab's folder.
pub const FOLDER: &str = "C:\\lab";

fn port_file() -> String {
    format!("{FOLDER}\\port")
}

/// Listens on a free port and writes its number to a file. A rename makes the file appear complete.
pub fn start() -> io::Result<JoinHandle<()>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let unfinished = format!("{FOLDER}\\port.new");
    fs::write(&unfinished, format!("{}\n", address.port()))?;
    fs::rename(&unfinished, port_file())?;
    *lock(&MACHINE.control.connections) = Some(HashMap::new());
    MACHINE.control.address.get_or_init(|| address);
    Ok(thread::spawn(move || accept(&listener)))
}

pub fn stop() {
    // Tests must not find a closed port. An error means that the file is already gone.
    let _ = fs::remove_file(port_file());
    for (_, stream) in lock(&MACHINE.control.connections).take().into_iter().flatten() {
        // An error means that the connection is already closed.
        let _ = stream.shutdown(Shutdown::Both);
    }
    if let Some(address) = MACHINE.control.address.get() {
        // Wakes the accepting thread. If the connection fails, the thread is not waiting.
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
        let mut connections = lock(&MACHINE.control.connections);
        let Some(connections) = &mut *connections else { break };
        if let Ok((peer, clone, stream)) = connection {
            connections.insert(peer, clone);
            threads.push(thread::spawn(move || {
                // An error ends only this connection, and the test sees it.
                let _ = serve(stream);
                if let Some(connections) = &mut *lock(&MACHINE.control.connections) {
                    connections.remove(&peer);
                }
            }));
        }
    }
    join(threads);
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        // A panic there ended its connection, and the test has seen it.
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
