//! The endpoint that Prometheus scrapes.
//!
//! One thread serves every connection. A connection carries one request: Prometheus scrapes so rarely that an idle
//! connection would outlive every sensible timeout, and each bound then covers the whole of a connection.
//!
//! | module | contents |
//! |---|---|
//! | `accept` | the format of the metrics that a request accepts |
//! | `answer` | the response to a request |
//! | `connection` | one connection, from the handshake to the end, and its timeouts |
//! | `listen` | the loop that accepts connections, and how many |
//! | `tls` | certificates and key |
//! | `users` | basic authentication |

mod accept;
mod answer;
mod connection;
mod listen;
mod tls;
mod users;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bcrypt::BcryptError;
use rustls_pki_types::pem;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_rustls::rustls;

use crate::config;
use crate::snapshot::Latest;

pub use listen::Statistics;

use answer::Site;
use listen::Listener;
use users::Users;

/// Why the endpoint cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Users are configured without TLS, and the address is reachable from other machines.
    #[error("`users` without `tls` on {address}: a password would cross the network in plain text")]
    PlainPassword {
        /// The address.
        address: SocketAddr,
    },
    /// A user cannot be used.
    #[error("user `{name}`: {reason}")]
    User {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A password hash is not one by bcrypt.
    #[error("the password hash of the user `{name}` is malformed")]
    PasswordHash {
        /// The name.
        name: String,
        /// Why.
        #[source]
        cause: BcryptError,
    },
    /// A file of certificates or of a key cannot be read.
    #[error("cannot read {path}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: pem::Error,
    },
    /// The certificates and the key cannot be used.
    #[error("cannot use the certificate {certificate} with the key {key}")]
    Tls {
        /// The file of the certificates.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        #[source]
        cause: Box<rustls::Error>,
    },
    /// The address is in use, or not one of this machine.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The system provides no thread, event queue or random numbers.
    #[error("cannot start the thread of the endpoint")]
    System(#[source] io::Error),
}

/// The running endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    listener: Arc<Listener>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve the latest snapshot.
    ///
    /// # Errors
    /// The address cannot be used, a file or a password hash is malformed, or passwords would cross the network in
    /// plain text.
    pub fn start(config: &config::Prometheus, latest: Latest) -> Result<Self, ServerError> {
        let users = Users::new(&config.users)?;
        let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
        let address = config.listen;
        if users.is_some() && tls.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(ServerError::PlainPassword { address });
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServerError::System)?;
        let unusable = |cause| ServerError::Listen { address, cause };
        let socket = {
            let _context = runtime.enter();
            let socket = TcpListener::bind(address).map_err(unusable)?;
            socket.set_nonblocking(true).map_err(unusable)?;
            tokio::net::TcpListener::from_std(socket).map_err(unusable)?
        };
        let address = socket.local_addr().map_err(unusable)?;
        let listener = Arc::new(Listener::new(Site::new(latest, users), tls));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&listener);
        let thread = thread::Builder::new()
            .name("prometheus".to_owned())
            .spawn(move || run(runtime, &serving, socket, stopped))
            .map_err(ServerError::System)?;
        Ok(Self { address, listener, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address. If the configuration has port 0, this has the port that the system chose.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what the endpoint has done since its start.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.listener.statistics()
    }

    /// Stops the endpoint, and waits until its thread has ended: two seconds at most. Requests in progress have half
    /// of that to finish.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone only if the thread has ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(runtime: Runtime, listener: &Arc<Listener>, socket: tokio::net::TcpListener, stopped: oneshot::Receiver<()>) {
    runtime.block_on(listener.serve(socket, stopped));
    // A password that is being verified must not hold up the end.
    runtime.shutdown_timeout(listen::GRACE);
}

#[cfg(test)]
mod tests;
