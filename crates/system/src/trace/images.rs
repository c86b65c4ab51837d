//! Events of processes and images, from the system provider (MOF classes Process_TypeGroup1 and Image_Load).

use super::payload::Payload;
use super::raw::RawTraceEvent;

/// Type of the event for a process that starts (EVENT_TRACE_TYPE_START).
const START: u8 = 1;

/// Type of the event for an image that is loaded (EVENT_TRACE_TYPE_LOAD).
const LOAD: u8 = 10;

/// Oldest version of the events that is parsed. 64-bit Windows 10 writes 4 for processes and 3 for images.
const OLDEST: u8 = 2;

/// A process that started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedProcess {
    /// Process ID.
    pub id: u32,
    /// Time, in units of the performance counter.
    pub time: u64,
    /// File name of the program.
    pub name: String,
}

/// An image that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedImage {
    /// Process ID; 0 for the kernel.
    pub process: u32,
    /// Time, in units of the performance counter.
    pub time: u64,
    /// Lowest address.
    pub base: u64,
    /// Size in the address space, in bytes.
    pub size: u64,
    /// Path in the namespace of the kernel: `\Device\HarddiskVolume3\...`.
    pub path: String,
}

/// Parses an event of the class Process. Returns `None` for other types than a start: processes that exist already are
/// queried when they have samples.
pub fn started(event: &RawTraceEvent) -> Option<StartedProcess> {
    if event.opcode != START || event.version < OLDEST {
        return None;
    }
    let mut payload = Payload(event.payload);
    payload.skip(event.pointer)?; // UniqueProcessKey
    let id = payload.u32()?;
    payload.skip(12)?; // ParentId, SessionId, ExitStatus
    if event.version >= 3 {
        payload.skip(event.pointer)?; // DirectoryTableBase
    }
    if event.version >= 4 {
        payload.skip(4)?; // Flags
    }
    payload.skip_sid(event.pointer)?;
    Some(StartedProcess { id, time: event.time, name: payload.ansi() })
}

/// Parses an event of the class Image. Returns `None` for other types than a load.
pub fn loaded(event: &RawTraceEvent) -> Option<TracedImage> {
    if event.opcode != LOAD || event.version < OLDEST {
        return None;
    }
    let mut payload = Payload(event.payload);
    let base = payload.pointer(event.pointer)?;
    let size = payload.pointer(event.pointer)?;
    let process = payload.u32()?;
    payload.skip(12)?; // ImageChecksum, TimeDateStamp, and signature level and type
    payload.skip(event.pointer)?; // DefaultBase
    payload.skip(16)?; // reserved
    Some(TracedImage { process, time: event.time, base, size, path: payload.utf16() })
}

#[cfg(test)]
mod tests {
    use fake_system::payloads::{image, process, wide, words};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_start_is_parsed_in_every_version() {
        for version in 2..=5 {
            let payload = process(version, 712, "app.exe");
            let event = RawTraceEvent { version, opcode: START, time: 99, payload: &payload, ..RawTraceEvent::EMPTY };
            let wanted = StartedProcess { id: 712, time: 99, name: "app.exe".into() };
            assert_eq!(started(&event), Some(wanted), "version {version}");
            for opcode in [2, 3, 4, 39] {
                assert_eq!(started(&RawTraceEvent { opcode, ..event }), None, "type {opcode}");
            }
            assert_eq!(started(&RawTraceEvent { version: 1, ..event }), None);
        }
    }

    #[test]
    fn a_process_without_a_user_has_four_zero_bytes() {
        let payload = [&[0xAA; 8][..], &words(&[8, 4, 1, 0]), &[0; 4], b"smss.exe\0"].concat();
        let event = RawTraceEvent { version: 2, opcode: START, payload: &payload, ..RawTraceEvent::EMPTY };
        assert_eq!(started(&event).unwrap().name, "smss.exe");
    }

    #[test]
    fn a_load_is_parsed_for_both_widths() {
        let path = r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll";
        let payload = image(712, 0x7FF8_0000_0000, 0x1F_0000, path);
        let event = RawTraceEvent { version: 3, opcode: LOAD, time: 5, payload: &payload, ..RawTraceEvent::EMPTY };
        let (base, size) = (0x7FF8_0000_0000, 0x1F_0000);
        assert_eq!(loaded(&event), Some(TracedImage { process: 712, time: 5, base, size, path: path.into() }));
        assert_eq!(loaded(&RawTraceEvent { opcode: 2, ..event }), None);
        let narrow = [words(&[0x40_0000, 0x3000, 712, 1, 2, 3, 0x40_0000]), vec![0; 16], wide("x")].concat();
        let narrow = loaded(&RawTraceEvent { pointer: 4, payload: &narrow, ..event }).unwrap();
        assert_eq!((narrow.base, narrow.size, narrow.process, &*narrow.path), (0x40_0000, 0x3000, 712, "x"));
    }

    proptest! {
        #[test]
        fn any_payload_is_parsed_without_a_panic(
            payload in prop::collection::vec(any::<u8>(), 0..120),
            version in any::<u8>(),
            is_wide in any::<bool>(),
        ) {
            let pointer = if is_wide { 8 } else { 4 };
            let event = RawTraceEvent { version, pointer, payload: &payload, ..RawTraceEvent::EMPTY };
            let _ = started(&RawTraceEvent { opcode: START, ..event });
            let _ = loaded(&RawTraceEvent { opcode: LOAD, ..event });
        }
    }
}
