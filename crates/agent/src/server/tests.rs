use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::*;
use crate::config::{Prometheus, Tls, User};

fn configuration(listen: &str) -> Prometheus {
    Prometheus { listen: listen.parse().unwrap(), tls: None, users: Vec::new() }
}

fn with_user(listen: &str) -> Prometheus {
    let hash = bcrypt::hash_with_salt("secret", 4, [7; 16]).unwrap().to_string();
    let user = User { name: "ann".to_owned(), password_hash: hash };
    Prometheus { users: vec![user], ..configuration(listen) }
}

fn error(config: &Prometheus) -> ServerError {
    Server::start(config, Latest::default()).unwrap_err()
}

#[test]
fn passwords_do_not_cross_the_network_in_plain_text() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let error = error(&with_user(address));
        assert!(matches!(error, ServerError::PlainPassword { .. }), "{address}: {error}");
        assert!(error.to_string().contains("a password would cross the network in plain text"), "{error}");
    }
    Server::start(&with_user("127.0.0.1:0"), Latest::default()).unwrap().stop();
    Server::start(&configuration("0.0.0.0:0"), Latest::default()).unwrap().stop();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = error(&Prometheus { listen: address, ..configuration("127.0.0.1:0") });
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "b"] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(path(&format!("{name}.crt")), made.cert.pem()).unwrap();
        fs::write(path(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
    }
    fs::write(path("text"), "not PEM").unwrap();
    fs::write(path("empty"), "").unwrap();
    let cases = [
        ("missing", "a.key", "cannot read missing: I/O error"),
        ("a.crt", "missing", "cannot read missing: I/O error"),
        ("text", "a.key", "cannot use the certificate"),
        ("empty", "a.key", "cannot use the certificate"),
        ("a.key", "a.key", "cannot use the certificate"),
        ("a.crt", "text", "cannot read text: no items found"),
        ("a.crt", "a.crt", "cannot read a.crt: no items found"),
        ("a.crt", "b.key", "cannot use the certificate"),
    ];
    for (certificate, key, expected) in cases {
        let tls = Tls { certificate: path(certificate), key: path(key) };
        let error = error(&Prometheus { tls: Some(tls), ..configuration("127.0.0.1:0") });
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = format!("{error}: {cause}").replace(&shown(folder.path()), "");
        assert!(text.contains(expected), "{certificate} {key}: {text}");
    }
}

fn shown(folder: &Path) -> String {
    format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR)
}

#[test]
fn a_stopped_endpoint_frees_its_address() {
    let is_free = |address: SocketAddr| TcpListener::bind(address).is_ok();
    let server = Server::start(&configuration("127.0.0.1:0"), Latest::default()).unwrap();
    let address = server.address();
    assert!(address.port() != 0 && !is_free(address));
    server.stop();
    assert!(is_free(address));
    drop(Server::start(&Prometheus { listen: address, ..configuration("127.0.0.1:0") }, Latest::default()).unwrap());
    assert!(is_free(address));
}
