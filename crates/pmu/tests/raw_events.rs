//! Raw events: their fields, the event select register and their numbers; and names and numbers of other types.

use pmu::CoreType;
use pmu::hypervisor::Hypervisor;
use pmu::source::{FullEvent, RawEvent};

/// Event number, unit mask, CMASK, INV, edge, AnyThread, EQ.
type Fields = (u16, u16, u8, bool, bool, bool, bool);

const fn event((event, umask, cmask, inv, edge, any, eq): Fields) -> RawEvent {
    let event = RawEvent::NONE.with_event(event).with_umask(umask).with_cmask(cmask);
    event.with_inv(inv).with_edge(edge).with_any(any).with_equality(eq)
}

const fn fields(event: RawEvent) -> Fields {
    let flags = (event.inv(), event.edge(), event.any(), event.equality());
    (event.event(), event.umask(), event.cmask(), flags.0, flags.1, flags.2, flags.3)
}

/// Each field alone and all together, with the event select register for both modes and whether a number has room for
/// the event.
const EVENTS: [(Fields, u64, bool); 14] = [
    ((0, 0, 0, false, false, false, false), 0x00_0003_0000, true),
    ((0xC0, 0, 0, false, false, false, false), 0x00_0003_00C0, true),
    ((0xFFF, 0, 0, false, false, false, false), 0x0F_0003_00FF, true),
    ((0x1000, 0, 0, false, false, false, false), 0x10_0003_0000, false),
    ((0, 0xA5, 0, false, false, false, false), 0x00_0003_A500, true),
    ((0, 0xA55A, 0, false, false, false, false), 0xA500_0003_5A00, true),
    ((0, 0, 0xFF, false, false, false, false), 0x00_FF03_0000, true),
    ((0, 0x100, 0xF, false, false, false, false), 0x0100_0F03_0000, true),
    ((0, 0x100, 0x10, false, false, false, false), 0x0100_1003_0000, false),
    ((0, 0, 0, true, false, false, false), 0x00_0083_0000, true),
    ((0, 0, 0, false, true, false, false), 0x00_0007_0000, true),
    ((0, 0, 0, false, false, true, false), 0x00_0023_0000, false),
    ((0, 0, 0, false, false, false, true), 0x10_0003_0000, true),
    ((0x3C, 0x01, 0x02, true, true, true, false), 0x00_02A7_013C, false),
];

#[test]
fn every_field_is_kept_and_has_its_bits_in_the_event_select_register() {
    for (wanted, select, _) in EVENTS {
        let event = event(wanted);
        assert_eq!(fields(event), wanted);
        assert_eq!(event.select(), select, "{wanted:x?}");
        if wanted.0 <= RawEvent::MAX_EVENT {
            assert_eq!(event.full().raw(), event, "{wanted:x?}");
        }
    }
    // Each change leaves the other fields alone.
    let all = (0x3C, 0x101, 2, true, true, true, true);
    let changes: [(RawEvent, Fields); 7] = [
        (event(all).with_event(1), (1, 0x101, 2, true, true, true, true)),
        (event(all).with_umask(1), (0x3C, 1, 2, true, true, true, true)),
        (event(all).with_cmask(1), (0x3C, 0x101, 1, true, true, true, true)),
        (event(all).with_inv(false), (0x3C, 0x101, 2, false, true, true, true)),
        (event(all).with_edge(false), (0x3C, 0x101, 2, true, false, true, true)),
        (event(all).with_any(false), (0x3C, 0x101, 2, true, true, false, true)),
        (event(all).with_equality(false), (0x3C, 0x101, 2, true, true, true, false)),
    ];
    for (changed, wanted) in changes {
        assert_eq!(fields(changed), wanted);
    }
}

#[test]
fn a_number_encodes_an_event_exactly_if_it_has_room_for_every_field() {
    for (wanted, _, is_encodable) in EVENTS {
        let event = event(wanted);
        assert_eq!(event.is_encodable(), is_encodable, "{wanted:x?}");
        assert_eq!(event.source().raw() == Some(event), is_encodable, "{wanted:x?}");
    }
}

#[test]
fn a_full_event_is_valid_without_reserved_bits_and_with_its_mark() {
    let event = event((0xC0, 1, 2, true, true, true, true)).full();
    assert!(event.is_valid() && RawEvent::NONE.full().is_valid());
    assert!(!FullEvent::from_bits(0).is_valid(), "zero is no event");
    assert!(!event.with_is_event(false).is_valid());
    let reserved = (0..u64::BITS).filter(|bit| !FullEvent::from_bits(event.into_bits() | 1 << bit).is_valid()).count();
    assert_eq!(reserved, 20);
}

#[test]
fn numbers_and_names_are_one_to_one() {
    for (number, hypervisor) in (0..).zip(Hypervisor::ALL) {
        assert_eq!((hypervisor as u32, Hypervisor::from_number(number)), (number, Some(hypervisor)));
    }
    assert_eq!(Hypervisor::from_number(u32::MAX), None);
    for (core_type, number, name) in [(CoreType::Core, 0x40, "cpu_core"), (CoreType::Atom, 0x20, "cpu_atom")] {
        assert_eq!((core_type.number(), CoreType::from_number(number)), (number, Some(core_type)));
        assert_eq!((core_type.to_string().as_str(), core_type.name()), (name, name));
    }
    assert_eq!(CoreType::from_number(0), None);
}
