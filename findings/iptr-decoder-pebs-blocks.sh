#!/usr/bin/env bash
# iptr-decoder 0.1.3 (a crate): in a trace of Intel PT, the values of PEBS have half of their size.
#
# A good guess: the bit SZ of a Block Begin Packet is 0 for items of eight bytes, as PEBS writes them, and 1 for items
# of four (SDM Vol. 3C, Intel PT, packet definitions, BBP; Linux, intel-pt-pkt-decoder.c). Seen: the crate has them the
# other way round. Of a PEBS record, the instruction pointer of a program below 4 GiB has four bytes, and the other four
# are read as padding. Of one above, as of all programs of 64-bit Windows, the upper half is an invalid packet.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" iptr-decoder 0.1.3 <<'TEXT'
use iptr_decoder::{DecodeOptions, DecoderContext, HandlePacket, decode};
use std::convert::Infallible;

struct Printer;

impl HandlePacket for Printer {
    type Error = Infallible;
    fn at_decode_begin(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn on_bip_packet(&mut self, _: &DecoderContext, id: u8, payload: &[u8], block: u8) -> Result<(), Infallible> {
        println!("  block {block}, item {id}: {payload:02x?}");
        Ok(())
    }
    fn on_pad_packet(&mut self, _: &DecoderContext) -> Result<(), Infallible> {
        println!("  PAD");
        Ok(())
    }
    fn on_bep_packet(&mut self, _: &DecoderContext, _: bool) -> Result<(), Infallible> {
        println!("  end of block");
        Ok(())
    }
}

/// Decodes a block of the basic information of PEBS, with the instruction pointer and the counter of the record.
fn block(ip: u64) {
    let mut trace = [0x02, 0x82].repeat(8); // PSB
    trace.extend([0x02, 0x63, 4]); // BBP, SZ = 0
    for (item, value) in [ip, 1].iter().enumerate() {
        trace.push((item as u8) << 3 | 0b100);
        trace.extend(value.to_le_bytes());
    }
    trace.extend([0x02, 0x33]); // BEP
    println!("{ip:#x}:");
    if let Err(error) = decode(&trace, DecodeOptions::default(), &mut Printer) {
        println!("  {error}");
    }
}

fn main() {
    block(0x40_1136);
    block(0x7FF6_1234_5678);
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
0x401136:
  block 4, item 0: [36, 11, 40, 00]
  PAD
  PAD
  PAD
  PAD
  block 4, item 1: [01, 00, 00, 00]
  PAD
  PAD
  PAD
  PAD
  end of block
0x7ff612345678:
  block 4, item 0: [78, 56, 34, 12]
  Invalid packet
SEEN
