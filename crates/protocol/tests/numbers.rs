//! Numbers that client and driver must agree on, from the documentation and not from the constants.

use protocol::trace::{EventId, cookie, keywords};
use protocol::{
    BRANCH_BUFFER, Code, MAX_RING_BYTES, NtStatus, REQUESTS, RING, ReadBy, ReplyHeader, SampleRecord, Size,
    SourceRecord, event_flags, find, flags, group_flags, is_kernel_address, modes,
};

#[test]
fn numbers_of_events_and_of_instructions_are_one_to_one() {
    for (number, event) in (1_u16..).zip(EventId::ALL) {
        assert_eq!((event as u16, EventId::from_number(number)), (number, Some(event)));
    }
    for number in [0, 6, u16::MAX] {
        assert_eq!(EventId::from_number(number), None, "{number}");
    }
    for (number, read_by) in (0_u16..).zip(ReadBy::ALL) {
        assert_eq!((read_by as u16, ReadBy::from_number(number)), (number, Some(read_by)));
    }
    for number in [3, u16::MAX] {
        assert_eq!(ReadBy::from_number(number), None, "{number}");
    }
}

#[test]
fn a_keyword_selects_the_events_of_its_kind() {
    let events_of = |keyword| EventId::ALL.into_iter().filter(move |event| event.keyword() & keyword != 0);
    assert!(events_of(keywords::SAMPLES).eq([EventId::Sample]));
    assert!(events_of(keywords::LOSSES).eq([EventId::Lost, EventId::Throttled]));
    assert!(events_of(keywords::SESSIONS).eq([EventId::SessionStart, EventId::SessionStop]));
    assert!(EventId::ALL.iter().all(|event| event.keyword().is_power_of_two()));
}

#[test]
fn a_cookie_is_the_cpu_and_the_number() {
    assert_eq!(cookie(0, 0), 0);
    assert_eq!(cookie(2, 3), 0x0000_0002_0000_0003);
    assert_eq!(cookie(u32::MAX, 1), 0xFFFF_FFFF_0000_0001);
    assert_eq!(cookie(1, u32::MAX), 0x0000_0001_FFFF_FFFF);
}

#[test]
fn the_upper_half_of_the_addresses_belongs_to_the_kernel() {
    for (address, is_kernels) in [
        (0, false),
        (0x0000_7FFF_FFFF_FFFF, false),
        (0x7FFF_FFFF_FFFF_FFFF, false),
        (0x8000_0000_0000_0000, true),
        (0xFFFF_8000_0000_0000, true),
        (u64::MAX, true),
    ] {
        assert_eq!(is_kernel_address(address), is_kernels, "{address:#x}");
    }
}

#[test]
fn lengths_are_admitted_up_to_their_limits() {
    let entries = Size::Entries { head: 16, entry: 8, most: 3 };
    for (size, admitted) in [
        (Size::Exactly(4), &[4][..]),
        (Size::Exactly(0), &[0]),
        (Size::AtLeast(38), &[38, 39, 40]),
        (entries, &[24, 32, 40]),
    ] {
        let found = (0..=40).filter(|length| size.admits(*length)).collect::<Vec<_>>();
        assert_eq!(found, admitted, "{size:?}");
    }
    assert!(!entries.admits(48) && !entries.admits(usize::MAX));
}

#[test]
fn codes_count_the_functions_of_one_device_type() {
    for (function, spec) in (0x800_u32..).zip(REQUESTS) {
        let code = spec.code as u32;
        assert_eq!((code >> 16, code >> 2 & 0xFFF), (0x8A9F, function), "{}", spec.name);
    }
}

#[test]
fn a_reply_with_one_record_has_room_for_header_and_record() {
    let header = size_of::<ReplyHeader>();
    for (code, record) in [
        (Code::QuerySource, size_of::<SourceRecord>()),
        (Code::SetInterval, size_of::<SourceRecord>()),
        (Code::Samples, size_of::<SampleRecord>()),
    ] {
        let output = find(code as u32).unwrap().output;
        let least = (0..=4 * (header + record)).find(|length| output.admits(*length));
        assert_eq!(least, Some(header + record), "{code:?}");
    }
}

#[test]
fn limits_and_sets_of_bits_have_the_documented_values() {
    assert_eq!((RING, BRANCH_BUFFER), (64..=1_048_576, 64..=65_536));
    assert_eq!(protocol::ROUND, 40_000..=10_000_000, "4 ms to 1 s");
    assert_eq!(MAX_RING_BYTES, 1_073_741_824, "1 GiB");
    assert_eq!((flags::ALL, group_flags::ALL, event_flags::ALL), (31, 1, 255));
    assert_eq!((modes::BOTH, modes::BOTH & modes::PRECISE), (3, 0));
}

#[test]
fn debug_and_display_show_the_same_number_of_a_status() {
    for number in [0, 0x103, 0xC000_000D] {
        let status = NtStatus::new(number);
        assert_eq!(format!("{status:?}"), format!("0x{number:08X}"));
        assert_eq!(format!("{status:?}"), status.to_string());
    }
}
