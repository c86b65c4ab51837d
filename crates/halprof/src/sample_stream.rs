//! The samples of a session, request by request.

use std::time::Duration;

use protocol::{Code, SampleRecord, SamplesRequest};
use zerocopy::IntoBytes;

use crate::device::Device;
use crate::error::Error;
use crate::refusal::Refusal;
use crate::reply::{InvalidReply, Reply};
use crate::request::{invalid, name, unanswered};
use crate::source::Sources;

/// Fetches the samples of a session.
///
/// One request at a time is with the driver. The driver can answer a second one before the first, and then the samples
/// of a processor would be out of order; its rings hold them for the microseconds between two requests.
pub struct SampleStream {
    device: Box<dyn Device + Send>,
    session: u64,
}

/// What a request for samples returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// Number of records after the header.
    pub count: usize,
    /// Whether the session is stopped and has no more samples.
    pub is_last: bool,
}

impl SampleStream {
    /// Creates the stream of a session that was started with the same handle.
    #[must_use]
    pub fn new(device: Box<dyn Device + Send>, session: u64) -> Self {
        Self { device, session }
    }

    /// Fetches samples, in the order in which the driver returns them. Waits for `wait` unless the driver has many
    /// samples before.
    ///
    /// The reply is written to `buffer`: a [`ReplyHeader`](protocol::ReplyHeader), then
    /// [`count`](Fetched::count) records of type [`SampleRecord`].
    ///
    /// # Errors
    /// If the driver refuses, or its reply is invalid.
    pub fn fetch(&mut self, wait: Duration, buffer: &mut [u8]) -> Result<Fetched, Error> {
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        let request = SamplesRequest { session: self.session, wait, reserved: 0 };
        let answer = self.device.request(Code::Samples, request.as_bytes(), buffer);
        let length = answer.map_err(|cause| unanswered(Code::Samples, cause))?;
        let reply = Reply::new(&*buffer, length).map_err(of_samples)?;
        if !reply.is_success() {
            return Err(refused(&reply).into());
        }
        let count = reply.record_bytes::<SampleRecord>().map_err(of_samples)?.len() / size_of::<SampleRecord>();
        let [last, _] = reply.header.detail;
        Ok(Fetched { count, is_last: last != 0 })
    }

    /// Returns the error for more samples than the rings of a session can hold.
    #[must_use]
    pub fn too_many() -> Error {
        of_samples(InvalidReply::Endless)
    }
}

fn of_samples(cause: InvalidReply) -> Error {
    invalid(Code::Samples, cause)
}

/// Returns the refusal of a request for samples, which concerns no source.
fn refused<B>(reply: &Reply<B>) -> Refusal {
    Refusal {
        request: name(Code::Samples),
        header: reply.header,
        source: Sources::default().refused_name(reply.header.source),
        sessions: Vec::new(),
        part: Vec::new(),
        core_types: Vec::new(),
        is_root: false,
    }
}
