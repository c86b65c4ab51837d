//! The loop that accepts connections, and how many.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ServerConfig;

use super::answer::Site;
use super::connection;

/// Connections at a time. A few scrapers need one each, for some milliseconds.
const MAX_CONNECTIONS: usize = 16;
/// Pause after the system has refused to accept a connection, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for the connections to finish when the endpoint stops.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// What the endpoint has done since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Well-formed requests, whatever the response was.
    pub requests: u64,
    /// Connections that were closed at once because too many were open.
    pub refused: u64,
    /// Connections that are open now.
    pub open: usize,
}

#[derive(Debug)]
pub(super) struct Listener {
    site: Arc<Site>,
    tls: Option<Arc<ServerConfig>>,
    free: Arc<Semaphore>,
    refused: AtomicU64,
}

impl Listener {
    pub(super) fn new(site: Site, tls: Option<Arc<ServerConfig>>) -> Self {
        let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { site: Arc::new(site), tls, free, refused: AtomicU64::new(0) }
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            requests: self.site.requests(),
            refused: self.refused.load(Ordering::Relaxed),
            open: MAX_CONNECTIONS.saturating_sub(self.free.available_permits()),
        }
    }

    /// Accepts connections until `stopped` fires, then gives the open ones [`GRACE`] to finish.
    pub(super) async fn serve(self: &Arc<Self>, socket: TcpListener, mut stopped: oneshot::Receiver<()>) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                // Frees the memory of tasks that have ended, also of one that panicked.
                Some(_) = tasks.join_next() => {}
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream, &mut tasks),
                    Err(error) if is_of_connection(&error) => {}
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
        drop(socket);
        let finished = timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await;
        if finished.is_err() {
            tasks.shutdown().await;
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, tasks: &mut JoinSet<()>) {
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let listener = Arc::clone(self);
        tasks.spawn(async move {
            // Errors are dropped: a client can cause any number of them, and messages would only fill the disk.
            let _ = connection::serve(stream, listener.tls.clone(), Arc::clone(&listener.site)).await;
            drop(permit);
        });
    }
}

/// Returns whether an error of `accept` is of the one connection, which the client has given up meanwhile.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
