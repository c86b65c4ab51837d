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

use core::mem::offset_of;

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
}

impl Format {
    /// Every format, indexed by PEBS_FMT.
    pub const ALL: [Self; 7] =
        [Self::Core2, Self::Nehalem, Self::Haswell, Self::Skylake, Self::Adaptive, Self::Adaptive5, Self::Adaptive6];

    /// Returns the format with this PEBS_FMT; `None` if it is unknown.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the size of a record in bytes; `None` if each record contains its own size.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Adaptive | Self::Adaptive5 | Self::Adaptive6 => None,
            _ => Some(self.least_size()),
        }
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
        }
    }

    /// Returns the size in 64-bit words of a record without optional groups.
    #[must_use]
    pub const fn least_words(self) -> u8 {
        ((self.least_size() as u64 / 8) & 0xFF) as u8
    }

    /// Reads the fields that every record has, in place: `at` returns the word at a byte offset. Returns `None` if the
    /// size of an adaptive record is not [`least_size`](Self::least_size).
    pub fn record(self, at: impl Fn(usize) -> u64) -> Option<PebsRecord> {
        if self.size().is_none() {
            let format = RecordFormat::from_bits(at(offset_of!(BasicGroup, format)));
            let is_basic = usize::from(format.size()) == size_of::<BasicGroup>();
            let (ip, counters) = (offset_of!(BasicGroup, ip), offset_of!(BasicGroup, counters));
            return is_basic.then(|| PebsRecord { ip: at(ip), is_exact: true, counters: Some(at(counters)) });
        }
        let is_exact = self >= Self::Haswell;
        let counters = (self >= Self::Nehalem).then(|| at(offset_of!(PebsFormat1, counters)));
        let ip = if is_exact { offset_of!(PebsFormat2, eventing_ip) } else { offset_of!(PebsFormat0, ip) };
        Some(PebsRecord { ip: at(ip), is_exact, counters })
    }
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
        for (number, size, ip, is_exact, counters) in [
            (0, 144, at(0x08), false, None),
            (1, 176, at(0x08), false, Some(at(0x90))),
            (2, 192, at(0xB0), true, Some(at(0x90))),
            (3, 200, at(0xB0), true, Some(at(0x90))),
        ] {
            let format = Format::from_number(number).unwrap();
            assert_eq!((format.size(), format.least_size()), (Some(size), size), "{number}");
            assert_eq!(usize::from(format.least_words()) * 8, size, "{number}");
            assert_eq!(format.record(at), Some(PebsRecord { ip, is_exact, counters }), "{number}");
        }
        assert_eq!(Format::from_number(7), None);
    }

    #[test]
    fn adaptive_record_without_optional_groups_is_read() {
        for format in [Format::Adaptive, Format::Adaptive5, Format::Adaptive6] {
            let basic = RecordFormat::new().with_size(32).into_bits();
            let word = |offset| if offset == 0 { basic } else { at(offset) };
            let record = PebsRecord { ip: at(0x08), is_exact: true, counters: Some(at(0x10)) };
            assert_eq!(format.record(word), Some(record), "{format:?}");
            assert_eq!((format.size(), format.least_size(), format.least_words()), (None, 32, 4), "{format:?}");
        }
    }

    #[test]
    fn adaptive_record_of_another_size_is_unreadable() {
        let basic = RecordFormat::new();
        for bad in [basic, basic.with_size(31), basic.with_registers(true).with_size(176), basic.with_size(u16::MAX)] {
            assert_eq!(Format::Adaptive.record(|_| bad.into_bits()), None, "{bad:?}");
        }
    }
}
