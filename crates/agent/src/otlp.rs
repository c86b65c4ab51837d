//! Sends the latest snapshot to an OpenTelemetry collector: OTLP over HTTP, in protobuf.

mod request;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use crate::config;
use crate::error::StartError;
use crate::http::{self, Answer, Client};
use crate::snapshot::Latest;

/// Time in which an export succeeds or fails.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Interval to which longer ones are shortened, so that the time of the next export can be computed.
const LONGEST_INTERVAL: Duration = Duration::from_hours(365 * 24);

/// A thread that exports the latest snapshot at each interval.
#[derive(Debug)]
pub struct Otlp {
    failures: Arc<Failures>,
    /// Its end tells the thread to make the last export.
    stop: Sender<()>,
    /// Its end tells that the thread has made the last export.
    stopped: Receiver<()>,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct Failures {
    number: AtomicU64,
    last: Mutex<Option<String>>,
}

/// What the thread has.
struct Exporter {
    client: Client,
    url: String,
    resource: Resource,
    interval: Duration,
    latest: Latest,
    failures: Arc<Failures>,
}

impl Otlp {
    /// Begins to export.
    ///
    /// # Errors
    /// The address or a header is malformed, or the system has no thread.
    pub fn start(config: &config::Otlp, latest: Latest) -> Result<Self, StartError> {
        Self::start_with(config, latest, TIMEOUT)
    }

    /// Begins to export, with another timeout than 10 seconds.
    ///
    /// # Errors
    /// As [`Otlp::start`].
    pub fn start_with(config: &config::Otlp, latest: Latest, timeout: Duration) -> Result<Self, StartError> {
        http::check(&config.endpoint)?;
        let failures = Arc::new(Failures::default());
        let exporter = Exporter {
            client: Client::new(&config.headers, timeout)?,
            url: config.endpoint.clone(),
            resource: request::resource(&config.attributes),
            interval: config.interval.min(LONGEST_INTERVAL),
            latest,
            failures: Arc::clone(&failures),
        };
        let (stop, stopping) = mpsc::channel();
        let (done, stopped) = mpsc::channel();
        let run = move || {
            exporter.run(&stopping);
            drop(done);
        };
        thread::Builder::new().name("otlp".to_owned()).spawn(run).map_err(StartError::Thread)?;
        Ok(Self { failures, stop, stopped, timeout })
    }

    /// Returns the number of failed exports.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.number.load(Ordering::Relaxed)
    }

    /// Returns why the latest of them failed. Later successes do not clear it.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.failures.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a last export and stops. Returns after the timeout of an export at the latest, even if the server hangs.
    pub fn stop(self) {
        let Self { stop, stopped, timeout, .. } = self;
        drop(stop);
        // The thread never sends. If it is still in a request after the timeout, it ends by itself soon after.
        let _ = stopped.recv_timeout(timeout);
    }
}

impl Exporter {
    fn run(&self, stopping: &Receiver<()>) {
        let mut due = Instant::now() + self.interval;
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            let stops = stopping.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            if let Err(message) = self.export() {
                self.failures.number.fetch_add(1, Ordering::Relaxed);
                *self.failures.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
            }
            if stops {
                return;
            }
            due += self.interval;
            let now = Instant::now();
            if due <= now {
                // Exports that were missed because the server is slow would only burden it.
                due = now + self.interval;
            }
        }
    }

    /// Exports the latest snapshot, if any.
    fn export(&self) -> Result<(), String> {
        let Some(snapshot) = self.latest.get() else { return Ok(()) };
        let body = request::request(&snapshot, self.resource.clone()).encode_to_vec();
        let headers = [("Content-Type", "application/x-protobuf")];
        let answer = self.client.post(&self.url, &[], &headers, &body).map_err(|error| error.to_string())?;
        judge(&answer)
    }
}

/// The part of `google.rpc.Status`, the body of an answer without success, that is for people.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Returns why an answer is not a success of all points.
fn judge(answer: &Answer) -> Result<(), String> {
    if !answer.is_success() {
        return Err(match Status::decode(answer.body.as_slice()) {
            Ok(Status { message }) if !message.is_empty() => {
                Answer { status: answer.status, body: message.into_bytes(), complete: true }.quote()
            }
            _ => answer.quote(),
        });
    }
    if !answer.complete {
        return Err("the answer of the server breaks off, or is too long".to_owned());
    }
    let response = ExportMetricsServiceResponse::decode(answer.body.as_slice())
        .map_err(|_| format!("the answer is not OTLP in protobuf: {}", answer.quote()))?;
    match response.partial_success {
        Some(partial) if partial.rejected_data_points != 0 => {
            let message = partial.error_message.into_bytes();
            let quote = Answer { status: answer.status, body: message, complete: true }.quote();
            Err(format!("{} points were rejected: {quote}", partial.rejected_data_points))
        }
        _ => Ok(()),
    }
}
