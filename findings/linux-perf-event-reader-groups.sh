#!/usr/bin/env bash
# linux-perf-event-reader 0.10.2 (a crate, by which samply reads perf.data): the call chain of a group's sample is made
# of counts.
#
# A good guess: the values that a sample has of its counters (PERF_SAMPLE_READ, as of perf record -e
# '{cycles,branches}:S') are skipped. That needs two layouts: for a group a number of values and then each with its ID,
# for a counter by itself one value (perf_event_open(2)). Seen: the two are exchanged. Of a group of two, two words are
# skipped and three are left, so the ID of the first counter is the length of the call chain, and the count of the
# second its first address. The value of a counter by itself is taken for a number of values, which is an error.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" linux-perf-event-reader 0.10.2 <<'TEXT'
use linux_perf_event_reader::*;

fn parse_info(read_format: ReadFormat) -> RecordParseInfo {
    RecordParseInfo {
        endian: Endianness::LittleEndian,
        sample_format: SampleFormat::IP | SampleFormat::READ | SampleFormat::CALLCHAIN,
        branch_sample_format: BranchSampleFormat::empty(),
        read_format,
        common_data_offset_from_end: None,
        sample_regs_user: 0,
        user_regs_count: 0,
        sample_regs_intr: 0,
        intr_regs_count: 0,
        id_parse_info: RecordIdParseInfo {
            nonsample_record_id_offset_from_end: None,
            sample_record_id_offset_from_start: None,
        },
        nonsample_record_time_offset_from_end: None,
        sample_record_time_offset_from_start: None,
    }
}

fn show(name: &str, read_format: ReadFormat, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let data = RawData::from(&bytes[..]);
    let record = RawEventRecord::new(RecordType::SAMPLE, 2, data, parse_info(read_format)).parse();
    let Ok(EventRecord::Sample(sample)) = record else {
        return println!("{name}: an error");
    };
    let chain = sample.callchain.unwrap();
    let chain: Vec<String> = (0..chain.len()).map(|at| format!("{:x}", chain.get(at).unwrap())).collect();
    println!("{name}: {}", chain.join(" "));
}

fn main() {
    // Its address; two counts with the IDs 4 and 5; a call chain of three.
    let group = [0x40_1000, 2, 100_003, 4, 0xBEEF, 5, 3, 0x40_1000, 0x40_2000, 0x40_3000];
    show("group", ReadFormat::GROUP | ReadFormat::ID, &group);
    let single = [0x40_1000, 100_003, 4, 3, 0x40_1000, 0x40_2000, 0x40_3000];
    show("single", ReadFormat::ID, &single);
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
group: beef 5 3 401000
single: an error
SEEN
