//! EVENT_RECORD.

use crate::foreign::{file_time, guid};
use etw_model::{DeliveredEvent, StackItem};
use std::ffi::c_void;
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_DESCRIPTOR, EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL, EVENT_HEADER_EXT_TYPE_PMC_COUNTERS,
    EVENT_HEADER_EXT_TYPE_STACK_TRACE64, EVENT_HEADER_EXTENDED_DATA_ITEM, EVENT_HEADER_FLAG_64_BIT_HEADER,
    EVENT_HEADER_FLAG_CLASSIC_HEADER, EVENT_HEADER_FLAG_EXTENDED_INFO, EVENT_RECORD,
};

/// How the times of events are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// In units of the performance counter (PROCESS_TRACE_MODE_RAW_TIMESTAMP).
    Raw,
    /// As FILETIME.
    System,
}

/// Calls a function with an event as an EVENT_RECORD, which is valid during the call.
#[expect(clippy::cast_possible_truncation, reason = "the fields of Windows are that narrow")]
pub fn with_record(
    event: &mut DeliveredEvent,
    clock: Clock,
    context: *mut c_void,
    call: impl FnOnce(*mut EVENT_RECORD),
) {
    let mut items = Vec::new();
    let item = |kind: u32, address: u64, size: usize| EVENT_HEADER_EXTENDED_DATA_ITEM {
        ExtType: kind as u16,
        DataSize: size as u16,
        DataPtr: address,
        ..EVENT_HEADER_EXTENDED_DATA_ITEM::default()
    };
    let stack: Option<Vec<u64>> =
        event.stack.take().map(|StackItem { match_id, frames }| [&[match_id][..], &frames].concat());
    if let Some(stack) = &stack {
        let address = stack.as_ptr().expose_provenance() as u64;
        items.push(item(EVENT_HEADER_EXT_TYPE_STACK_TRACE64, address, size_of_val(&**stack)));
    }
    if !event.counters.is_empty() {
        let address = event.counters.as_ptr().expose_provenance() as u64;
        items.push(item(EVENT_HEADER_EXT_TYPE_PMC_COUNTERS, address, size_of_val(&*event.counters)));
    }
    if !event.metadata.is_empty() {
        let address = event.metadata.as_ptr().expose_provenance() as u64;
        items.push(item(EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL, address, event.metadata.len()));
    }
    let mut record = EVENT_RECORD::default();
    let header = &mut record.EventHeader;
    let extended = if items.is_empty() { 0 } else { EVENT_HEADER_FLAG_EXTENDED_INFO };
    let classic = if event.is_classic { EVENT_HEADER_FLAG_CLASSIC_HEADER } else { 0 };
    header.Size = (size_of_val(header) + event.payload.len()) as u16;
    header.Flags = (EVENT_HEADER_FLAG_64_BIT_HEADER | extended | classic) as u16;
    header.ThreadId = event.thread;
    header.ProcessId = event.process;
    header.TimeStamp = match clock {
        Clock::Raw => event.time,
        Clock::System => file_time(event.time),
    }
    .cast_signed();
    header.ProviderId = guid(event.provider);
    header.EventDescriptor = EVENT_DESCRIPTOR {
        Id: event.id,
        Version: event.version,
        Channel: event.channel,
        Level: event.level,
        Opcode: event.opcode,
        Task: 0,
        Keyword: event.keyword,
    };
    record.BufferContext.Anonymous.ProcessorIndex = event.processor as u16;
    record.ExtendedDataCount = items.len() as u16;
    record.ExtendedData = if items.is_empty() { std::ptr::null_mut() } else { items.as_mut_ptr() };
    record.UserDataLength = event.payload.len() as u16;
    record.UserData = if event.payload.is_empty() { std::ptr::null_mut() } else { event.payload.as_mut_ptr().cast() };
    record.UserContext = context;
    call(&raw mut record);
}
