//! One connection, from the handshake to the end, and its timeouts.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::answer::Site;

/// Time for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the client to send the header.
const HEADER: Duration = Duration::from_secs(5);
/// Time for the request: the header, the verification of a password, and the client's reading of the response.
const REQUEST: Duration = Duration::from_secs(15);
/// Time and bytes for the client to notice the end of the connection.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 256 * 1_024;
/// Size of the header.
const MAX_HEADER: usize = 16 * 1_024;

/// Why a connection ended early. The agent drops it; tests and debuggers read it.
#[derive(Debug, Error)]
pub(super) enum ConnectionError {
    #[error("the connection failed")]
    Broken(#[from] io::Error),
    #[error("the client was too slow")]
    Slow(#[from] Elapsed),
    #[error("the request is malformed")]
    Malformed(#[from] hyper::Error),
}

/// Serves the one request of a connection.
pub(super) async fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    site: Arc<Site>,
) -> Result<(), ConnectionError> {
    // The response is written at once; the delay of small packets would only slow the handshake.
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => answer(timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await??, site).await,
        None => answer(stream, site).await,
    }
}

async fn answer<S>(stream: S, site: Arc<Site>) -> Result<(), ConnectionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(move |request| Box::pin(Arc::clone(&site).answer(request)));
    // Half-closed connections are left to hyper, which ends them: a client that went away must not keep a place in
    // the queue for the verification of its password.
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(MAX_HEADER)
        .keep_alive(false)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service);
    let result = timeout(REQUEST, poll_fn(|context| connection.poll_without_shutdown(context))).await?;
    linger(connection.into_parts().io.into_inner()).await?;
    Ok(result?)
}

/// Tells the client the end, and waits until it has closed the connection too. If a socket is closed while bytes of
/// the client wait in it, such as the body of the request, TCP resets the connection, and the client may lose the
/// response.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> Result<(), ConnectionError> {
    let end = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES), &mut tokio::io::sink()).await
    };
    timeout(LINGER, end).await??;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tokio::io::{DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;
    use crate::family::Family;
    use crate::snapshot::{Latest, Point, Snapshot, Value};

    /// Starts to serve one end of a pipe, and returns the other.
    fn connect() -> (DuplexStream, tokio::task::JoinHandle<Result<(), ConnectionError>>) {
        let (client, server) = duplex(1_024);
        let point = |index: u32| Point {
            family: Family::Gaps,
            labels: vec![("reason", index.to_string())],
            value: Value::Integer(1),
        };
        let latest = Latest::default();
        let (time, begun) = (SystemTime::now(), SystemTime::now());
        latest.set(Snapshot { time, begun, driver_begun: begun, points: (0..1_000).map(point).collect() });
        (client, tokio::spawn(answer(server, Arc::new(Site::new(latest, None)))))
    }

    /// Returns how long the server kept a connection after these bytes, if the client neither reads nor closes.
    async fn patience(bytes: &[u8]) -> (Duration, Result<(), ConnectionError>) {
        let (mut client, server) = connect();
        let begun = Instant::now();
        client.write_all(bytes).await.unwrap();
        let result = server.await.unwrap();
        drop(client);
        (begun.elapsed(), result)
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clients_are_left() {
        let cases: [(&[u8], Duration); 4] = [
            (b"", HEADER),
            (b"GET /metrics HTTP/1.1\r\nHost: a\r\n", HEADER),
            (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST),
            // The response fits into the pipe, so only the end of the connection is missing.
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", LINGER),
        ];
        for (bytes, expected) in cases {
            let (waited, result) = patience(bytes).await;
            let request = String::from_utf8_lossy(bytes);
            assert!(waited >= expected && waited < expected + LINGER * 2, "{request}: {waited:?}, {result:?}");
            assert!(result.is_err(), "{request}: {result:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_drips_its_header_or_its_reading_is_left_too() {
        let (mut client, server) = connect();
        let begun = Instant::now();
        for byte in b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
        assert!(server.await.unwrap().is_err());
        assert!(begun.elapsed() < HEADER * 2, "{:?}", begun.elapsed());

        let (mut client, server) = connect();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let begun = Instant::now();
        let mut received = Vec::new();
        while client.read_buf(&mut received).await.is_ok_and(|length| length > 0) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(matches!(server.await.unwrap(), Err(ConnectionError::Slow(_))));
        assert!(begun.elapsed() < REQUEST * 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_request_is_read_within_bounds() {
        let (mut client, server) = connect();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n").await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(client);
        let sent = tokio::spawn(async move {
            let mut sent = 0_u64;
            while writing.write_all(&[b'x'; 1_024]).await.is_ok() {
                sent += 1_024;
            }
            sent
        });
        let mut received = String::new();
        reading.read_to_string(&mut received).await.unwrap();
        assert!(received.starts_with("HTTP/1.1 200 "), "{received}");
        assert!(server.await.unwrap().is_ok());
        assert!(sent.await.unwrap() <= LINGER_BYTES + 64 * 1_024);
    }
}
