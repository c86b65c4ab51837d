//! PEBS records (SDM Vol. 3B, "Processor Event Based Sampling (PEBS)", and "Adaptive PEBS" since Ice Lake): the state
//! that the processor itself writes after a counter overflowed. The driver reads the address, the counters and the
//! access of memory of a record in place and ignores the rest.
//!
//! | format | processors | bytes | contents of a record |
//! |---|---|---|---|
//! | 0 | Core 2 | 144 | registers |
//! | 1 | Nehalem to Ivy Bridge | 176 | also counters; address, source and latency of a load |
//! | 2 | Haswell, Broadwell | 192 | also the address of the instruction itself, transactions |
//! | 3 | Skylake to Comet Lake | 200 | also the time |
//! | 4 to 6 | Ice Lake to Arrow Lake | in each record | a basic group, and the groups that were requested |
//! | architectural | from Panther Lake on | in each fragment | the same, behind a header; a record can have several |

use core::mem::offset_of;

use x86_defs::intel::architectural_pebs::{
    ArchitecturalBasicGroup, ArchitecturalMemoryGroup, ArchitecturalRecord, RecordHeader,
};
use x86_defs::intel::debug_store::pebs::{
    BasicGroup, MemoryGroup, PebsFormat0, PebsFormat1, PebsFormat2, PebsFormat3, RecordFormat,
};

/// PEBS record format: PEBS_FMT of IA32_PERF_CAPABILITIES (SDM Vol. 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// 0000B.
    Core2,
    /// 0001B.
    Nehalem,
    /// 0010B.
    Haswell,
    /// 0011B.
    Skylake,
    /// 0100B.
    Adaptive,
    /// 0101B.
    Adaptive5,
    /// 0110B. Only groups that are not requested differ (Linux, arch/x86/events/intel/ds.c, `intel_pebs_init`).
    Adaptive6,
    /// 1111B: [architectural PEBS](x86_defs::intel::architectural_pebs), which CPUID leaf 23H reports, whatever
    /// PEBS_FMT is (Linux, arch/x86/events/intel/ds.c, `intel_pebs_init`).
    Architectural = 15,
}

/// The fields of a record of any format that the driver reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PebsRecord {
    /// Address of the instruction that caused the event if `is_exact`, else of the next instruction.
    pub ip: u64,
    /// Whether `ip` is the address of the instruction that caused the event.
    pub is_exact: bool,
    /// Counters that overflowed: bit n is general counter n, bit 32 + n is fixed counter n. `None` in format 0.
    pub counters: Option<u64>,
    /// The access of memory, if the record has one. It means something of a counter whose event is of accesses.
    pub access: Option<RecordedAccess>,
}

/// What a record has of an access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAccess {
    /// Linear address of the data.
    pub address: u64,
    /// Data source encoding.
    pub source: u64,
    /// Core clock cycles from the dispatch of the access until it had its data; from Alder Lake on these are in bits
    /// 47:32, and bits 15:0 have the cycles from the dispatch of the instruction until it retired.
    pub latency: u64,
}

/// What is at the start of the rest of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A record, with its fragments.
    Record(PebsRecord),
    /// Fragments without the one that has the fields.
    Fragment,
    /// Neither: the size or the groups are not as the driver requested them.
    Unreadable,
}

impl Format {
    /// Every format, in the order of PEBS_FMT.
    pub const ALL: [Self; 8] = [
        Self::Core2,
        Self::Nehalem,
        Self::Haswell,
        Self::Skylake,
        Self::Adaptive,
        Self::Adaptive5,
        Self::Adaptive6,
        Self::Architectural,
    ];

    /// Returns the format with this PEBS_FMT; `None` if it is unknown.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|format| *format as u8 == number)
    }

    /// Returns whether records go where IA32_PEBS_BASE says, and not through the Debug Store.
    #[must_use]
    pub const fn is_architectural(self) -> bool {
        matches!(self, Self::Architectural)
    }

    /// Returns the size in bytes of a record without optional groups.
    #[must_use]
    pub const fn least_size(self) -> u16 {
        match self {
            Self::Core2 => bytes_of::<PebsFormat0>(),
            Self::Nehalem => bytes_of::<PebsFormat1>(),
            Self::Haswell => bytes_of::<PebsFormat2>(),
            Self::Skylake => bytes_of::<PebsFormat3>(),
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => bytes_of::<BasicGroup>(),
            Self::Architectural => bytes_of::<ArchitecturalRecord>(),
        }
    }

    /// Returns the size in bytes of a record with an access of memory; every record of formats 1 to 3 has one.
    #[must_use]
    pub const fn size_with_access(self) -> u16 {
        match self {
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => self.least_size() + bytes_of::<MemoryGroup>(),
            Self::Architectural => self.least_size() + bytes_of::<ArchitecturalMemoryGroup>(),
            _ => self.least_size(),
        }
    }

    /// Returns whether MSR_PEBS_DATA_CFG selects the groups of records.
    #[must_use]
    pub const fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive | Self::Adaptive5 | Self::Adaptive6)
    }

    /// Reads what is at the start of the last `left` bytes of a buffer, in place: `at` returns the word at a byte
    /// offset. Returns it with its size, which is at least 1: what an untrusted size leaves without meaning is
    /// unreadable as a whole.
    pub fn part(self, left: usize, at: impl Fn(usize) -> u64) -> (Part, usize) {
        let (found, size) = match self {
            Self::Architectural => fragments(left, &at),
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => self.groups(left, &at),
            _ => self.fixed(left),
        };
        let part = match found {
            Found::Fields(Fields { ip, counters, access }) => Part::Record(PebsRecord {
                ip: at(ip),
                is_exact: self >= Self::Haswell,
                counters: (self >= Self::Nehalem).then(|| at(counters)),
                access: access.map(|AccessFields { address, source }| RecordedAccess {
                    address: at(address),
                    source: at(source),
                    latency: at(source + BEHIND_SOURCE),
                }),
            }),
            Found::Fragment => Part::Fragment,
            Found::Nothing => Part::Unreadable,
        };
        (part, size)
    }

    /// Finds the fields of a record of formats 0 to 3.
    const fn fixed(self, left: usize) -> (Found, usize) {
        let size = self.least_size() as usize;
        if left < size {
            return (Found::Nothing, if left == 0 { 1 } else { left });
        }
        let access =
            AccessFields { address: offset_of!(PebsFormat1, address), source: offset_of!(PebsFormat1, source) };
        let (ip, access) = match self {
            Self::Core2 => (offset_of!(PebsFormat0, ip), None),
            Self::Nehalem => (offset_of!(PebsFormat0, ip), Some(access)),
            _ => (offset_of!(PebsFormat2, eventing_ip), Some(access)),
        };
        (Found::Fields(Fields { ip, counters: offset_of!(PebsFormat1, counters), access }), size)
    }

    /// Finds the fields of an adaptive record.
    fn groups(self, left: usize, at: &impl Fn(usize) -> u64) -> (Found, usize) {
        let (least, with_access) = (usize::from(self.least_size()), usize::from(self.size_with_access()));
        if left < least {
            return (Found::Nothing, left.max(1));
        }
        let format = RecordFormat::from_bits(at(offset_of!(BasicGroup, format)));
        let (size, groups) = (usize::from(format.size()), format.into_bits() & GROUPS);
        let access = match groups {
            _ if !(least..=left).contains(&size) => return (Found::Nothing, left),
            0 if size == least => None,
            MEMORY if size == with_access => Some(AccessFields {
                address: least + offset_of!(MemoryGroup, address),
                source: least + offset_of!(MemoryGroup, source),
            }),
            _ => return (Found::Nothing, size),
        };
        (
            Found::Fields(Fields {
                ip: offset_of!(BasicGroup, ip),
                counters: offset_of!(BasicGroup, counters),
                access,
            }),
            size,
        )
    }
}

/// The memory group alone, and all groups, in the first word of an adaptive record.
const MEMORY: u64 = RecordFormat::new().with_memory(true).into_bits();
const GROUPS: u64 =
    RecordFormat::from_bits(u64::MAX).with_last_lbr_entry(0).with_retire_latency(0).with_size(0).into_bits();

/// Distance of the latency from the source, in every format.
const BEHIND_SOURCE: usize = offset_of!(MemoryGroup, latency) - offset_of!(MemoryGroup, source);

const _: () = assert!(
    offset_of!(PebsFormat1, latency) - offset_of!(PebsFormat1, source) == BEHIND_SOURCE
        && offset_of!(ArchitecturalMemoryGroup, latency) - offset_of!(ArchitecturalMemoryGroup, source)
            == BEHIND_SOURCE
);

/// Byte offsets of the fields of a record.
#[derive(Clone, Copy)]
struct Fields {
    ip: usize,
    counters: usize,
    access: Option<AccessFields>,
}

/// Byte offsets of the fields of an access.
#[derive(Clone, Copy)]
struct AccessFields {
    address: usize,
    source: usize,
}

/// What is at the start of the rest of a buffer, not yet read.
enum Found {
    Fields(Fields),
    Fragment,
    Nothing,
}

/// Returns the size of a type.
const fn bytes_of<T>() -> u16 {
    (size_of::<T>() as u64 & 0xFFFF) as u16
}

/// Finds the fields of a record of architectural PEBS. Groups can be in any of its fragments, and the one with the
/// basic group begins the record, unless null records precede it.
fn fragments(left: usize, at: &impl Fn(usize) -> u64) -> (Found, usize) {
    const HEADER: usize = offset_of!(ArchitecturalRecord, basic);
    let (mut found, mut begin) = (Found::Nothing, 0);
    while left - begin >= HEADER {
        let header = RecordHeader::from_bits(at(begin));
        let memory = HEADER + if header.basic() { size_of::<ArchitecturalBasicGroup>() } else { 0 };
        let least = memory + if header.aux() { size_of::<ArchitecturalMemoryGroup>() } else { 0 };
        let size = usize::from(header.size());
        let is_other = header.basic() && matches!(found, Found::Fields(_));
        if size < least || size > left - begin || is_other {
            break;
        }
        if header.basic() {
            let basic = begin + HEADER;
            let ip = basic + offset_of!(ArchitecturalBasicGroup, ip);
            let counters = basic + offset_of!(ArchitecturalBasicGroup, counters);
            found = Found::Fields(Fields { ip, counters, access: None });
        } else if matches!(found, Found::Nothing) {
            found = Found::Fragment;
        }
        if let (Found::Fields(fields), true) = (&mut found, header.aux()) {
            fields.access = Some(AccessFields {
                address: begin + memory + offset_of!(ArchitecturalMemoryGroup, address),
                source: begin + memory + offset_of!(ArchitecturalMemoryGroup, source),
            });
        }
        begin += size;
        if !header.is_followed() {
            break;
        }
    }
    // Nothing was read, so that nothing tells where the next record begins.
    (found, if begin == 0 { left.max(1) } else { begin })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the word at an offset of a record of the words 1, 2, 3 and so on: each value identifies its offset.
    fn at(offset: usize) -> u64 {
        offset as u64 / 8 + 1
    }

    /// Returns the access whose words are at these offsets.
    fn access([address, source, latency]: [usize; 3]) -> RecordedAccess {
        RecordedAccess { address: at(address), source: at(source), latency: at(latency) }
    }

    #[test]
    fn fixed_format_fields_have_their_documented_offsets() {
        for (number, size, ip, is_exact, counters) in [
            (0, 144, at(0x08), false, None),
            (1, 176, at(0x08), false, Some(at(0x90))),
            (2, 192, at(0xB0), true, Some(at(0x90))),
            (3, 200, at(0xB0), true, Some(at(0x90))),
        ] {
            let format = Format::from_number(number).unwrap();
            assert_eq!([format.least_size(), format.size_with_access()].map(usize::from), [size; 2], "{number}");
            let access = (number > 0).then(|| access([0x98, 0xA0, 0xA8]));
            let record = Part::Record(PebsRecord { ip, is_exact, counters, access });
            assert_eq!(format.part(size, at), (record, size), "{number}");
            assert_eq!(format.part(size - 1, at), (Part::Unreadable, size - 1), "{number}");
        }
        assert_eq!([7, 14, 16].map(Format::from_number), [None; 3]);
    }

    #[test]
    fn adaptive_record_has_an_access_if_it_has_the_memory_group() {
        for format in [Format::Adaptive, Format::Adaptive5, Format::Adaptive6] {
            let (ip, counters) = (at(0x08), Some(at(0x10)));
            let basic = RecordFormat::new().with_retire_latency(0x1234).with_last_lbr_entry(31);
            for (basic, access, size) in [
                (basic.with_size(32), None, 32),
                (basic.with_size(64).with_memory(true), Some(access([0x20, 0x28, 0x30])), 64),
            ] {
                let word = |offset| if offset == 0 { basic.into_bits() } else { at(offset) };
                let record = Part::Record(PebsRecord { ip, is_exact: true, counters, access });
                assert_eq!(format.part(64, word), (record, size), "{format:?}");
                assert_eq!(format.part(size, word), (record, size), "{format:?}");
                assert_eq!(format.part(size - 8, word), (Part::Unreadable, size - 8), "{format:?}");
            }
            assert_eq!((format.least_size(), format.size_with_access()), (32, 64), "{format:?}");
        }
    }

    /// One with other groups is skipped by its size, and one whose size is impossible to the end of the buffer.
    #[test]
    fn adaptive_record_of_other_groups_or_of_an_impossible_size_is_unreadable() {
        let basic = RecordFormat::new();
        for (bad, left, size) in [
            (basic, 200, 200),
            (basic.with_size(31), 200, 200),
            (basic.with_size(u16::MAX), 200, 200),
            (basic.with_size(208).with_memory(true).with_registers(true), 200, 200),
            (basic.with_size(176).with_registers(true), 200, 176),
            (basic.with_size(64), 200, 64),
            (basic.with_size(32).with_memory(true), 200, 32),
            (basic.with_size(64).with_memory(true).with_others(1), 200, 64),
            (basic.with_size(32).with_others(1 << 19), 200, 32),
            (basic.with_size(64).with_lbr(true), 64, 64),
            (basic.with_size(32), 31, 31),
            (basic.with_size(32), 0, 1),
        ] {
            assert_eq!(Format::Adaptive.part(left, |_| bad.into_bits()), (Part::Unreadable, size), "{bad:?} {left}");
        }
    }

    /// Returns what is read of these fragments, of `left` bytes: of each the header, and the words behind it identify
    /// their offsets.
    fn of_fragments(left: usize, headers: &[(usize, RecordHeader)]) -> (Part, usize) {
        Format::Architectural.part(left, |offset| {
            let header = headers.iter().find(|(at, _)| *at == offset);
            header.map_or_else(|| at(offset), |(_, header)| header.into_bits())
        })
    }

    #[test]
    fn fragments_of_architectural_records_have_their_own_size_and_no_untrusted_one_leads_out_of_the_buffer() {
        let header = RecordHeader::new();
        let record =
            |access| Part::Record(PebsRecord { ip: at(0x10), is_exact: true, counters: Some(at(0x18)), access });
        let own = record(Some(access([0x40, 0x68, 0x70])));
        for (header, left, part, size) in [
            (header.with_basic(true).with_size(64), 64, record(None), 64),
            (header.with_basic(true).with_gpr(true).with_size(224), 224, record(None), 224),
            (header.with_basic(true).with_aux(true).with_size(128), 128, own, 128),
            (header.with_basic(true).with_aux(true).with_gpr(true).with_size(288), 1_000, own, 288),
            (header.with_basic(true).with_aux(true).with_size(120), 128, Part::Unreadable, 128),
            (header.with_aux(true).with_size(80), 80, Part::Fragment, 80),
            (header.with_aux(true).with_size(79), 80, Part::Unreadable, 80),
            (header.with_size(16), 16, Part::Fragment, 16), // a null record
            (header.with_gpr(true).with_size(176), 176, Part::Fragment, 176),
            (header.with_basic(true).with_size(63), 64, Part::Unreadable, 64),
            (header.with_basic(true).with_size(64), 48, Part::Unreadable, 48),
            (header.with_size(0), 128, Part::Unreadable, 128),
            (header.with_size(u16::MAX), 128, Part::Unreadable, 128),
            (header, 15, Part::Unreadable, 15),
            (header, 0, Part::Unreadable, 1),
        ] {
            assert_eq!(of_fragments(left, &[(0, header)]), (part, size), "{header:?} {left}");
        }
        assert_eq!((Format::Architectural.least_size(), Format::Architectural.size_with_access()), (64, 128));
    }

    #[test]
    fn the_access_of_an_architectural_record_can_be_in_any_of_its_fragments() {
        let header = RecordHeader::new();
        let basic = header.with_basic(true).with_size(64);
        let (begun, null) = (basic.with_continued(true), header.with_size(16));
        let aux = header.with_aux(true).with_size(80);
        let more = header.with_gpr(true).with_size(176);
        let whole = header.with_basic(true).with_aux(true).with_size(128);
        let record =
            |ip, access| Part::Record(PebsRecord { ip: at(ip), is_exact: true, counters: Some(at(ip + 8)), access });
        for (what, headers, left, part, size) in [
            ("behind it", vec![(0, begun), (64, aux)], 1_000, record(0x10, Some(access([0x50, 0x78, 0x80]))), 144),
            (
                "behind two",
                vec![(0, begun), (64, more.with_continued(true)), (240, aux)],
                1_000,
                record(0x10, Some(access([0x100, 0x128, 0x130]))),
                320,
            ),
            (
                "behind a null record",
                vec![(0, null), (16, whole)],
                1_000,
                record(0x20, Some(access([0x50, 0x78, 0x80]))),
                144,
            ),
            (
                "with a null record between",
                vec![(0, begun), (64, null), (80, aux)],
                1_000,
                record(0x10, Some(access([0x60, 0x88, 0x90]))),
                160,
            ),
            ("that of the next record is not its own", vec![(0, basic), (64, aux)], 144, record(0x10, None), 64),
            ("the next record came instead", vec![(0, begun), (64, whole)], 192, record(0x10, None), 64),
            ("it has not come", vec![(0, begun)], 64, record(0x10, None), 64),
            ("it is not whole", vec![(0, begun), (64, aux)], 143, record(0x10, None), 64),
            ("it is of no size", vec![(0, begun), (64, header)], 1_000, record(0x10, None), 64),
            ("a record of others", vec![(0, aux.with_continued(true)), (80, more)], 256, Part::Fragment, 256),
            (
                "a fragment of another before",
                vec![(0, aux.with_continued(true)), (80, basic)],
                144,
                record(0x60, None),
                144,
            ),
        ] {
            assert_eq!(of_fragments(left, &headers), (part, size), "{what}");
        }
    }
}
