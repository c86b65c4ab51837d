//! Requests that wait until enough samples are available.

use engine::{ClientId, Completion, Engine, Samples};
use wdk_sys::NTSTATUS;

use crate::kernel::Kernel;
use crate::nt::clock;
use crate::nt::irp::Request;
use crate::nt::pending::{PENDING, STATUS_DEVICE_BUSY, STATUS_PENDING};
use interrupt_path::waker::WAITING;

/// Units of 100 ns in a millisecond.
const MILLISECOND: u64 = 10_000;

/// Serves a request for samples, or queues it. Returns the NTSTATUS for the dispatch routine.
///
/// # IRQL
/// At most APC_LEVEL.
#[inline(never)]
pub fn begin(engine: &mut Engine<Kernel>, mut request: Request<'static>) -> NTSTATUS {
    match ask(engine, &mut request, true) {
        Ok(done) => request.complete(done.status.into(), done.information),
        Err(milliseconds) => {
            let deadline = clock::now().0 + u64::from(milliseconds) * MILLISECOND;
            let key = request.file();
            match driver_core::enqueue(&PENDING, &WAITING, (request, key, deadline), crate::wake) {
                Ok(()) => STATUS_PENDING,
                Err(request) => request.complete(STATUS_DEVICE_BUSY, 0),
            }
        }
    }
}

/// Completes the waiting requests that have samples or that are past their deadline. Returns the next deadline.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn go_on(engine: &mut Engine<Kernel>) -> Option<u64> {
    driver_core::serve(&PENDING, &WAITING, |mut request, deadline| {
        let Ok(done) = ask(engine, &mut request, clock::now().0 < deadline) else { return Some(request) };
        request.complete(done.status.into(), done.information);
        None
    })
}

/// Cancels the waiting requests of a client, or of all clients.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn cancel(client: Option<ClientId>) {
    driver_core::cancel(&PENDING, |key| client.is_none_or(|client| client.0 == key));
}

fn ask(engine: &mut Engine<Kernel>, request: &mut Request<'_>, may_wait: bool) -> Result<Completion, u32> {
    let client = ClientId(request.file());
    let (input, output) = request.direct();
    engine.samples(Samples { client, input, output, may_wait })
}
