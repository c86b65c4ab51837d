//! Sends waiting profiles to a server, oldest first.

use std::fs;
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use super::outbox::{Outbox, Waiting};
use super::{Profile, Statistics, request};
use crate::config;
use crate::error::StartError;
use crate::http::{self, Answer, Client};

/// Pauses after failed attempts. They double from one to the next, and are lengthened by a random part of themselves so
/// that many agents do not come back to a server at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// The shortest.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_mins(5) }
    }
}

impl Pauses {
    fn build(self) -> ExponentialBackoff {
        // The random part is up to the whole pause.
        let longest = self.longest / 2;
        let builder = ExponentialBuilder::new().with_min_delay(self.first).with_max_delay(longest);
        builder.with_jitter().without_max_times().build()
    }
}

/// A thread that sends waiting profiles.
#[derive(Debug)]
pub struct Push {
    shared: Arc<Shared>,
    /// Its end tells that the thread has ended.
    stopped: Receiver<()>,
    timeout: Duration,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<PushState>,
    /// A profile was added, or the thread must stop.
    changed: Condvar,
}

#[derive(Debug)]
struct PushState {
    outbox: Outbox,
    stops: bool,
    last_error: Option<String>,
}

/// What the thread has.
struct Sender {
    client: Client,
    config: config::Push,
    pauses: Pauses,
    shared: Arc<Shared>,
}

/// What became of an attempt.
enum Outcome {
    Sent,
    /// The server does not want this profile: it would never succeed.
    Refused(String),
    /// The profile cannot be read.
    Unreadable(io::Error),
    Failed(String),
}

impl Push {
    /// Begins to send the profiles that wait in the folder of the configuration, and those that are added.
    ///
    /// # Errors
    /// The address or a header is malformed, the folder cannot be used, or the system has no thread.
    pub fn start(config: &config::Push) -> Result<Self, StartError> {
        Self::start_with(config, Pauses::default())
    }

    /// Begins to send, with other pauses after failed attempts.
    ///
    /// # Errors
    /// As [`Push::start`].
    pub fn start_with(config: &config::Push, pauses: Pauses) -> Result<Self, StartError> {
        if http::check(&config.url)?.query().is_some() {
            return Err(StartError::Query);
        }
        let client = Client::new(&config.headers, config.timeout)?;
        let limit = config.buffer_limit_mib.saturating_mul(1_024 * 1_024);
        let outbox = Outbox::open(&config.buffer, limit)
            .map_err(|cause| StartError::Buffer { path: config.buffer.clone(), cause })?;
        let state = Mutex::new(PushState { outbox, stops: false, last_error: None });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let sender = Sender { client, config: config.clone(), pauses, shared: Arc::clone(&shared) };
        let (done, stopped) = mpsc::channel();
        let run = move || {
            sender.run();
            drop(done);
        };
        thread::Builder::new().name("push".to_owned()).spawn(run).map_err(StartError::Thread)?;
        Ok(Self { shared, stopped, timeout: config.timeout })
    }

    /// Writes a profile to the disk, from where it is sent. The oldest waiting profiles are dropped if there is no room
    /// for it; the profile itself is dropped if it is larger than the limit.
    ///
    /// # Errors
    /// It cannot be written, for example because the disk is full. It is counted as failed.
    pub fn put(&self, profile: &Profile) -> io::Result<()> {
        let result = self.shared.lock().outbox.put(profile);
        self.shared.changed.notify_all();
        result
    }

    /// Returns the numbers of profiles.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().outbox.statistics()
    }

    /// Returns why the latest failed attempt failed. Later successes do not clear it.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.lock().last_error.clone()
    }

    /// Stops. Waits for a request that is under way, at most until its timeout. Waiting profiles stay on the disk.
    pub fn stop(self) {
        self.shared.stop();
        // The thread never sends. Its end disconnects the channel.
        let _ = self.stopped.recv_timeout(self.timeout);
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().stops = true;
        self.changed.notify_all();
    }

    /// Waits for a profile. Returns it and its file; `None` when the thread must stop.
    fn next(&self) -> Option<(Waiting, std::path::PathBuf)> {
        let mut state = self.lock();
        loop {
            if state.stops {
                return None;
            }
            if let Some(waiting) = state.outbox.begin() {
                return Some((waiting, state.outbox.path(&waiting)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Sender {
    fn run(&self) {
        let mut pauses = self.pauses.build();
        while let Some((waiting, path)) = self.shared.next() {
            // The lock is free meanwhile, for profiles that are added.
            let outcome = match fs::read(path) {
                Ok(pprof) => self.send(&waiting, pprof),
                Err(cause) => Outcome::Unreadable(cause),
            };
            let mut state = self.shared.lock();
            match outcome {
                Outcome::Sent => {
                    state.outbox.sent();
                    pauses = self.pauses.build();
                }
                Outcome::Refused(message) => {
                    state.outbox.refused();
                    state.last_error = Some(message);
                    pauses = self.pauses.build();
                }
                Outcome::Unreadable(cause) => {
                    state.outbox.unreadable(cause.kind());
                    state.last_error = Some(format!("cannot read a waiting profile: {cause}"));
                }
                Outcome::Failed(message) => {
                    state.outbox.keep();
                    state.last_error = Some(message);
                    let pause = pauses.next().unwrap_or(self.pauses.longest);
                    let waits = self.shared.changed.wait_timeout_while(state, pause, |state| !state.stops);
                    drop(waits.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn send(&self, waiting: &Waiting, pprof: Vec<u8>) -> Outcome {
        let request = match request::request(&self.config, waiting, pprof) {
            Ok(request) => request,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let query: Vec<_> = request.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // A server, or a proxy in front of it, can recognize a profile whose answer was lost.
        let id = waiting.id.to_string();
        let headers = [("Content-Type", request.content_type), ("Idempotency-Key", id.as_str())];
        match self.client.post(&request.url, &query, &headers, &request.body) {
            Ok(answer) => judge(&answer),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

fn judge(answer: &Answer) -> Outcome {
    match answer.status {
        200..300 => Outcome::Sent,
        // Bad request, content too large, unsupported media type, unprocessable content: the profile is at fault. With
        // any other answer, such as 401 or 404, an operator or the server can mend what is wrong.
        400 | 413 | 415 | 422 => Outcome::Refused(answer.quote()),
        _ => Outcome::Failed(answer.quote()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_within_their_limits() {
        let pauses = Pauses::default();
        let lengths: Vec<_> = pauses.build().take(100).collect();
        assert!(lengths.iter().all(|length| *length >= pauses.first && *length <= pauses.longest), "{lengths:?}");
        assert!(lengths.first().unwrap() < &Duration::from_secs(2));
        assert!(lengths.iter().skip(20).all(|length| *length >= pauses.longest / 2));
        assert_ne!(lengths, pauses.build().take(100).collect::<Vec<_>>(), "without a random part");
    }

    #[test]
    fn the_status_decides_whether_a_profile_is_kept() {
        let cases = [
            (200, "sent"),
            (204, "sent"),
            (302, "kept"),
            (400, "refused"),
            (401, "kept"),
            (404, "kept"),
            (408, "kept"),
            (413, "refused"),
            (422, "refused"),
            (429, "kept"),
            (500, "kept"),
            (503, "kept"),
        ];
        for (status, expected) in cases {
            let outcome = match judge(&Answer { status, body: Vec::new(), complete: true }) {
                Outcome::Sent => "sent",
                Outcome::Refused(_) => "refused",
                Outcome::Failed(_) => "kept",
                Outcome::Unreadable(_) => "unreadable",
            };
            assert_eq!(outcome, expected, "{status}");
        }
    }
}
