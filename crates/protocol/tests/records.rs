//! Every kind of record keeps its fields and its bytes, and bytes that are no record give an error.

use proptest::prelude::*;
use protocol::{
    ALL_EVENTS, AccessEncoding, AccessKind, AccessOperation, AccessRecord, BranchKind, BranchRecord, BranchType,
    CounterKind, CounterSample, LostRecord, Mode, OffCpuKind, OffCpuRecord, OffCpuState, PauseKind, PauseRecord,
    PreciseKind, PreciseSample, Prediction, Record, RecordError, RecordKind, SampleRecord, StopKind, StopRecord,
    is_kernel_address,
};
use zerocopy::{FromBytes, IntoBytes};

/// Offset of the kind in a record.
const KIND: usize = 36;

const fn mode(number: u32) -> Mode {
    if number.is_multiple_of(2) { Mode::User } else { Mode::Kernel }
}

const fn prediction(number: u32) -> Prediction {
    match number % 3 {
        0 => Prediction::NotReported,
        1 => Prediction::Predicted,
        _ => Prediction::Mispredicted,
    }
}

/// Returns a record of a kind, with its fields from these numbers.
fn of_kind(kind: RecordKind, [time, first, last]: [u64; 3], numbers: [u32; 5]) -> Record {
    let [process, thread, processor, source, interval] = numbers;
    let mode = mode(interval);
    let precise = |kind| {
        let (ip, number) = (first, last);
        Record::Precise(PreciseSample {
            time,
            ip,
            process,
            thread,
            processor,
            event: source,
            interval,
            kind,
            mode,
            number,
        })
    };
    match kind {
        RecordKind::Sample => {
            let (ip, kind, [pebs_sequence, cookie]) = (first, CounterKind::Sample, zerocopy::transmute!(last));
            let sample = CounterSample {
                time,
                ip,
                process,
                thread,
                processor,
                event: source,
                interval,
                kind,
                mode,
                pebs_sequence,
                cookie,
            };
            Record::Sample(sample)
        }
        RecordKind::Precise => precise(PreciseKind::Precise),
        RecordKind::PreciseNext => precise(PreciseKind::PreciseNext),
        RecordKind::Branch | RecordKind::LastBranch => {
            let (from, to, prediction) = (first, last, prediction(source));
            let is_last = kind == RecordKind::LastBranch;
            let kind = if is_last { BranchKind::LastBranch } else { BranchKind::Branch };
            let [cycles, _]: [u16; 2] = zerocopy::transmute!(if is_last { interval } else { 0 });
            let branch_type = if is_last { BranchType::Return } else { BranchType::NotReported };
            let record = BranchRecord {
                time,
                from,
                process,
                thread,
                processor,
                event: source,
                cycles,
                prediction,
                branch_type,
                kind,
                mode,
                to,
            };
            if is_last { Record::LastBranch(record) } else { Record::Branch(record) }
        }
        RecordKind::Lost => Record::Lost(LostRecord::new(time, processor, source, first)),
        RecordKind::Throttled => Record::Stop(StopRecord::new(StopKind::Throttled, time, processor)),
        RecordKind::Silenced => Record::Stop(StopRecord::new(StopKind::Silenced, time, processor)),
        RecordKind::Resumed => Record::Pause(PauseRecord::new(PauseKind::Resumed, time, processor, first)),
        RecordKind::Slept => Record::Pause(PauseRecord::new(PauseKind::Slept, time, processor, first)),
        RecordKind::Disconnected => Record::Stop(StopRecord::new(StopKind::Disconnected, time, processor)),
        RecordKind::Reconnected => Record::Pause(PauseRecord::new(PauseKind::Reconnected, time, processor, first)),
        RecordKind::Access => Record::Access(AccessRecord {
            time,
            address: first,
            process,
            thread,
            processor,
            event: source,
            latency: interval,
            kind: AccessKind::Access,
            number: 2,
            source: 0x5152_5354,
            instruction_latency: 0x5556,
            encoding: AccessEncoding::IbsZen4,
            operation: AccessOperation::Store,
        }),
        RecordKind::OffCpu => Record::OffCpu(OffCpuRecord {
            time,
            ip: first,
            process,
            thread,
            processor,
            event: source,
            waker: interval,
            kind: OffCpuKind::OffCpu,
            state: OffCpuState::WaitingOrReady,
            reason: 0,
            duration: last,
        }),
    }
}

const PAUSES: [RecordKind; 3] = [RecordKind::Resumed, RecordKind::Slept, RecordKind::Reconnected];

/// The bytes that protocol version 7 and format version 2 of recordings define, field by field.
#[test]
fn every_kind_has_the_bytes_that_it_had_before_kinds_had_types() {
    let words = [0x1112_1314_1516_1718_u64, 0x2122_2324_2526_2728, 0x8182_8384_8586_8788];
    let numbers = [0x3132_3334, 0x4142_4344, 0x5152_5354, 0x6162_6366, 0x7172_7375];
    for kind in RecordKind::ALL {
        let is_sample =
            kind.is_sample() || [RecordKind::OffCpu, RecordKind::LastBranch, RecordKind::Access].contains(&kind);
        let mut bytes = Vec::new();
        let has_value = is_sample || kind == RecordKind::Lost || PAUSES.contains(&kind);
        bytes.extend(words[0].to_le_bytes());
        bytes.extend(if has_value { words[1] } else { 0 }.to_le_bytes());
        bytes.extend(if is_sample { numbers[0] } else { 0_u32 }.to_le_bytes());
        bytes.extend(if is_sample { numbers[1] } else { 0_u32 }.to_le_bytes());
        bytes.extend(numbers[2].to_le_bytes());
        bytes.extend(if is_sample || kind == RecordKind::Lost { numbers[3] } else { ALL_EVENTS }.to_le_bytes());
        let number = match kind {
            RecordKind::LastBranch => 0x0600_7375, // cycles, and the type
            RecordKind::Branch => 0,
            _ if is_sample => numbers[4],
            _ => 0,
        };
        bytes.extend(number.to_le_bytes());
        bytes.extend((kind as u16).to_le_bytes());
        bytes.extend(if is_sample { 2_u16 } else { 0 }.to_le_bytes());
        let last = match kind {
            RecordKind::Access => 0x020A_5556_5152_5354, // operation, encoding, latency, source
            _ if is_sample => words[2],
            _ => 0,
        };
        bytes.extend(last.to_le_bytes());
        assert_eq!(SampleRecord::from(of_kind(kind, words, numbers)).as_bytes(), bytes, "{kind:?}");
    }
}

#[test]
fn numbers_and_kinds_are_one_to_one() {
    for (number, kind) in (0_u16..).zip(RecordKind::ALL) {
        assert_eq!((kind as u16, RecordKind::from_number(number)), (number, Some(kind)));
    }
    assert_eq!(RecordKind::from_number(14), None);
}

/// Bytes that a kind does not allow: unknown modes, predictions and bits in unused bytes.
#[test]
fn a_byte_that_a_kind_does_not_allow_is_an_error() {
    for kind in RecordKind::ALL {
        let record = SampleRecord::from(of_kind(kind, [1, 2, 3], [4, 5, 6, 8, 10]));
        let is_free = |offset: usize| match kind {
            RecordKind::Sample | RecordKind::Precise | RecordKind::PreciseNext => !(38..40).contains(&offset),
            RecordKind::Access => offset < 46,  // the encoding and the operation
            RecordKind::OffCpu => offset != 38, // the state
            RecordKind::Branch | RecordKind::LastBranch => !(34..36).contains(&offset) && !(38..40).contains(&offset),
            kind if kind == RecordKind::Lost || PAUSES.contains(&kind) => offset < 16 || (24..32).contains(&offset),
            _ => offset < 8 || (24..32).contains(&offset),
        };
        for offset in (0..size_of::<SampleRecord>()).filter(|offset| !(KIND..KIND + 2).contains(offset)) {
            let mut damaged = record;
            damaged.as_mut_bytes()[offset] ^= 0x80;
            let parsed = damaged.parse();
            if is_free(offset) {
                assert_eq!(parsed.map(SampleRecord::from), Ok(damaged), "{kind:?}, byte {offset}");
            } else {
                assert_eq!(parsed, Err(RecordError::Damaged(kind)), "{kind:?}, byte {offset}");
            }
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let mut record = SampleRecord::from(LostRecord::new(1, 2, 3, 4));
    record.as_mut_bytes()[47] = 1;
    assert_eq!(record.parse().unwrap_err().to_string(), "a field of a record of kind Lost has an invalid value");
    record.as_mut_bytes()[KIND] = 14;
    assert_eq!(record.parse().unwrap_err().to_string(), "record kind 14 is unknown");
}

/// Checks the fields that all kinds have, and those that all samples have, against the numbers of [`of_kind`].
fn check_views(kind: RecordKind, record: &Record, words: [u64; 3], numbers: [u32; 5]) -> Result<(), TestCaseError> {
    let [process, thread, processor, source, interval] = numbers;
    prop_assert_eq!((record.kind(), record.time(), record.processor()), (kind, words[0], processor));
    let is_sample = kind.is_sample() || kind == RecordKind::OffCpu;
    let has_source = is_sample || [RecordKind::Lost, RecordKind::LastBranch, RecordKind::Access].contains(&kind);
    prop_assert_eq!(record.event(), if has_source { source } else { ALL_EVENTS });
    prop_assert_eq!(record.sample().is_some(), is_sample);
    if let Some(sample) = record.sample() {
        prop_assert_eq!((sample.time, sample.ip), (words[0], words[1]));
        prop_assert_eq!((sample.process, sample.thread), (process, thread));
        prop_assert_eq!((sample.processor, sample.event), (processor, source));
        let by_address = if words[1] == 0 || is_kernel_address(words[1]) { Mode::Kernel } else { Mode::User };
        let (mode, events) = match kind {
            RecordKind::OffCpu => (by_address, words[2]),
            RecordKind::Branch => (mode(interval), 1),
            _ => (mode(interval), interval.into()),
        };
        prop_assert_eq!((sample.mode, sample.events), (mode, events));
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_kind_of_record_round_trips(
        kind in prop::sample::select(RecordKind::ALL.as_slice()), words in any::<[u64; 3]>(), numbers in any::<[u32; 5]>()
    ) {
        let record = of_kind(kind, words, numbers);
        let sent = SampleRecord::from(record);
        prop_assert_eq!((sent.kind(), sent.time()), (Some(kind), words[0]));
        let received = SampleRecord::read_from_bytes(sent.as_bytes()).unwrap();
        prop_assert_eq!(received.parse(), Ok(record));
        check_views(kind, &record, words, numbers)?;
    }

    /// Bytes 32 to 39 have few valid values, so that half of the blocks have a kind.
    #[test]
    fn arbitrary_bytes_are_a_record_that_gives_the_same_bytes_or_an_error(
        words in any::<[u64; 6]>(), kind in prop_oneof![any::<u16>(), 0_u16..13], mode in 0_u16..4, is_sparse in any::<bool>()
    ) {
        let mut bytes = words.as_bytes().to_vec();
        bytes[36..38].copy_from_slice(&kind.to_le_bytes());
        bytes[38..40].copy_from_slice(&mode.to_le_bytes());
        if is_sparse {
            bytes[8..24].fill(0);
            bytes[33..36].fill(0);
            bytes[40..].fill(0);
        }
        let record = SampleRecord::read_from_bytes(&bytes).unwrap();
        match record.parse() {
            Ok(parsed) => {
                prop_assert_eq!(parsed.kind() as u16, kind);
                let again = SampleRecord::from(parsed);
                prop_assert_eq!(again.as_bytes(), &bytes);
            }
            Err(RecordError::UnknownKind(number)) => prop_assert!(number == kind && RecordKind::from_number(kind).is_none()),
            Err(RecordError::Damaged(found)) => prop_assert_eq!(found as u16, kind),
        }
    }

    #[test]
    fn bytes_of_another_length_are_not_a_record(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert_eq!(SampleRecord::read_from_bytes(&bytes).is_ok(), bytes.len() == 48);
    }
}
