//! Events of processes, threads and images: the MOF classes Process_TypeGroup1 and Image_Load, and the thread's class.

use crate::delivery::DeliveredEvent;
use bench_protocol::{ProviderId, SystemEvent};

/// ProcessGuid, {3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c}.
pub(crate) const PROCESS: ProviderId = *b"\xD0\xA8\x6F\x3D\x05\xFE\xD0\x11\x9D\xDA\x00\xC0\x4F\xD7\xBA\x7C";

/// ThreadGuid, {3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c}.
pub(crate) const THREAD: ProviderId = *b"\xD1\xA8\x6F\x3D\x05\xFE\xD0\x11\x9D\xDA\x00\xC0\x4F\xD7\xBA\x7C";

/// PerfInfoGuid, {ce1dbfb4-137e-4da6-87b0-3f59aa102cbc}.
pub(crate) const PERF_INFO: ProviderId = *b"\xB4\xBF\x1D\xCE\x7E\x13\xA6\x4D\x87\xB0\x3F\x59\xAA\x10\x2C\xBC";

/// ImageLoadGuid, {2cb15d1d-5fc1-11d2-abe1-00a0c911f518}.
const IMAGE: ProviderId = *b"\x1D\x5D\xB1\x2C\xC1\x5F\xD2\x11\xAB\xE1\x00\xA0\xC9\x11\xF5\x18";

/// EVENT_TRACE_FLAG_PROCESS, EVENT_TRACE_FLAG_THREAD and EVENT_TRACE_FLAG_IMAGE_LOAD.
const PROCESSES: u32 = 1;
const THREADS: u32 = 2;
const IMAGES: u32 = 4;

/// EVENT_TRACE_TYPE_START and EVENT_TRACE_TYPE_LOAD.
const START: u8 = 1;
const LOAD: u8 = 10;

/// SID of a user, S-1-5-21-1-2-3-1001.
const SID: &[u8] = b"\x01\x05\0\0\0\0\0\x05\x15\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\xE9\x03\0\0";

/// Returns an event in its binary form on 64-bit Windows 10, or `None` if the EnableFlags of a session do not select
/// it.
#[must_use]
pub fn encode(event: &SystemEvent, enable_flags: u32, time: u64) -> Option<DeliveredEvent> {
    let (flag, provider, opcode, version, payload) = match event {
        SystemEvent::ProcessStart { process, name } => {
            // UniqueProcessKey, ProcessId, ParentId, SessionId, ExitStatus, DirectoryTableBase, Flags
            let numbers = [&[0; 8][..], &words(&[*process, 4, 1, 259]), &[0; 8], &words(&[0])].concat();
            // UserSID: a TOKEN_USER, which is a pointer and attributes, and the SID. ImageFileName and CommandLine.
            let texts = [&[0x11; 16][..], SID, name.as_bytes(), &[0], &wide(name)].concat();
            (PROCESSES, PROCESS, START, 4, [numbers, texts].concat())
        }
        SystemEvent::ThreadStart { process, thread } => {
            // Stacks, affinity, start address, TEB, and priorities follow the IDs.
            (THREADS, THREAD, START, 3, [words(&[*process, *thread]), vec![0; 64]].concat())
        }
        SystemEvent::ImageLoad { process, base, size, path } => {
            let range = [base.to_le_bytes(), size.to_le_bytes()].concat();
            // ImageChecksum, TimeDateStamp, and signature level and type; DefaultBase; reserved
            let numbers = [words(&[*process, 0, 0, 0]), base.to_le_bytes().to_vec(), vec![0; 16]].concat();
            (IMAGES, IMAGE, LOAD, 3, [range, numbers, wide(path)].concat())
        }
    };
    let event = || DeliveredEvent { process: 4, thread: 8, ..classic(provider, opcode, version, time, payload) };
    (enable_flags & flag != 0).then(event)
}

/// Returns an event of a MOF class of the kernel, whose header names no thread.
pub(crate) fn classic(provider: ProviderId, opcode: u8, version: u8, time: u64, payload: Vec<u8>) -> DeliveredEvent {
    DeliveredEvent {
        provider,
        id: 0,
        version,
        channel: 0,
        level: 0,
        opcode,
        keyword: 0,
        is_classic: true,
        processor: 0,
        process: u32::MAX,
        thread: u32::MAX,
        time,
        metadata: Vec::new(),
        payload,
        stack: None,
        counters: Vec::new(),
    }
}

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_if_their_flag_is_set() {
        let events = [
            SystemEvent::ProcessStart { process: 712, name: "a.exe".to_owned() },
            SystemEvent::ThreadStart { process: 712, thread: 8 },
            SystemEvent::ImageLoad { process: 712, base: 0x40_0000, size: 0x1000, path: "x".to_owned() },
        ];
        for (flags, wanted) in [(0, 0), (1, 1), (2, 1), (4, 1), (5, 2), (7, 3)] {
            assert_eq!(events.iter().filter_map(|event| encode(event, flags, 9)).count(), wanted, "{flags}");
        }
        let process = encode(&events[0], 1, 9).unwrap();
        assert_eq!((process.time, process.opcode, &process.payload[8..12]), (9, 1, &712_u32.to_le_bytes()[..]));
        let image = encode(&events[2], 4, 9).unwrap();
        assert_eq!((image.payload.len(), &image.payload[..8]), (60, &0x40_0000_u64.to_le_bytes()[..]));
        assert_eq!(&image.payload[16..20], &712_u32.to_le_bytes());
    }
}
