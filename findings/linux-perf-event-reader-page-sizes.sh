#!/usr/bin/env bash
# linux-perf-event-reader 0.10.2 (a crate, by which samply reads perf.data): the size of a page is the number of a
# cgroup.
#
# A good guess: fields of a sample that it does not return are skipped, as it does with weights and data sources, or a
# format with fields that it does not know is refused. Seen: it does not know PERF_SAMPLE_CGROUP and
# PERF_SAMPLE_WEIGHT_STRUCT, though its comments list the second, and does not look for unknown bits. With cgroups
# (perf record --all-cgroups) the size of the data's page is the cgroup, and that of the code's page is the size of the
# data's. With the weights of perf mem since Linux 5.12, the physical address is the data source.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'linux-perf-event-reader = "=0.10.2"' 'byteorder = "=1.5.0"'
cat > src/main.rs <<'TEXT'
use linux_perf_event_reader::*;

// include/uapi/linux/perf_event.h
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
const PHYS_ADDR: u64 = 1 << 19;
const CGROUP: u64 = 1 << 21;
const DATA_PAGE_SIZE: u64 = 1 << 22;
const CODE_PAGE_SIZE: u64 = 1 << 23;
const WEIGHT_STRUCT: u64 = 1 << 24;

/// Shows a sample, of a recording with this sample_type in its perf_event_attr.
fn show(name: &str, sample_type: u64, words: &[u64]) {
    let mut attributes = vec![0; 64];
    attributes[4] = 64; // its size
    attributes[24..32].copy_from_slice(&sample_type.to_le_bytes());
    let (attributes, _) = PerfEventAttr::parse::<_, byteorder::LittleEndian>(&attributes[..]).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let parse_info = RecordParseInfo::new(&attributes, Endianness::LittleEndian);
    let record = RawEventRecord::new(RecordType::SAMPLE, 2, RawData::from(&bytes[..]), parse_info).parse();
    let EventRecord::Sample(sample) = record.unwrap() else { unreachable!() };
    println!("{name}: {:x?} {:?} {:?}", sample.phys_addr, sample.data_page_size, sample.code_page_size);
}

fn main() {
    show("pages", DATA_PAGE_SIZE | CODE_PAGE_SIZE, &[4096, 2_097_152]);
    show("with cgroup 77", CGROUP | DATA_PAGE_SIZE | CODE_PAGE_SIZE, &[77, 4096, 2_097_152]);
    show("with a weight", WEIGHT | DATA_SRC | PHYS_ADDR, &[310, 0x1042, 0x1234_5000]);
    show("with weights", WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR, &[310, 0x1042, 0x1234_5000]);
}
TEXT
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | tee seen
diff seen - <<'SEEN'
pages: None Some(4096) Some(2097152)
with cgroup 77: None Some(77) Some(4096)
with a weight: Some(12345000) None None
with weights: Some(1042) None None
SEEN
