//! The metadata of the driver's events against their payloads, and the GUID against the name.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use protocol::trace::{
    EventId, Loss, PROVIDER_ID, PROVIDER_METADATA, PROVIDER_NAME, Sample, SessionStart, SessionStop,
};
use sha1::{Digest, Sha1};

/// Namespace of the GUIDs that are made of names (System.Diagnostics.Tracing.EventSource).
const NAMESPACE: [u8; 16] =
    [0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8, 0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1, 0x30, 0xFB];

/// Returns the GUID of a name: SHA-1 of the namespace and of the name in upper case and UTF-16BE, as version 5.
fn guid(name: &str) -> [u8; 16] {
    let name = name.to_uppercase().encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
    let hash = Sha1::new().chain_update(NAMESPACE).chain_update(name).finalize();
    let mut guid: [u8; 16] = hash[..16].try_into().unwrap();
    guid[7] = guid[7] & 0x0F | 0x50;
    guid
}

#[test]
fn the_guid_is_that_of_the_name() {
    let known = [0xEA, 0xA4, 0x5F, 0xCE, 0, 0xAB, 0x02, 0x54, 0x8B, 0x76, 0x9F, 0x76, 0xAC, 0x85, 0x8F, 0xB5];
    assert_eq!(guid("MyCompany.MyComponent"), known, "the example of Microsoft's documentation");
    assert_eq!(guid(PROVIDER_NAME), PROVIDER_ID);
    let size = u16::try_from(PROVIDER_METADATA.len()).unwrap().to_le_bytes();
    assert_eq!(PROVIDER_METADATA, [&size, PROVIDER_NAME.as_bytes(), &[0]].concat());
}

/// In types of TraceLogging, with their sizes in bytes (TraceLoggingProvider.h).
const TYPES: [(u8, usize); 4] = [(8, 4), (10, 8), (20, 4), (21, 8)];

/// Takes the text before the next zero byte.
fn take_text(bytes: &mut &'static [u8]) -> Option<&'static str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(&bytes[..end]).unwrap();
    *bytes = &bytes[end + 1..];
    Some(text)
}

/// Returns the name of an event, and the name and type of each field.
fn fields(event: EventId) -> (&'static str, Vec<(&'static str, u8)>) {
    let metadata = event.metadata();
    let size = u16::from_le_bytes([metadata[0], metadata[1]]);
    assert_eq!((usize::from(size), metadata[2]), (metadata.len(), 0), "{event:?}: size and tags");
    let mut rest = &metadata[3..];
    let name = take_text(&mut rest).unwrap();
    let mut fields = Vec::new();
    while let Some(field) = take_text(&mut rest) {
        let has_format = rest[0] & 0x80 != 0;
        fields.push((field, rest[0] & 0x7F));
        rest = &rest[1 + usize::from(has_format)..];
    }
    (name, fields)
}

#[test]
fn metadata_describes_the_payload() {
    let sizes = [
        ("Sample", size_of::<Sample>()),
        ("Lost", size_of::<Loss>()),
        ("Throttled", size_of::<Loss>()),
        ("SessionStart", size_of::<SessionStart>()),
        ("SessionStop", size_of::<SessionStop>()),
    ];
    for (event, (name, size)) in EventId::ALL.into_iter().zip(sizes) {
        let (found, fields) = fields(event);
        assert_eq!(found, name);
        let size_of = |kind: u8| TYPES.iter().find(|(known, _)| *known == kind).map_or(0, |(_, size)| *size);
        assert_eq!(fields.iter().map(|(_, kind)| size_of(*kind)).sum::<usize>(), size, "{name}");
    }
}
