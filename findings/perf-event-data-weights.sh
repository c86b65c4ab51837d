#!/usr/bin/env bash
# perf-event-data 0.1.8 (a crate): where a load came from is how long it took.
#
# A good guess: PERF_SAMPLE_WEIGHT_STRUCT is a word at the place of PERF_SAMPLE_WEIGHT, of which a kernel from 5.12 on
# writes one or the other (perf_event_open(2)); on x86, perf mem and perf record -W ask for the first. Both are flags of
# the crate.
# Seen: it reads a word for PERF_SAMPLE_WEIGHT only. With the other, each field behind it is the one before: the data
# source is the weight, and the physical address the data source. Nothing says that eight bytes are left over. A load
# from local DRAM that took 310 cycles becomes a load, a store and a fetch in one, from the L1 cache.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'perf-event-data = "=0.1.8"' 'perf-event-open-sys2 = "=5.0.6"'
cat > src/main.rs <<'TEXT'
use perf_event_data::endian::Little;
use perf_event_data::parse::{ParseConfig, Parser};
use perf_event_data::{Sample, SampleFlags};
use perf_event_open_sys::bindings::perf_event_attr;

fn main() {
    // Address, weight, data source and physical address. The source: a load (2), and a hit (2) in local DRAM (80h).
    let words: [u64; 4] = [0x7F00_1234_5678, 310, 0x2 | 0x82 << 5, 0x1_2345_6000];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for weight in [SampleFlags::WEIGHT, SampleFlags::WEIGHT_STRUCT] {
        let wanted = SampleFlags::ADDR | weight | SampleFlags::DATA_SRC | SampleFlags::PHYS_ADDR;
        let mut attributes = perf_event_attr::default();
        attributes.sample_type = wanted.bits();
        let sample: Sample = Parser::new(&bytes[..], ParseConfig::<Little>::from(attributes)).parse().unwrap();
        let source = sample.data_src().unwrap();
        println!("{weight:?}: weight {:?}", sample.weight());
        println!("  {:?} {:?}, physical {:#x}", source.mem_op(), source.mem_lvl(), sample.phys_addr().unwrap());
    }
}
TEXT
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | tee seen
diff seen - <<'SEEN'
SampleFlags(WEIGHT): weight Some(310)
  MemOp(LOAD) MemLevel(HIT | LOC_RAM), physical 0x123456000
SampleFlags(WEIGHT_STRUCT): weight None
  MemOp(LOAD | STORE | EXEC) MemLevel(NA | L1), physical 0x1042
SEEN
