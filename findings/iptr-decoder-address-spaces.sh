#!/usr/bin/env bash
# iptr-decoder 0.1.3 (a crate): in a trace of Intel PT, the page tables of a process are at twice their address.
#
# A good guess: on_pip_packet() has the CR3 that the processor wrote, and on_mwait_packet() the hints and the extensions
# of the instruction. A PIP has CR3[51:5] above a bit for non-root operation, so bit 1 of its payload is bit 5 of CR3;
# an MWAIT packet has the hints in byte 2 and the extensions in byte 6 (SDM Vol. 3C, Intel PT, packet definitions; so
# does libipt read them). Seen: the payload is shifted by one bit too many, so no CR3 is that of a process of the
# system. The extensions are the low bits of the hints: a wait with hints 20h that interrupts end has none, and one with
# hints 01h has them.
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
    fn on_pip_packet(&mut self, _: &DecoderContext, cr3: u64, non_root: bool) -> Result<(), Infallible> {
        println!("PIP: CR3 {cr3:#x}, non-root {non_root}");
        Ok(())
    }
    fn on_mwait_packet(&mut self, _: &DecoderContext, hints: u8, extensions: u8) -> Result<(), Infallible> {
        println!("MWAIT: hints {hints:#x}, extensions {extensions}");
        Ok(())
    }
}

fn main() {
    let mut trace = [0x02, 0x82].repeat(8); // PSB
    for (cr3, non_root) in [(0x1AD000_u64, 0), (0x1_2345_6000, 1)] {
        trace.extend([0x02, 0x43]);
        trace.extend(&((cr3 >> 5) << 1 | non_root).to_le_bytes()[..6]);
    }
    for (hints, extensions) in [(0x20, 1), (0x01, 0)] {
        trace.extend([0x02, 0xC2, hints, 0, 0, 0, extensions, 0, 0, 0]);
    }
    decode(&trace, DecodeOptions::default(), &mut Printer).unwrap();
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
PIP: CR3 0x35a000, non-root false
PIP: CR3 0x2468ac000, non-root true
MWAIT: hints 0x20, extensions 0
MWAIT: hints 0x1, extensions 1
SEEN
