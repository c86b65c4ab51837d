//! HalSetSystemInformation and HalQuerySystemInformation by class and buffer, and failed allocations.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::num::NonZeroU64;

use pmu::hal::information::{
    HAL_PROFILE_SOURCE_INFORMATION, HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, HAL_PROFILE_SOURCE_INTERVAL,
    HAL_QUERY_PROFILE_SOURCE_LIST,
};
use pmu::state::{self, CounterCell};
use pmu::{Hal, HalError, Options, ProcessorIndex, Source, Support};
use simulation::SimMachine;

fn hal(identity: &str) -> Hal {
    Hal::new(SimMachine::named(identity, 1).processor(0), 1).unwrap()
}

/// Returns the bytes of HAL_PROFILE_SOURCE_INTERVAL.
fn interval_buffer(source: u32, interval: u64) -> Vec<u8> {
    [&source.to_le_bytes()[..], &[0; 4], &interval.to_le_bytes()].concat()
}

/// Queries HAL_PROFILE_SOURCE_INFORMATION and decodes source, supported and interval.
fn information(hal: &Hal, source: u32) -> Result<(u32, u8, u32), HalError> {
    let mut buffer = [&source.to_le_bytes()[..], &[0xFF; 8]].concat();
    let written = hal.query_system_information(HAL_PROFILE_SOURCE_INFORMATION, &mut buffer)?;
    assert_eq!(written, 12);
    Ok(entry(&buffer))
}

fn entry(bytes: &[u8]) -> (u32, u8, u32) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(bytes[5..8], [0; 3], "padding tells nothing");
    (word(0), bytes[4], word(8))
}

#[test]
fn an_interval_is_clamped_and_reported() {
    let hal = hal("intel-v1");
    assert_eq!(information(&hal, 2), Ok((2, 1, 65_536)));
    for (wanted, used) in [(5_000, 5_000), (0, 4_096), (u64::MAX, 0x7FFF_FFFF), (1 << 32, 0x7FFF_FFFF)] {
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERVAL, &interval_buffer(2, wanted), 1).unwrap();
        assert_eq!(information(&hal, 2), Ok((2, 1, used)), "{wanted}");
        assert_eq!(information(&hal, 26), Ok((26, 1, 65_536)), "others keep theirs");
    }
}

#[test]
fn profile_time_has_a_range_of_its_own_on_every_interface() {
    for identity in ["intel-no-leaf-a", "intel-v1", "amd-legacy"] {
        let hal = hal(identity);
        assert_eq!(information(&hal, 0), Ok((0, 1, 10_000)), "{identity}");
        for (wanted, used) in [(0, 1_221), (1_221, 1_221), (50_000, 50_000), (u32::MAX, 1_000_000)] {
            assert_eq!(hal.set_profile_interval(wanted), Ok(used), "{identity}");
            assert_eq!(information(&hal, 0), Ok((0, 1, used)));
        }
        assert_eq!(hal.state_for(Source::TIME, 0, false), Err(HalError::NoCounter(Source::TIME)));
    }
}

#[test]
fn unknown_and_unsupported_sources_are_told_apart() {
    let hal = hal("intel-half-events");
    assert_eq!(information(&hal, 0x20), Err(HalError::UnknownSource(Source(0x20))));
    let unsupported = hal.source_list().find(|source| source.support != Support::Supported).unwrap();
    let source = unsupported.source.source;
    let number = source.number().unwrap();
    assert_eq!(information(&hal, number), Ok((number, 0, 65_536)), "told, as not supported");
    let refused = Err(HalError::Unsupported(source, unsupported.support));
    assert_eq!(hal.set_interval(source, 5_000), refused);
    assert_eq!(hal.state_for(source, 0, false).map(|_| (0, 0)), refused);
}

#[test]
fn buffers_of_another_length_and_classes_of_another_kind_change_nothing() {
    let hal = hal("intel-v1");
    for length in (0..40).filter(|length| *length != 16) {
        let refused = Err(HalError::LengthMismatch { wanted: 16, found: length });
        assert_eq!(hal.set_system_information(HAL_PROFILE_SOURCE_INTERVAL, &vec![0; length], 1), refused);
    }
    for length in (0..40).filter(|length| *length != 12) {
        let refused = Err(HalError::LengthMismatch { wanted: 12, found: length });
        assert_eq!(hal.query_system_information(HAL_PROFILE_SOURCE_INFORMATION, &mut vec![0; length]), refused);
    }
    for length in (0..20).filter(|length| *length != 8) {
        let refused = Err(HalError::LengthMismatch { wanted: 8, found: length });
        assert_eq!(hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &vec![1; length], 1), refused);
    }
    for class in (2..50).chain([u32::MAX]) {
        assert_eq!(hal.set_system_information(class, &[0; 16], 1), Err(HalError::InvalidClass(class)));
    }
    for class in (0..50).filter(|class| ![1, 20].contains(class)) {
        assert_eq!(hal.query_system_information(class, &mut [0; 16]), Err(HalError::InvalidClass(class)));
    }
    assert_eq!(hal.handler.get(), None);
    assert_eq!(information(&hal, 2), Ok((2, 1, 65_536)));
}

#[test]
fn the_source_list_has_every_row_and_is_never_cut_within_one() {
    for (identity, rows) in
        [("intel-no-leaf-a", 1), ("intel-v1", 13), ("amd-legacy", 176), ("zen-1800x", 218), ("zen5-9800x3d", 218)]
    {
        let hal = hal(identity);
        for room in [0, 11, 12, 23, 24, rows * 12, rows * 12 + 5] {
            let mut buffer = vec![0xEE; room];
            let needed = hal.query_system_information(HAL_QUERY_PROFILE_SOURCE_LIST, &mut buffer).unwrap();
            assert_eq!(needed, rows * 12, "{identity}");
            let whole = room.min(needed) / 12 * 12;
            for (told, source) in buffer[..whole].chunks(12).zip(hal.source_list()) {
                let supported = u8::from(source.support == Support::Supported);
                assert_eq!(entry(told), (source.source.source.number().unwrap(), supported, source.interval));
            }
            assert!(buffer[whole..].iter().all(|byte| *byte == 0xEE), "{identity}, {room} bytes");
        }
    }
}

#[test]
fn the_interrupt_handler_has_one_slot_and_its_owner_gives_it_back() {
    let hal = hal("intel-v2");
    let set = |address: u64, owner| {
        hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &address.to_le_bytes(), owner)
    };
    let told = || hal.handler.get().map(u64::from);
    assert_eq!((set(0x1000, 7), told()), (Ok(()), Some(0x1000)));
    assert_eq!((set(0x2000, 8), told()), (Err(HalError::HandlerTaken), Some(0x1000)));
    assert_eq!((set(0, 8), told()), (Err(HalError::HandlerTaken), Some(0x1000)));
    assert_eq!((set(0x3000, 7), told()), (Ok(()), Some(0x3000)), "its owner may replace it");
    assert_eq!((set(0, 7), told()), (Ok(()), None));
    assert_eq!((set(0x2000, 8), told()), (Ok(()), Some(0x2000)));
    let typed = |address, owner| hal.handler.set(NonZeroU64::new(address), owner);
    assert_eq!((typed(0x4000, 7), told()), (Err(HalError::HandlerTaken), Some(0x2000)), "the slot is the same");
    assert_eq!((typed(0x4000, 8), told()), (Ok(()), Some(0x4000)));
    assert_eq!((typed(0, 8), told()), (Ok(()), None));
}

#[test]
fn the_state_is_8_bytes_per_counter_per_processor_in_one_allocation() {
    for (identity, counters) in [
        ("amd-legacy", 4),
        ("zen3-5950x", 6),
        ("zen5-9800x3d", 6),
        ("intel-v1", 4),
        ("alder-lake-12900k", 20),
        ("intel-no-leaf-a", 0),
    ] {
        for processors in [1, 2, 64, 2_048] {
            let machine = SimMachine::named(identity, 1);
            let mut asked = Vec::new();
            let hal =
                <Hal>::with_states(machine.processor(0), Options::default(), processors, 0, |processors, counters| {
                    asked.push((processors, counters));
                    state::allocate::<CounterCell>(processors, counters)
                });
            assert_eq!(asked, [(processors, counters)], "{identity}");
            assert_eq!(hal.unwrap().state_bytes(), 8 * processors as usize * usize::from(counters));
        }
    }
}

#[test]
fn without_memory_amd64_refuses_to_start_and_emon_has_no_source() {
    let without = |identity| {
        <Hal>::with_states(SimMachine::named(identity, 1).processor(0), Options::default(), 64, 0, |_, _| None)
    };
    assert_eq!(without("amd-legacy").err(), Some(HalError::NoMemory));
    let hal = without("intel-v1").unwrap();
    assert_eq!(hal.state_bytes(), 0);
    assert_eq!(hal.source_list().count(), 13);
    for source in hal.source_list() {
        assert_eq!(source.support, Support::NoMemory);
        let refused = HalError::Unsupported(source.source.source, Support::NoMemory);
        assert_eq!(hal.startable(source.source.source), Err(refused));
    }
    assert_eq!(hal.reserve(ProcessorIndex::BOOT, state::CounterState::FREE.with_owner(1)), None);
}

#[test]
fn sources_exclude_each_other_by_nothing_but_the_number_of_counters() {
    for (identity, counters) in
        [("amd-legacy", 0b1111), ("zen5-9800x3d", 0b11_1111), ("intel-v1", 0b1111), ("yonah-t2400", 0b11)]
    {
        for source in hal(identity).source_list() {
            let wanted = if source.source.source == Source::TIME { 0 } else { counters };
            assert_eq!(source.counters.bits(), wanted, "{identity} {}", source.source.name);
        }
    }
}
