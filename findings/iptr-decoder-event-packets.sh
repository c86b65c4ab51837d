#!/usr/bin/env bash
# iptr-decoder 0.1.3 (a crate): in a trace of Intel PT, an interrupt ends the trace, and its vector is branches.
#
# A good guess: a Control Flow Event Packet has four bytes: two of header, the type with the bit IP, and the vector (SDM
# Vol. 3C, Intel PT, packet definitions, CFE; Linux, intel-pt-pkt-decoder.c). Event tracing writes one for each
# interrupt, exception and return from them, on Alder Lake and Sapphire Rapids. Seen: two bytes are taken off, and the
# type and the bit are taken from the header, so each event has the type 13h. Then type and vector are decoded as
# packets. The type of an interrupt, 01h, is a TIP.PGD without an address, that is, the end of the trace; vector 2Eh is
# four branches.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" iptr-decoder 0.1.3 <<'TEXT'
use iptr_decoder::{DecodeOptions, DecoderContext, HandlePacket, IpReconstructionPattern, decode};
use std::{convert::Infallible, num::NonZero};

struct Printer;

impl HandlePacket for Printer {
    type Error = Infallible;
    fn at_decode_begin(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn on_cfe_packet(&mut self, _: &DecoderContext, ip: bool, kind: u8, vector: u8) -> Result<(), Infallible> {
        println!("CFE, IP {ip}, type {kind:#x}, vector {vector:#x}");
        Ok(())
    }
    fn on_tip_pgd_packet(&mut self, _: &DecoderContext, ip: IpReconstructionPattern) -> Result<(), Infallible> {
        println!("TIP.PGD {ip:?}");
        Ok(())
    }
    fn on_short_tnt_packet(&mut self, _: &DecoderContext, bits: NonZero<u8>, highest: u32) -> Result<(), Infallible> {
        println!("TNT {bits:08b}, {} branches", highest);
        Ok(())
    }
    fn on_psbend_packet(&mut self, _: &DecoderContext) -> Result<(), Infallible> {
        println!("PSBEND");
        Ok(())
    }
}

fn main() {
    let mut trace = [0x02, 0x82].repeat(8); // PSB
    trace.extend([0x02, 0x23]); // PSBEND
    trace.extend([0x02, 0x13, 0x01, 0x2E]); // CFE: an interrupt, vector 2Eh
    trace.extend([0x02, 0x23]); // PSBEND, to see that the decoder is back in step
    decode(&trace, DecodeOptions::default(), &mut Printer).unwrap();
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
PSBEND
CFE, IP false, type 0x13, vector 0x2e
TIP.PGD OutOfContext
TNT 00101110, 4 branches
PSBEND
SEEN
