//! Raw events: their fields and the event select register; and names and numbers of other types.

use pmu::hypervisor::Hypervisor;
use pmu::source::RawEvent;
use pmu::{CoreType, Source};

/// Event number, unit mask, CMASK, INV, edge, AnyThread, EQ.
type Fields = (u16, u16, u8, bool, bool, bool, bool);

const fn event((event, umask, cmask, inv, edge, any, eq): Fields) -> RawEvent {
    let event = RawEvent::new().with_event(event).with_umask(umask).with_cmask(cmask);
    event.with_inv(inv).with_edge(edge).with_any(any).with_eq(eq)
}

const fn fields(event: RawEvent) -> Fields {
    let flags = (event.inv(), event.edge(), event.any(), event.eq());
    (event.event(), event.umask(), event.cmask(), flags.0, flags.1, flags.2, flags.3)
}

/// Each field alone and all together, with the event select register for both modes.
const EVENTS: [(Fields, u64); 13] = [
    ((0, 0, 0, false, false, false, false), 0x00_0003_0000),
    ((0xC0, 0, 0, false, false, false, false), 0x00_0003_00C0),
    ((0xFFF, 0, 0, false, false, false, false), 0x0F_0003_00FF),
    ((0, 0xA5, 0, false, false, false, false), 0x00_0003_A500),
    ((0, 0xA55A, 0, false, false, false, false), 0xA500_0003_5A00),
    ((0, 0, 0xFF, false, false, false, false), 0x00_FF03_0000),
    ((0, 0x100, 0xF, false, false, false, false), 0x0100_0F03_0000),
    ((0, 0x100, 0x10, false, false, false, false), 0x0100_1003_0000),
    ((0, 0, 0, true, false, false, false), 0x00_0083_0000),
    ((0, 0, 0, false, true, false, false), 0x00_0007_0000),
    ((0, 0, 0, false, false, true, false), 0x00_0023_0000),
    ((0, 0, 0, false, false, false, true), 0x10_0003_0000),
    ((0x3C, 0x01, 0x02, true, true, true, false), 0x00_02A7_013C),
];

#[test]
fn every_field_is_kept_and_has_its_bits_in_the_event_select_register() {
    for (wanted, select) in EVENTS {
        let event = event(wanted);
        assert_eq!(fields(event), wanted);
        assert_eq!(event.select(), select, "{wanted:x?}");
        assert_eq!(event.source().raw(), Some(event), "{wanted:x?}");
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
        (event(all).with_eq(false), (0x3C, 0x101, 2, true, true, true, false)),
    ];
    for (changed, wanted) in changes {
        assert_eq!(fields(changed), wanted);
    }
}

#[test]
fn an_event_is_valid_without_reserved_bits_and_with_its_mark() {
    let event = event((0xC0, 1, 2, true, true, true, true)).with_selector(7);
    assert!(event.is_valid() && RawEvent::new().is_valid());
    assert!(!RawEvent::from_bits(0).is_valid(), "zero is a source of the HAL");
    assert_eq!(Source(event.with_is_event(false).into_bits()).raw(), None);
    let others = (0..u64::BITS).filter(|bit| !Source(event.into_bits() | 1 << bit).is_raw()).count();
    assert_eq!(others, 20);
}

#[test]
fn a_source_is_a_number_of_the_hal_or_a_raw_event_or_neither() {
    for number in [0, 2, 0xC0, 0x1027, 0x7FFF_FFFF, 0x8000_00C0, u32::MAX] {
        let source = Source(number.into());
        assert_eq!((source.number(), source.raw()), (Some(number), None));
    }
    let event = event((0xC0, 0, 0, false, false, false, false));
    assert_eq!((event.source().number(), event.source().raw()), (None, Some(event)));
    for neither in [1 << 32, u64::MAX] {
        assert_eq!((Source(neither).number(), Source(neither).raw()), (None, None));
    }
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
