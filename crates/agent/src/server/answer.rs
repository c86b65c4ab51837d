//! The response to a request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, VARY, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::accept::{self, Format};
use super::users::Users;
use crate::snapshot::Latest;
use crate::{openmetrics, text_format};

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What the endpoint shows, and to which users.
#[derive(Debug)]
pub(super) struct Site {
    latest: Latest,
    users: Option<Users>,
    requests: AtomicU64,
}

impl Site {
    pub(super) const fn new(latest: Latest, users: Option<Users>) -> Self {
        Self { latest, users, requests: AtomicU64::new(0) }
    }

    /// Returns the number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the response. The body of the request is ignored.
    pub(super) async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (head, _) = request.into_parts();
        // Before anything else, so that a stranger does not even learn which pages exist.
        if let Some(users) = &self.users
            && !users.is_allowed(head.headers.get(AUTHORIZATION)).await
        {
            let mut response = plain(StatusCode::UNAUTHORIZED, "A name and a password are required.\n");
            let challenge = HeaderValue::from_static("Basic realm=\"halprof\", charset=\"UTF-8\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            return Ok(response);
        }
        let page = match head.uri.path() {
            "/metrics" => metrics,
            "/" => index,
            _ => return Ok(plain(StatusCode::NOT_FOUND, "No such page. The metrics are at /metrics.\n")),
        };
        if head.method != Method::GET && head.method != Method::HEAD {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are supported.\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Ok(response);
        }
        Ok(page(&self, &head.headers))
    }
}

fn index(_: &Site, _: &HeaderMap) -> Response<Full<Bytes>> {
    plain(StatusCode::OK, "halprof agent. The metrics are at /metrics.\n")
}

fn metrics(site: &Site, headers: &HeaderMap) -> Response<Full<Bytes>> {
    let Some(snapshot) = site.latest.get() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "The agent has not read its counters yet.\n");
    };
    let (kind, text) = match accept::format(headers) {
        Format::OpenMetrics => (openmetrics::CONTENT_TYPE, openmetrics::encode(&snapshot)),
        Format::Text => (text_format::CONTENT_TYPE, text_format::encode(&snapshot)),
    };
    let Ok(text) = text else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "The metrics cannot be encoded.\n");
    };
    let mut response = response(StatusCode::OK, HeaderValue::from_static(kind), text);
    response.headers_mut().insert(VARY, HeaderValue::from(ACCEPT));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    response(status, PLAIN, text)
}

fn response(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
