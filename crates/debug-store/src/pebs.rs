//! PEBS records (SDM Vol. 3B, "Processor Event Based Sampling (PEBS)", and "Adaptive PEBS" since Ice Lake): the state
//! that the processor itself writes after a counter overflowed.
//!
//! | format | processors | bytes | contents of a record |
//! |---|---|---|---|
//! | 0 | Core 2 | 144 | registers |
//! | 1 | Nehalem to Ivy Bridge | 176 | also counters; address, source and latency of a load |
//! | 2 | Haswell, Broadwell | 192 | also the address of the instruction itself, transactions |
//! | 3 | Skylake to Comet Lake | 200 | also the time |
//! | 4, 5 | Ice Lake and later | in each record | a basic group, and the groups that were requested |

use core::mem::offset_of;

use x86_defs::intel::debug_store::pebs::{
    BasicGroup, LbrEntry, MemoryGroup, PebsFormat0, PebsFormat1, PebsFormat2, PebsFormat3, RecordFormat,
    RegistersGroup, XmmGroup,
};
use zerocopy::{FromBytes, IntoBytes};

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
}

/// A decoded record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Address of the instruction that caused the event if `is_exact`, else of the next instruction.
    pub ip: u64,
    /// Whether `ip` is the address of the instruction that caused the event.
    pub is_exact: bool,
    /// Counters that overflowed: bit n is general counter n, bit 32 + n is fixed counter n. `None` in format 0.
    pub counters: Option<u64>,
    /// Time-stamp counter, if the format has it.
    pub time: Option<u64>,
    /// Registers at the end of the instruction, if they were recorded.
    pub registers: Option<Registers>,
    /// Memory access of the instruction, if it was recorded.
    pub memory: Option<Memory>,
    /// Number of LBR entries at the end of the record.
    pub branches: u8,
}

/// The fields that are in a record of every format when no optional group is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PebsRecord {
    /// See [`Record::ip`].
    pub ip: u64,
    /// See [`Record::is_exact`].
    pub is_exact: bool,
    /// See [`Record::counters`].
    pub counters: Option<u64>,
}

/// General registers at the end of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is named after its register")]
pub struct Registers {
    pub flags: u64,
    pub ip: u64,
    pub ax: u64,
    pub bx: u64,
    pub cx: u64,
    pub dx: u64,
    pub si: u64,
    pub di: u64,
    pub bp: u64,
    pub sp: u64,
    /// R8 to R15.
    pub r8: [u64; 8],
}

/// A memory access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Linear address of the data.
    pub address: u64,
    /// Data source, in the encoding of the processor.
    pub source: u64,
    /// Latency in clock cycles.
    pub latency: u64,
}

/// Why the rest of a buffer cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The size in a record does not match its groups.
    #[error("a record has the size {0}, which does not match its groups")]
    Size(usize),
    /// The last record is incomplete: the buffer ends after this many bytes of it.
    #[error("the last record is incomplete: {0} bytes")]
    Torn(usize),
}

/// Returns the size in bytes of an adaptive record with these groups.
#[must_use]
pub const fn size_by_groups(format: RecordFormat) -> usize {
    let mut size = size_of::<BasicGroup>();
    if format.memory() {
        size += size_of::<MemoryGroup>();
    }
    if format.registers() {
        size += size_of::<RegistersGroup>();
    }
    if format.xmm() {
        size += size_of::<XmmGroup>();
    }
    if format.lbr() {
        size += size_of::<LbrEntry>() * (format.last_lbr_entry() as usize + 1);
    }
    size
}

impl Format {
    /// Every format, indexed by PEBS_FMT.
    pub const ALL: [Self; 6] =
        [Self::Core2, Self::Nehalem, Self::Haswell, Self::Skylake, Self::Adaptive, Self::Adaptive5];

    /// Returns the format with this PEBS_FMT; `None` if it is unknown.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the size of a record in bytes; `None` if each record contains its own size.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Adaptive | Self::Adaptive5 => None,
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
            Self::Adaptive | Self::Adaptive5 => size_of::<BasicGroup>(),
        }
    }

    /// Returns the size in 64-bit words of a record without optional groups.
    #[must_use]
    pub const fn least_words(self) -> u8 {
        ((self.least_size() as u64 / 8) & 0xFF) as u8
    }

    /// Decodes the first record of `left`. Returns it and the bytes after it.
    ///
    /// # Errors
    /// Returns [`Damage`] if the record cannot be decoded; the position of the next record is then unknown.
    pub fn decode(self, left: &[u8]) -> Result<(Record, &[u8]), Damage> {
        match self.size() {
            Some(size) => {
                let (record, rest) = left.split_at_checked(size).ok_or(Damage::Torn(left.len()))?;
                Ok((self.of_fixed_size(record), rest))
            }
            None => adaptive(left),
        }
    }

    /// Reads the fields that every record has, in place: `at` returns the word at a byte offset. Returns `None` if an
    /// adaptive record does not have [`least_size`](Self::least_size).
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

    /// Decodes a record of a fixed size. Each format begins with the fields of the one before it.
    fn of_fixed_size(self, record: &[u8]) -> Record {
        let mut longest = PebsFormat3::default();
        for (to, from) in longest.as_mut_bytes().iter_mut().zip(record) {
            *to = *from;
        }
        let PebsFormat3 { format2: PebsFormat2 { format1, eventing_ip, .. }, tsc } = longest;
        let memory = Memory { address: format1.address, source: format1.source, latency: format1.latency };
        let is_exact = self >= Self::Haswell;
        Record {
            ip: if is_exact { eventing_ip } else { format1.registers.ip },
            is_exact,
            counters: (self >= Self::Nehalem).then_some(format1.counters),
            time: (self >= Self::Skylake).then_some(tsc),
            registers: Some(format1.registers.into()),
            memory: (self >= Self::Nehalem && memory != Memory::default()).then_some(memory),
            branches: 0,
        }
    }
}

impl From<PebsFormat0> for Registers {
    fn from(PebsFormat0 { flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8 }: PebsFormat0) -> Self {
        Self { flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8 }
    }
}

impl From<RegistersGroup> for Registers {
    fn from(RegistersGroup { flags, ip, ax, cx, dx, bx, sp, bp, si, di, r8 }: RegistersGroup) -> Self {
        Self { flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8 }
    }
}

/// Decodes the written part of a buffer, oldest record first, up to the first error.
pub fn records(format: Format, written: &[u8]) -> impl Iterator<Item = Result<Record, Damage>> {
    let mut left = Some(written);
    core::iter::from_fn(move || {
        let bytes = left.take().filter(|bytes| !bytes.is_empty())?;
        Some(format.decode(bytes).map(|(record, rest)| {
            left = Some(rest);
            record
        }))
    })
}

fn adaptive(left: &[u8]) -> Result<(Record, &[u8]), Damage> {
    let torn = Damage::Torn(left.len());
    let (format, _) = RecordFormat::read_from_prefix(left).map_err(|_| torn)?;
    let size = usize::from(format.size());
    if size != size_by_groups(format) {
        return Err(Damage::Size(size));
    }
    let (mut groups, rest) = left.split_at_checked(size).ok_or(torn)?;
    let BasicGroup { ip, counters, tsc, .. } = take(&mut groups).ok_or(torn)?;
    let memory: Option<MemoryGroup> = format.memory().then(|| take(&mut groups)).flatten();
    let registers: Option<RegistersGroup> = format.registers().then(|| take(&mut groups)).flatten();
    let decoded = Record {
        ip,
        is_exact: true,
        counters: Some(counters),
        time: Some(tsc),
        memory: memory.map(|MemoryGroup { address, source, latency, .. }| Memory { address, source, latency }),
        registers: registers.map(Registers::from),
        branches: if format.lbr() { format.last_lbr_entry().saturating_add(1) } else { 0 },
    };
    Ok((decoded, rest))
}

/// Takes a group from the start of `left`; `None` if `left` is shorter.
fn take<Group: FromBytes>(left: &mut &[u8]) -> Option<Group> {
    let (group, rest) = Group::read_from_prefix(left).ok()?;
    *left = rest;
    Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a record of the words 1, 2, 3 and so on, so that each value identifies its offset.
    fn counting(size: usize) -> Vec<u8> {
        (1_u64..).take(size / 8).flat_map(u64::to_le_bytes).collect()
    }

    /// Returns the word that [`counting`] has at an offset.
    fn at(offset: u64) -> u64 {
        offset / 8 + 1
    }

    #[test]
    fn fixed_format_fields_have_their_documented_offsets() {
        for (number, ip, is_exact, counters, time) in [
            (0, at(0x08), false, None, None),
            (1, at(0x08), false, Some(at(0x90)), None),
            (2, at(0xB0), true, Some(at(0x90)), None),
            (3, at(0xB0), true, Some(at(0x90)), Some(at(0xC0))),
        ] {
            let format = Format::from_number(number).unwrap();
            let bytes = counting(format.size().unwrap());
            let (record, rest) = format.decode(&bytes).unwrap();
            assert!(rest.is_empty());
            assert_eq!((record.ip, record.is_exact, record.counters, record.time), (ip, is_exact, counters, time));
            let registers = record.registers.unwrap();
            assert_eq!((registers.flags, registers.ip, registers.ax, registers.sp), (1, 2, 3, at(0x48)), "{number}");
            assert_eq!(registers.r8, core::array::from_fn(|n| at(0x50 + 8 * n as u64)), "{number}");
            let memory = Memory { address: at(0x98), source: at(0xA0), latency: at(0xA8) };
            assert_eq!(record.memory, (number > 0).then_some(memory), "{number}");
        }
        assert_eq!(Format::from_number(6), None);
    }

    #[test]
    fn essence_matches_the_decoded_record() {
        for format in Format::ALL {
            let mut bytes = counting(format.least_size());
            if format.size().is_none() {
                bytes[..8].copy_from_slice(&RecordFormat::new().with_size(32).into_bits().to_le_bytes());
            }
            let (record, _) = format.decode(&bytes).unwrap();
            let record = PebsRecord { ip: record.ip, is_exact: record.is_exact, counters: record.counters };
            let word = |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap());
            assert_eq!(format.record(word), Some(record), "{format:?}");
        }
        let longer = RecordFormat::new().with_registers(true).with_size(176).into_bits();
        assert_eq!(Format::Adaptive.record(|_| longer), None);
    }

    #[test]
    fn adaptive_groups_follow_in_the_order_of_the_first_word() {
        for groups in 0..16_u64 {
            let branches = 3;
            let basic = RecordFormat::from_bits(groups).with_last_lbr_entry(branches - 1);
            let size = 32
                + if groups & 1 == 0 { 0 } else { 32 }
                + if groups & 2 == 0 { 0 } else { 144 }
                + if groups & 4 == 0 { 0 } else { 256 }
                + if groups & 8 == 0 { 0 } else { 24 * usize::from(branches) };
            assert_eq!(size_by_groups(basic), size, "{groups:#b}");
            let mut bytes = counting(size);
            bytes[..8].copy_from_slice(&basic.with_size(u16::try_from(size).unwrap()).into_bits().to_le_bytes());
            bytes.extend([0xAA; 5]);
            let (record, rest) = Format::Adaptive.decode(&bytes).unwrap();
            assert_eq!(rest, [0xAA; 5], "{groups:#b}");
            assert_eq!((record.ip, record.counters, record.time), (2, Some(3), Some(4)));
            assert!(record.is_exact);
            let memory = Memory { address: at(0x20), source: at(0x28), latency: at(0x30) };
            assert_eq!(record.memory, (groups & 1 == 1).then_some(memory), "{groups:#b}");
            let begin = if groups & 1 == 1 { 0x40 } else { 0x20 };
            let registers = record.registers.map(|it| (it.flags, it.ip, it.ax, it.cx, it.bx, it.di, it.r8[7]));
            let wanted = [0x00, 0x08, 0x10, 0x18, 0x28, 0x48, 0x88].map(|offset| at(begin + offset));
            let [flags, ip, ax, cx, bx, di, r15] = wanted;
            assert_eq!(registers, (groups & 2 == 2).then_some((flags, ip, ax, cx, bx, di, r15)), "{groups:#b}");
            assert_eq!(record.branches, if groups & 8 == 8 { branches } else { 0 });
        }
    }

    #[test]
    fn record_size_that_contradicts_its_groups_stops_decoding() {
        let good = RecordFormat::new().with_size(32);
        let word = |format: RecordFormat| format.into_bits().to_le_bytes();
        for bad in [good.with_size(0), good.with_size(40), good.with_registers(true), good.with_size(u16::MAX)] {
            let bytes = [word(good), [0; 8], [0; 8], [0; 8], word(bad), [0; 8], [0; 8], [0; 8]].concat();
            let found: Vec<_> = records(Format::Adaptive, &bytes).collect();
            assert_eq!(found.len(), 2, "{bad:?}");
            assert_eq!((found[0].is_ok(), found[1]), (true, Err(Damage::Size(bad.size().into()))), "{bad:?}");
        }
    }

    #[test]
    fn incomplete_record_is_reported_after_those_before_it() {
        for (format, size) in
            [(Format::Core2, 144), (Format::Nehalem, 176), (Format::Haswell, 192), (Format::Skylake, 200)]
        {
            let bytes = vec![0; 2 * size + 7];
            let found: Vec<_> = records(format, &bytes).collect();
            assert_eq!((found.len(), found[2]), (3, Err(Damage::Torn(7))), "{format:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_to_their_end_or_the_first_error(
            number in 0_u8..6,
            bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        ) {
            let format = Format::from_number(number).unwrap();
            let found: Vec<_> = records(format, &bytes).collect();
            prop_assert!(found.len() <= bytes.len() / format.least_size() + 1, "bounded by the number of bytes");
            prop_assert!(found.iter().rev().skip(1).all(Result::is_ok), "nothing follows the first error");
        }
    }
}
