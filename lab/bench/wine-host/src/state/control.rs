//! The state of the bench protocol's server.

use std::{
    collections::HashMap,
    net::{SocketAddr, TcpStream},
    sync::{Mutex, OnceLock},
    thread::JoinHandle,
};

/// The threads and the connections of the lab.
#[derive(Default)]
pub struct Control {
    /// The threads of the lab while it runs.
    pub threads: Mutex<Option<Vec<JoinHandle<()>>>>,
    /// The open connections; None if no more are accepted.
    pub connections: Mutex<Option<HashMap<SocketAddr, TcpStream>>>,
    /// The address of the server. Set when the lab starts.
    pub address: OnceLock<SocketAddr>,
}
