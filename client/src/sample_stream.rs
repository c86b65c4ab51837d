//! The samples of a session, request by request.

use std::sync::Arc;
use std::time::Duration;

use halprof::Device;
use protocol::{Code, SampleRecord, SamplesRequest};
use zerocopy::IntoBytes;

use crate::connection::{malformed, name, unanswered};
use crate::error::Error;
use crate::recorder::{Batch, Buffers};
use crate::refusal::Refusal;
use crate::reply::{Malformed, Reply};
use crate::source::Sources;

/// Fetches the samples of a session.
///
/// One request at a time is with the driver. The driver can answer a second one before the first, and then the samples
/// of a processor would be out of order; its rings hold them for the microseconds between two requests.
pub struct SampleStream {
    device: Box<dyn Device + Send>,
    session: u64,
}

impl SampleStream {
    /// Creates the stream of a session that was started with the same handle.
    pub fn new(device: Box<dyn Device + Send>, session: u64) -> Self {
        Self { device, session }
    }

    /// Returns samples in the order in which the driver returned them, and whether the session is stopped and has no
    /// more. Waits for `wait` unless the driver has many samples before, and for memory.
    pub fn fetch(&mut self, wait: Duration, buffers: &Arc<Buffers>) -> Result<(Batch, bool), Error> {
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        let request = SamplesRequest { session: self.session, wait, reserved: 0 };
        let mut buffer = buffers.take();
        let answer = self.device.request(Code::Samples, request.as_bytes(), buffer.bytes());
        let checked = answer.map_err(|cause| unanswered(Code::Samples, cause)).and_then(|length| {
            let reply = Reply::new(&*buffer.bytes(), length).map_err(invalid)?;
            if !reply.is_success() {
                return Err(refused(&reply).into());
            }
            let count = reply.record_bytes::<SampleRecord>().map_err(invalid)?.len() / size_of::<SampleRecord>();
            let [last, _] = reply.header.detail;
            Ok((count, last != 0))
        });
        let count = checked.as_ref().map_or(0, |(count, _)| *count);
        let batch = buffers.fill(buffer, count);
        checked.map(|(_, is_last)| (batch, is_last))
    }
}

/// Returns the error for more samples than the rings of a session can hold.
pub fn too_many() -> Error {
    invalid(Malformed::Endless)
}

fn invalid(cause: Malformed) -> Error {
    malformed(Code::Samples, cause)
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
