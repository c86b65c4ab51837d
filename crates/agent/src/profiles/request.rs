//! A profile as a request of a server.

use base64ct::{Base64, Encoding};
use serde::Serialize;

use super::outbox::Waiting;
use crate::config::{Push, Server};
use crate::host;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// The address, without the query.
    pub url: String,
    /// The query, not encoded.
    pub query: Vec<(&'static str, String)>,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// Returns the request that sends a profile.
///
/// # References
/// Pyroscope, "Server HTTP API", `POST /ingest`. With `format=pprof` the body is the profile itself; a multipart form
/// would be taken for a profile, too, and is only recognized without `format`.
///
/// Parca, profilestore.proto: `ProfileStoreService.WriteRaw` as HTTP with JSON, which the server has below `/api`.
pub(super) fn request(config: &Push, waiting: &Waiting, pprof: Vec<u8>) -> serde_json::Result<Request> {
    let url = config.url.trim_end_matches('/');
    match config.to {
        Server::Pyroscope => {
            let name = format!("{}{{host={}}}", config.application, label(&host::name()));
            let query = vec![
                ("name", name),
                ("from", waiting.begun().to_string()),
                ("until", waiting.ended().to_string()),
                ("format", "pprof".to_owned()),
            ];
            let content_type = "application/octet-stream";
            Ok(Request { url: format!("{url}/ingest"), query, content_type, body: pprof })
        }
        Server::Parca => {
            let raw_profile = Base64::encode_string(&pprof);
            drop(pprof);
            let label = |name, value: &str| Label { name, value: value.to_owned() };
            // `__name__` is the first part of the type of a profile, which must be an identifier.
            let labels =
                vec![label("__name__", "halprof"), label("job", &config.application), label("node", &host::name())];
            let series = [RawProfileSeries { labels: LabelSet { labels }, samples: [RawSample { raw_profile }] }];
            let body = serde_json::to_vec(&WriteRawRequest { series })?;
            let url = format!("{url}/api/profiles/writeraw");
            Ok(Request { url, query: Vec::new(), content_type: "application/json", body })
        }
    }
}

/// Replaces the characters that would end a label of Pyroscope, which cannot be escaped.
fn label(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' }).collect()
}

/// The messages of profilestore.proto, as far as they are needed, by the JSON mapping of protobuf.
#[derive(Serialize)]
struct WriteRawRequest {
    series: [RawProfileSeries; 1],
}

#[derive(Serialize)]
struct RawProfileSeries {
    labels: LabelSet,
    samples: [RawSample; 1],
}

#[derive(Serialize)]
struct LabelSet {
    labels: Vec<Label>,
}

#[derive(Serialize)]
struct Label {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RawSample {
    raw_profile: String,
}
