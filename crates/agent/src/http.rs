//! Requests to the servers that take metrics and profiles.

use std::io::Read;
use std::time::Duration;

use ureq::Agent;
use ureq::http::uri::Scheme;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::config::Header;
use crate::error::StartError;

/// Bytes of an answer that are read at most.
const ANSWER_LIMIT: u64 = 64 * 1_024;

/// Characters of an answer that a message quotes at most.
const QUOTE_LIMIT: usize = 300;

/// Sends requests to one server.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    headers: HeaderMap,
}

/// The answer of a server.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub status: u16,
    /// The first [`ANSWER_LIMIT`] bytes of the body.
    pub body: Vec<u8>,
    /// Whether that is the whole body.
    pub complete: bool,
}

impl Client {
    /// Returns a client with the configured headers, for which a whole request takes `timeout` at most.
    ///
    /// # Errors
    /// A header is malformed.
    pub fn new(headers: &[Header], timeout: Duration) -> Result<Self, StartError> {
        let headers = headers.iter().map(parse).collect::<Result<_, _>>()?;
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // A redirected request would take the configured headers, with their secrets, to another server.
            .max_redirects(0)
            // Requests are rare. A kept connection that the server has closed meanwhile would only fail the next one.
            .max_idle_connections(0)
            .user_agent(concat!("halprof/", env!("CARGO_PKG_VERSION")));
        Ok(Self { agent: config.build().new_agent(), headers })
    }

    /// Sends a `POST` request and reads the answer, whatever its status.
    ///
    /// # Errors
    /// There is no answer: the server cannot be reached, is too slow, or does not speak HTTP.
    pub fn post(
        &self,
        url: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = self.agent.post(url).query_pairs(query.iter().copied());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut response = request.send(body)?;
        let mut body = Vec::new();
        // The status decides. A body that breaks off is for the caller to judge.
        let read = response.body_mut().as_reader().take(ANSWER_LIMIT + 1).read_to_end(&mut body);
        let complete = read.is_ok() && body.len() as u64 <= ANSWER_LIMIT;
        body.truncate(usize::try_from(ANSWER_LIMIT).unwrap_or(usize::MAX));
        Ok(Answer { status: response.status().as_u16(), body, complete })
    }
}

impl Answer {
    /// Returns whether the status is a success.
    pub const fn is_success(&self) -> bool {
        matches!(self.status, 200..300)
    }

    /// Returns the status and the begin of the body, for a message.
    pub fn quote(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(QUOTE_LIMIT).collect();
        match text.trim() {
            "" => format!("the server answered {}", self.status),
            text => format!("the server answered {}: {text}", self.status),
        }
    }
}

/// Checks the address of a server.
///
/// # Errors
/// It is malformed, or is none of HTTP.
pub(crate) fn check(url: &str) -> Result<Uri, StartError> {
    let uri: Uri = url.parse().map_err(StartError::Address)?;
    if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
        return Err(StartError::Scheme);
    }
    Ok(uri)
}

fn parse(header: &Header) -> Result<(HeaderName, HeaderValue), StartError> {
    let malformed = || StartError::Header(header.name.clone());
    let name = header.name.parse().map_err(|_| malformed())?;
    let mut value: HeaderValue = header.value.parse().map_err(|_| malformed())?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_http_pass() {
        let cases = [
            ("http://127.0.0.1:4318/v1/metrics", "fine"),
            ("https://collector.example/v1/metrics", "fine"),
            ("ftp://collector.example/", "neither"),
            ("127.0.0.1:4318", "neither"),
            ("/v1/metrics", "neither"),
            ("http://a b/", "malformed"),
        ];
        for (url, expected) in cases {
            let result = check(url).map_or_else(|error| error.to_string(), |_| "fine".to_owned());
            assert!(result.contains(expected), "{url}: {result}");
        }
    }

    #[test]
    fn secrets_of_headers_stay_out_of_messages() {
        let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
        let secret = header("Authorization", "Bearer 123456");
        let client = Client::new(std::slice::from_ref(&secret), Duration::from_secs(1)).unwrap();
        assert!(!format!("{client:?}").contains("123456"), "{client:?}");
        for bad in [header("Authorization", "123456\n"), header("A B", "123456")] {
            let error = Client::new(&[bad], Duration::from_secs(1)).unwrap_err();
            assert!(matches!(&error, StartError::Header(_)) && !format!("{error:?}").contains("123456"), "{error:?}");
        }
    }

    #[test]
    fn a_quote_is_short_and_printable() {
        let body = format!("a\u{1b}[31m\r\n{}", "x".repeat(9_999)).into_bytes();
        let quote = Answer { status: 503, body, complete: true }.quote();
        assert!(quote.starts_with("the server answered 503: a [31m  x") && quote.len() < 400, "{quote}");
        assert_eq!(Answer { status: 204, body: vec![], complete: true }.quote(), "the server answered 204");
    }
}
