//! Formats in memory: sizes and the offset of each field, against the tables of the manuals and the public symbols of
//! Windows.

use core::mem::{offset_of, size_of};

use x86_defs::intel::architectural_pebs::{ArchitecturalBasicGroup, ArchitecturalRecord, RecordHeader};
use x86_defs::intel::debug_store::area::{
    ControlArea1903, ControlAreaV62, DsArea, FIXED_RESETS_1903, GENERAL_RESETS_1903, GENERAL_RESETS_V62, word,
};
use x86_defs::intel::debug_store::bts::{BtsFlags, BtsRecord};
use x86_defs::intel::debug_store::pebs::{
    BasicGroup, LbrEntry, MemoryGroup, PebsFormat0, PebsFormat1, PebsFormat2, PebsFormat3, RecordFormat,
    RegistersGroup, XmmGroup,
};
use zerocopy::FromBytes;

/// Returns `size` bytes of words 1, 2, 3 and so on, so that a value tells where it was read.
fn counting(size: usize) -> Vec<u8> {
    (1_u64..).take(size / 8).flat_map(u64::to_le_bytes).collect()
}

/// Returns the word that [`counting`] has at an offset.
fn at(offset: u64) -> u64 {
    offset / 8 + 1
}

/// Reads a format from [`counting`] bytes.
fn read<T: FromBytes>() -> Option<T> {
    T::read_from_bytes(&counting(size_of::<T>())).ok()
}

#[test]
fn sizes_are_those_of_the_manuals() {
    for (name, size, expected) in [
        ("PEBS_DS_SAVE_AREA", size_of::<DsArea>(), 64),
        ("PROCESSOR_PROFILE_CONTROL_AREA, 6.2", size_of::<ControlAreaV62>(), 96),
        ("PROCESSOR_PROFILE_CONTROL_AREA, 1903", size_of::<ControlArea1903>(), 160),
        ("BTS", size_of::<BtsRecord>(), 24),
        ("PEBS format 0", size_of::<PebsFormat0>(), 144),
        ("PEBS format 1", size_of::<PebsFormat1>(), 176),
        ("PEBS format 2", size_of::<PebsFormat2>(), 192),
        ("PEBS format 3", size_of::<PebsFormat3>(), 200),
        ("basic group", size_of::<BasicGroup>(), 32),
        ("memory group", size_of::<MemoryGroup>(), 32),
        ("registers group", size_of::<RegistersGroup>(), 144),
        ("XMM group", size_of::<XmmGroup>(), 256),
        ("LBR entry", size_of::<LbrEntry>(), 24),
    ] {
        assert_eq!(size, expected, "{name}");
    }
}

#[test]
fn the_save_area_is_at_the_offsets_of_the_kernel_symbols() {
    for (name, offset, word, expected) in [
        ("BtsBufferBase", offset_of!(DsArea, bts_buffer_base), word::BTS_BUFFER_BASE, 0x00),
        ("BtsIndex", offset_of!(DsArea, bts_index), word::BTS_INDEX, 0x08),
        ("BtsAbsoluteMaximum", offset_of!(DsArea, bts_absolute_maximum), word::BTS_ABSOLUTE_MAXIMUM, 0x10),
        ("BtsInterruptThreshold", offset_of!(DsArea, bts_interrupt_threshold), word::BTS_INTERRUPT_THRESHOLD, 0x18),
        ("PebsBufferBase", offset_of!(DsArea, pebs_buffer_base), word::PEBS_BUFFER_BASE, 0x20),
        ("PebsIndex", offset_of!(DsArea, pebs_index), word::PEBS_INDEX, 0x28),
        ("PebsAbsoluteMaximum", offset_of!(DsArea, pebs_absolute_maximum), word::PEBS_ABSOLUTE_MAXIMUM, 0x30),
        ("PebsInterruptThreshold", offset_of!(DsArea, pebs_interrupt_threshold), word::PEBS_INTERRUPT_THRESHOLD, 0x38),
        ("PebsCounterReset0", offset_of!(ControlAreaV62, pebs_counter_reset), word::PEBS_COUNTER_RESET, 0x40),
        ("PebsGpCounterReset", offset_of!(ControlArea1903, pebs_gp_counter_reset), word::PEBS_COUNTER_RESET, 0x40),
    ] {
        assert_eq!((offset, usize::from(word) * 8), (expected, expected), "{name}");
    }
    assert_eq!(offset_of!(ControlArea1903, pebs_fixed_counter_reset), 0x80);
    assert_eq!((offset_of!(ControlAreaV62, ds_area), offset_of!(ControlArea1903, ds_area)), (0, 0));
    assert_eq!((GENERAL_RESETS_V62, GENERAL_RESETS_1903, FIXED_RESETS_1903), (4, 8, 4));
}

#[test]
fn a_branch_record_is_from_to_and_flags() {
    let record: BtsRecord = read().unwrap();
    assert_eq!((record.from, record.to, record.flags), (at(0x00), at(0x08), BtsFlags::from_bits(at(0x10))));
}

#[test]
fn fixed_pebs_formats_extend_each_other_at_the_offsets_of_the_tables() {
    let PebsFormat3 { format2, tsc } = read().unwrap();
    let PebsFormat2 { format1, eventing_ip, tx_abort } = format2;
    let PebsFormat1 { registers, counters, address, source, latency } = format1;
    assert_eq!([counters, address, source, latency], [0x90, 0x98, 0xA0, 0xA8].map(at));
    assert_eq!([eventing_ip, tx_abort, tsc], [0xB0, 0xB8, 0xC0].map(at));
    let PebsFormat0 { flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8 } = registers;
    assert_eq!(
        [flags, ip, ax, bx, cx, dx, si, di, bp, sp],
        [0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48].map(at)
    );
    assert_eq!(r8, [0x50, 0x58, 0x60, 0x68, 0x70, 0x78, 0x80, 0x88].map(at));
}

#[test]
fn groups_of_adaptive_records_have_the_offsets_of_the_tables() {
    let BasicGroup { format, ip, counters, tsc } = read().unwrap();
    assert_eq!((format, [ip, counters, tsc]), (RecordFormat::from_bits(at(0x00)), [0x08, 0x10, 0x18].map(at)));
    let MemoryGroup { address, source, latency, tsx } = read().unwrap();
    assert_eq!([address, source, latency, tsx], [0x00, 0x08, 0x10, 0x18].map(at));
    let RegistersGroup { flags, ip, ax, cx, dx, bx, sp, bp, si, di, r8 } = read().unwrap();
    assert_eq!(
        [flags, ip, ax, cx, dx, bx, sp, bp, si, di],
        [0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48].map(at)
    );
    assert_eq!(r8, [0x50, 0x58, 0x60, 0x68, 0x70, 0x78, 0x80, 0x88].map(at));
    let XmmGroup { xmm } = read().unwrap();
    assert_eq!((xmm[0], xmm[15]), ([1, 2], [31, 32]));
    let LbrEntry { from, to, info } = read().unwrap();
    assert_eq!([from, to, info], [0x00, 0x08, 0x10].map(at));
}

#[test]
fn an_architectural_record_is_a_header_and_groups() {
    let ArchitecturalRecord { header, reserved, basic } = read().unwrap();
    assert_eq!((header, reserved), (RecordHeader::from_bits(at(0x00)), at(0x08)));
    let ArchitecturalBasicGroup { ip, counters, tsc, retire_latency, reserved } = basic;
    assert_eq!([ip, counters, tsc, retire_latency], [0x10, 0x18, 0x20, 0x28].map(at));
    assert_eq!(reserved, [0x30, 0x38].map(at));
}

#[test]
fn a_continued_or_null_fragment_is_followed_by_another() {
    let header = RecordHeader::new().with_size(16);
    assert!(header.is_followed() && header.with_basic(true).with_continued(true).is_followed());
    assert!(!header.with_basic(true).is_followed() && !header.with_gpr(true).is_followed());
}
