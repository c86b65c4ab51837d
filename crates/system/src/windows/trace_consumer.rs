//! Receives the events of a trace session, on a thread of its own.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::c_void;
use std::io;
use std::ptr::{null, with_exposed_provenance};
use std::slice;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Diagnostics::Etw::{
    CloseTrace, EVENT_HEADER, EVENT_HEADER_EXTENDED_DATA_ITEM, EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_RECORD,
    EVENT_TRACE_LOGFILEW, EVENT_TRACE_LOGFILEW_0, EVENT_TRACE_LOGFILEW_1, OpenTraceW, PROCESS_TRACE_MODE_EVENT_RECORD,
    PROCESS_TRACE_MODE_RAW_TIMESTAMP, PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE, ProcessTrace,
};
use windows_sys::core::GUID;

use super::convert::checked;
use crate::trace::{Extension, RawTraceEvent, TraceSink};

/// Result of OpenTrace if it fails (INVALID_PROCESSTRACE_HANDLE).
const INVALID: u64 = u64::MAX;

/// Maximum number of extended data items that are looked at.
const MAX_EXTENSIONS: usize = 16;

/// Maximum time for which the last events are waited for after the session was stopped.
const LAST_EVENTS: Duration = Duration::from_secs(10);

/// A thread that receives events until the session is stopped.
pub struct Consumer {
    trace: PROCESSTRACE_HANDLE,
    thread: JoinHandle<()>,
}

impl Consumer {
    /// Begins to receive the events of the session with this name.
    pub fn start(name: Vec<u16>, sink: TraceSink) -> io::Result<Self> {
        let (sender, opened) = mpsc::channel();
        let thread = thread::Builder::new().spawn(move || consume(name, sink, &sender))?;
        let trace = opened.recv().map_err(io::Error::other)??;
        Ok(Self { trace: PROCESSTRACE_HANDLE { Value: trace }, thread })
    }

    /// Waits for the last events of a session that was stopped.
    pub fn finish(self) {
        let end = Instant::now() + LAST_EVENTS;
        while !self.thread.is_finished() && Instant::now() < end {
            sleep(Duration::from_millis(5));
        }
        // SAFETY: OpenTrace returned the handle, and this is the only place that closes it. It also ends ProcessTrace.
        // A failure has no remedy.
        unsafe { CloseTrace(self.trace) };
        // A panic of the thread has been reported on standard error.
        let _ = self.thread.join();
    }
}

/// Opens the session, reports its handle, and passes its events to the sink until it is stopped.
fn consume(mut name: Vec<u16>, mut sink: TraceSink, opened: &Sender<io::Result<u64>>) {
    let mut log = EVENT_TRACE_LOGFILEW {
        LoggerName: name.as_mut_ptr(),
        Anonymous1: EVENT_TRACE_LOGFILEW_0 {
            ProcessTraceMode: PROCESS_TRACE_MODE_REAL_TIME
                | PROCESS_TRACE_MODE_EVENT_RECORD
                | PROCESS_TRACE_MODE_RAW_TIMESTAMP,
        },
        Anonymous2: EVENT_TRACE_LOGFILEW_1 { EventRecordCallback: Some(receive) },
        Context: (&raw mut sink).cast(),
        ..EVENT_TRACE_LOGFILEW::default()
    };
    // SAFETY: the name is zero-terminated, and it, the structure and the sink outlive ProcessTrace, which is the only
    // one to use them.
    let trace = unsafe { OpenTraceW(&raw mut log) };
    let is_open = trace.Value != INVALID;
    // The one that starts the thread waits for this.
    let _ = opened.send(if is_open { Ok(trace.Value) } else { Err(io::Error::last_os_error()) });
    if is_open {
        // SAFETY: the handle is open, and null times mean all events. The callback is called on this thread alone, so
        // it has the sink for itself.
        let ended = checked(unsafe { ProcessTrace(&raw const trace, 1, null(), null()) });
        // Without it, the events of samples are missing, which the summary tells.
        drop(ended);
    }
}

/// Receives an event.
unsafe extern "system" fn receive(record: *mut EVENT_RECORD) {
    // SAFETY: Windows passes a valid event, which stays until this returns.
    let Some(record) = (unsafe { record.as_ref() }) else { return };
    // SAFETY: the context is the sink of `consume`, which waits for this function, and nothing else uses it meanwhile.
    let Some(sink) = (unsafe { record.UserContext.cast::<TraceSink>().as_mut() }) else { return };
    let EVENT_HEADER { ProviderId, EventDescriptor, ProcessId, ThreadId, TimeStamp, Flags, .. } = record.EventHeader;
    let GUID { data1, data2, data3, data4 } = ProviderId;
    let [data1, data2, data3] = [data1, data2.into(), data3.into()].map(u128::from);
    let provider = data1 << 96 | data2 << 80 | data3 << 64 | u128::from(u64::from_be_bytes(data4));
    let mut extensions = [Extension::default(); MAX_EXTENSIONS];
    // SAFETY: Windows passes so many items at this address.
    let items = unsafe { items(record.ExtendedData, record.ExtendedDataCount) };
    let count = items.len().min(MAX_EXTENSIONS);
    for (extension, item) in extensions.iter_mut().zip(items) {
        let address = usize::try_from(item.DataPtr).unwrap_or_default();
        // SAFETY: Windows passes so many bytes at this address.
        let bytes = unsafe { bytes(with_exposed_provenance(address), item.DataSize) };
        *extension = Extension { kind: item.ExtType, bytes };
    }
    let is_narrow = u32::from(Flags) & EVENT_HEADER_FLAG_32_BIT_HEADER != 0;
    sink(&RawTraceEvent {
        provider,
        id: EventDescriptor.Id,
        version: EventDescriptor.Version,
        opcode: EventDescriptor.Opcode,
        process: ProcessId,
        thread: ThreadId,
        // SAFETY: every value of the union is one of this type.
        processor: u32::from(unsafe { record.BufferContext.Anonymous.ProcessorIndex }),
        time: TimeStamp.cast_unsigned(),
        pointer: if is_narrow { 4 } else { 8 },
        // SAFETY: Windows passes so many bytes at this address.
        payload: unsafe { bytes(record.UserData, record.UserDataLength) },
        extensions: extensions.get(..count).unwrap_or_default(),
    });
}

/// Returns a slice of bytes; empty if the pointer is null.
///
/// # Safety
/// A pointer that is not null must be to so many bytes, which stay valid and unchanged for `'a`.
unsafe fn bytes<'a>(pointer: *const c_void, length: u16) -> &'a [u8] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(pointer.cast(), length.into()) }
}

/// Returns a slice of items; empty if the pointer is null.
///
/// # Safety
/// As [`bytes`], and the pointer must be aligned.
unsafe fn items<'a>(
    pointer: *const EVENT_HEADER_EXTENDED_DATA_ITEM,
    count: u16,
) -> &'a [EVENT_HEADER_EXTENDED_DATA_ITEM] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(pointer, count.into()) }
}
