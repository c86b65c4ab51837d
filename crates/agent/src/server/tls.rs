//! Certificates and key.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use super::ServerError;
use crate::config::Tls;

/// Reads the files, and returns the configuration of the handshakes.
pub(super) fn server_config(config: &Tls) -> Result<Arc<ServerConfig>, ServerError> {
    let Tls { certificate, key } = config;
    let certificate_error = |cause| ServerError::Pem { path: certificate.clone(), cause };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(certificate_error)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|cause| ServerError::Pem { path: key.clone(), cause })?;
    // The provider is named here, so that it does not depend on what else the process links.
    let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(Box::new)
        .map_err(|cause| ServerError::Tls { certificate: certificate.clone(), key: key.clone(), cause })?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}
