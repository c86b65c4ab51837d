//! PEBS records (SDM Vol. 3B, "Processor Event Based Sampling (PEBS)", and "Adaptive PEBS" since Ice Lake): the state
//! that the processor itself writes after a counter overflowed. The driver reads the address and the counters of a
//! record in place and ignores the rest.
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

use x86_defs::intel::architectural_pebs::{ArchitecturalBasicGroup, ArchitecturalRecord, RecordHeader};
use x86_defs::intel::debug_store::pebs::{
    BasicGroup, PebsFormat0, PebsFormat1, PebsFormat2, PebsFormat3, RecordFormat,
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

/// The fields that are in a record of every format when no optional group is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PebsRecord {
    /// Address of the instruction that caused the event if `is_exact`, else of the next instruction.
    pub ip: u64,
    /// Whether `ip` is the address of the instruction that caused the event.
    pub is_exact: bool,
    /// Counters that overflowed: bit n is general counter n, bit 32 + n is fixed counter n. `None` in format 0.
    pub counters: Option<u64>,
    /// The load, if the record has one. It means something of a counter that measures load latency.
    pub load: Option<RecordedLoad>,
}

/// What a record has of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedLoad {
    /// Linear address of the data.
    pub address: u64,
    /// Data source encoding.
    pub source: u64,
    /// Core clock cycles from the dispatch of the load until it had its data.
    pub latency: u64,
}

/// What is at the start of the rest of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A record, or the fragment of one that has the fields.
    Record(PebsRecord),
    /// Another fragment of a record.
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
    pub const fn least_size(self) -> usize {
        match self {
            Self::Core2 => size_of::<PebsFormat0>(),
            Self::Nehalem => size_of::<PebsFormat1>(),
            Self::Haswell => size_of::<PebsFormat2>(),
            Self::Skylake => size_of::<PebsFormat3>(),
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => size_of::<BasicGroup>(),
            Self::Architectural => size_of::<ArchitecturalRecord>(),
        }
    }

    /// Returns the size in 64-bit words of a record without optional groups.
    #[must_use]
    pub const fn least_words(self) -> u8 {
        ((self.least_size() as u64 / 8) & 0xFF) as u8
    }

    /// Reads what is at the start of the last `left` bytes of a buffer, in place: `at` returns the word at a byte
    /// offset. Returns it with its size, which is at least 1: what an untrusted size leaves without meaning is
    /// unreadable as a whole.
    pub fn part(self, left: usize, at: impl Fn(usize) -> u64) -> (Part, usize) {
        match self {
            Self::Architectural => fragment(left, at),
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => {
                let format = RecordFormat::from_bits(at(offset_of!(BasicGroup, format)));
                let is_basic = usize::from(format.size()) == size_of::<BasicGroup>();
                let (ip, counters) = (offset_of!(BasicGroup, ip), offset_of!(BasicGroup, counters));
                let record = PebsRecord { ip: at(ip), is_exact: true, counters: Some(at(counters)), load: None };
                (if is_basic { Part::Record(record) } else { Part::Unreadable }, self.least_size())
            }
            _ => {
                let is_exact = self >= Self::Haswell;
                let counters = (self >= Self::Nehalem).then(|| at(offset_of!(PebsFormat1, counters)));
                let ip = if is_exact { offset_of!(PebsFormat2, eventing_ip) } else { offset_of!(PebsFormat0, ip) };
                let load = (self >= Self::Nehalem).then(|| RecordedLoad {
                    address: at(offset_of!(PebsFormat1, address)),
                    source: at(offset_of!(PebsFormat1, source)),
                    latency: at(offset_of!(PebsFormat1, latency)),
                });
                (Part::Record(PebsRecord { ip: at(ip), is_exact, counters, load }), self.least_size())
            }
        }
    }
}

/// Reads a fragment of a record of architectural PEBS.
fn fragment(left: usize, at: impl Fn(usize) -> u64) -> (Part, usize) {
    const BASIC: usize = offset_of!(ArchitecturalRecord, basic);
    let header = RecordHeader::from_bits(at(0));
    let size = usize::from(header.size());
    let least = if header.basic() { size_of::<ArchitecturalRecord>() } else { BASIC };
    if size < least || size > left {
        return (Part::Unreadable, left.max(1));
    }
    if !header.basic() {
        return (Part::Fragment, size);
    }
    let (ip, counters) =
        (BASIC + offset_of!(ArchitecturalBasicGroup, ip), BASIC + offset_of!(ArchitecturalBasicGroup, counters));
    (Part::Record(PebsRecord { ip: at(ip), is_exact: true, counters: Some(at(counters)), load: None }), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the word at an offset of a record of the words 1, 2, 3 and so on: each value identifies its offset.
    fn at(offset: usize) -> u64 {
        offset as u64 / 8 + 1
    }

    #[test]
    fn fixed_format_fields_have_their_documented_offsets() {
        let load = RecordedLoad { address: at(0x98), source: at(0xA0), latency: at(0xA8) };
        for (number, size, ip, is_exact, counters) in [
            (0, 144, at(0x08), false, None),
            (1, 176, at(0x08), false, Some(at(0x90))),
            (2, 192, at(0xB0), true, Some(at(0x90))),
            (3, 200, at(0xB0), true, Some(at(0x90))),
        ] {
            let format = Format::from_number(number).unwrap();
            assert_eq!((format.least_size(), usize::from(format.least_words()) * 8), (size, size), "{number}");
            let load = (number > 0).then_some(load);
            let record = Part::Record(PebsRecord { ip, is_exact, counters, load });
            assert_eq!(format.part(size, at), (record, size), "{number}");
        }
        assert_eq!([7, 14, 16].map(Format::from_number), [None; 3]);
    }

    #[test]
    fn adaptive_record_without_optional_groups_is_read() {
        for format in [Format::Adaptive, Format::Adaptive5, Format::Adaptive6] {
            let basic = RecordFormat::new().with_size(32).into_bits();
            let word = |offset| if offset == 0 { basic } else { at(offset) };
            let record = PebsRecord { ip: at(0x08), is_exact: true, counters: Some(at(0x10)), load: None };
            assert_eq!(format.part(32, word), (Part::Record(record), 32), "{format:?}");
            assert_eq!((format.least_size(), format.least_words()), (32, 4), "{format:?}");
        }
    }

    #[test]
    fn adaptive_record_of_another_size_is_unreadable() {
        let basic = RecordFormat::new();
        for bad in [basic, basic.with_size(31), basic.with_registers(true).with_size(176), basic.with_size(u16::MAX)] {
            assert_eq!(Format::Adaptive.part(64, |_| bad.into_bits()), (Part::Unreadable, 32), "{bad:?}");
        }
    }

    #[test]
    fn fragments_of_architectural_records_have_their_own_size_and_no_untrusted_one_leads_out_of_the_buffer() {
        let header = RecordHeader::new();
        let record = Part::Record(PebsRecord { ip: at(0x10), is_exact: true, counters: Some(at(0x18)), load: None });
        for (header, left, part, size) in [
            (header.with_basic(true).with_size(64), 64, record, 64),
            (header.with_basic(true).with_size(64).with_continued(true), 1_000, record, 64),
            (header.with_basic(true).with_gpr(true).with_size(224), 224, record, 224),
            (header.with_size(16), 80, Part::Fragment, 16), // a null record
            (header.with_gpr(true).with_size(176), 176, Part::Fragment, 176),
            (header.with_basic(true).with_size(63), 64, Part::Unreadable, 64),
            (header.with_basic(true).with_size(64), 48, Part::Unreadable, 48),
            (header.with_size(0), 128, Part::Unreadable, 128),
            (header.with_size(u16::MAX), 128, Part::Unreadable, 128),
            (header, 0, Part::Unreadable, 1),
        ] {
            let word = |offset| if offset == 0 { header.into_bits() } else { at(offset) };
            assert_eq!(Format::Architectural.part(left, word), (part, size), "{header:?} {left}");
        }
    }
}
