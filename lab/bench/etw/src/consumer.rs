//! The functions that receive the events of a session.

#![expect(unsafe_code, reason = "reads what the program points to, and calls its functions")]

use crate::{
    foreign::text,
    machine::{Running, lock, machine, script},
    record::{Clock, with_record},
};
use etw_model::DeliveredEvent;
use std::{
    collections::BTreeMap,
    slice,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
    time::Duration,
};
use windows_sys::Win32::{
    Foundation::{
        ERROR_BAD_LENGTH, ERROR_CANCELLED, ERROR_CTX_CLOSE_PENDING, ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER,
        ERROR_SUCCESS, ERROR_WMI_INSTANCE_NOT_FOUND, FILETIME, SetLastError,
    },
    System::Diagnostics::Etw::{
        EVENT_TRACE_LOGFILEW, PROCESS_TRACE_MODE_EVENT_RECORD, PROCESS_TRACE_MODE_RAW_TIMESTAMP,
        PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE,
    },
};

/// Maximum number of handles that ProcessTrace takes.
const MAX_HANDLES: u32 = 64;

/// INVALID_PROCESSTRACE_HANDLE, which OpenTraceW returns with an error.
const INVALID: PROCESSTRACE_HANDLE = PROCESSTRACE_HANDLE { Value: u64::MAX };

/// Interval between two queries for events.
const POLL: Duration = Duration::from_millis(5);

/// The handles, and the last number that was used. They are no numbers of sessions.
static OPEN: Mutex<(u64, BTreeMap<u64, Arc<Trace>>)> = Mutex::new((0x1000, BTreeMap::new()));

/// A session that a program has opened.
struct Trace {
    session: String,
    /// The events of the session, if it was running when it was opened.
    running: Option<Arc<Running>>,
    /// A copy of what the program passed.
    log: EVENT_TRACE_LOGFILEW,
    is_processing: AtomicBool,
    is_closed: AtomicBool,
}

// SAFETY: the pointers of the program are only passed back to its functions, on the thread that calls ProcessTrace.
unsafe impl Send for Trace {}

// SAFETY: as above.
unsafe impl Sync for Trace {}

/// Implements OpenTraceW, for sessions in real time whose events are received as EVENT_RECORD.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn open(log: *mut EVENT_TRACE_LOGFILEW) -> PROCESSTRACE_HANDLE {
    // SAFETY: the program must pass a structure or null.
    let log = unsafe { log.as_ref() };
    match log.ok_or(ERROR_INVALID_PARAMETER).and_then(open_trace) {
        Ok(handle) => PROCESSTRACE_HANDLE { Value: handle },
        Err(error) => {
            // SAFETY: the function has no preconditions.
            unsafe { SetLastError(error) };
            INVALID
        }
    }
}

fn open_trace(log: &EVENT_TRACE_LOGFILEW) -> Result<u64, u32> {
    if let Some(error) = machine().refusal("OpenTraceW") {
        return Err(error);
    }
    // SAFETY: every value of the union is one of this type.
    let mode = unsafe { log.Anonymous1.ProcessTraceMode };
    let needed = PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD;
    // SAFETY: the program must pass a zero-terminated name or null.
    let session = unsafe { text(log.LoggerName) };
    let Some(session) = session.filter(|_| mode & needed == needed) else { return Err(ERROR_INVALID_PARAMETER) };
    let running = running(&session);
    let trace =
        Trace { session, running, log: *log, is_processing: AtomicBool::new(false), is_closed: AtomicBool::new(false) };
    let (last, open) = &mut *lock(&OPEN);
    *last += 1;
    open.insert(*last, Arc::new(trace));
    Ok(*last)
}

/// Returns the events of the running session with this name, if it is in real time.
fn running(name: &str) -> Option<Arc<Running>> {
    let machine = machine();
    let handle = machine.sessions.find(0, Some(name)).ok()?;
    machine.sessions.get(handle).filter(|session| session.is_real_time())?;
    machine.running(handle)
}

/// Implements CloseTrace.
pub extern "system" fn close(handle: PROCESSTRACE_HANDLE) -> u32 {
    let Some(trace) = lock(&OPEN).1.remove(&handle.Value) else { return ERROR_INVALID_HANDLE };
    trace.is_closed.store(true, Ordering::Release);
    if trace.is_processing.load(Ordering::Acquire) { ERROR_CTX_CLOSE_PENDING } else { ERROR_SUCCESS }
}

/// Implements ProcessTrace, for one session. Returns when the session was stopped or the handle was closed.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn process(
    handles: *const PROCESSTRACE_HANDLE,
    count: u32,
    _start: *const FILETIME,
    _end: *const FILETIME,
) -> u32 {
    if handles.is_null() || count == 0 || count > MAX_HANDLES {
        return if handles.is_null() { ERROR_INVALID_PARAMETER } else { ERROR_BAD_LENGTH };
    }
    // SAFETY: the program must pass that many handles.
    let handles = unsafe { slice::from_raw_parts(handles, usize::try_from(count).unwrap_or_default()) };
    let [handle] = handles else { return ERROR_INVALID_PARAMETER };
    let Some(trace) = lock(&OPEN).1.get(&handle.Value).cloned() else { return ERROR_INVALID_HANDLE };
    if let Some(error) = machine().refusal("ProcessTrace") {
        return error;
    }
    let Some(running) = trace.running.clone().or_else(|| running(&trace.session)) else {
        return ERROR_WMI_INSTANCE_NOT_FOUND;
    };
    trace.is_processing.store(true, Ordering::Release);
    let result = trace.receive(&running);
    trace.is_processing.store(false, Ordering::Release);
    result
}

impl Trace {
    /// Delivers events until the session was stopped or the handle was closed.
    fn receive(&self, running: &Running) -> u32 {
        let mut log = self.log;
        loop {
            let has_ended = running.has_ended();
            // An error has been printed; the events are missing.
            let _ = if has_ended { Ok(()) } else { machine().pull() };
            let now = running.now();
            let mut delivered = 0;
            loop {
                // Not in the condition of the loop, which would keep the lock during the call.
                let next = lock(&running.delivery).next(if has_ended { Duration::MAX } else { now });
                let Some(event) = next else { break };
                self.deliver(event);
                delivered += 1;
                if delivered % script().disorder.buffer.max(1) == 0 && !self.end_buffer(&mut log, running) {
                    return ERROR_CANCELLED;
                }
            }
            if delivered > 0 && !self.end_buffer(&mut log, running) {
                return ERROR_CANCELLED;
            }
            if has_ended || self.is_closed.load(Ordering::Acquire) {
                return ERROR_SUCCESS;
            }
            sleep(POLL);
        }
    }

    /// Calls the program's function for an event.
    fn deliver(&self, mut event: DeliveredEvent) {
        // SAFETY: every value of the unions is one of these types; `open` has checked that this function is meant.
        let callback = unsafe { self.log.Anonymous2.EventRecordCallback };
        // SAFETY: every value of the union is one of this type.
        let mode = unsafe { self.log.Anonymous1.ProcessTraceMode };
        let clock = if mode & PROCESS_TRACE_MODE_RAW_TIMESTAMP == 0 { Clock::System } else { Clock::Raw };
        let Some(callback) = callback else { return };
        with_record(&mut event, clock, self.log.Context, |record| {
            // SAFETY: the program passed this function for events, and the record is valid.
            unsafe { callback(record) };
        });
    }

    /// Calls the program's function for a buffer, if it has one. Returns whether it wants more.
    fn end_buffer(&self, log: &mut EVENT_TRACE_LOGFILEW, running: &Running) -> bool {
        log.BuffersRead += 1;
        log.EventsLost = u32::try_from(lock(&running.delivery).report().lost_events).unwrap_or(u32::MAX);
        match self.log.BufferCallback {
            // SAFETY: the program passed this function for buffers, and the structure is valid.
            Some(callback) => unsafe { callback(log) != 0 },
            None => true,
        }
    }
}
