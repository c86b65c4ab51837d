//! The endpoint with TLS, and a client that trusts only its certificate.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use agent::config::{Prometheus, Tls};
use rustls_pki_types::ServerName;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A client that trusts one certificate.
pub struct Client(Arc<ClientConfig>);

/// Makes a certificate for `localhost` in a folder. Returns the configuration that names it, and a client.
pub fn configuration(folder: &Path, users: &[&str]) -> (Prometheus, Client) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: folder.join("a.crt"), key: folder.join("a.key") };
    fs::write(&tls.certificate, made.cert.pem()).unwrap();
    fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Prometheus { tls: Some(tls), ..super::configuration(users) }, Client(Arc::new(client)))
}

impl Client {
    /// Returns a connection with TLS. The handshake follows with the first byte that is sent.
    pub fn wrap(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::clone(&self.0), name).unwrap(), socket)
    }
}
