#!/usr/bin/env bash
# yaxpeax-x86 2.2.0 (a crate): PAUSE is a NOP.
#
# A good guess: F3 90 is PAUSE (SDM Vol. 2B), which takes up to 140 cycles since Skylake (Intel's optimization manual),
# so that an annotated profile of a spin lock has it as its hottest instruction. Seen: it is "nop", in text and opcode,
# the same as 90 and as the NOPs that fill the space between functions. A search for spin loops finds none,
# and most time seems to be spent in an instruction that does nothing. Other instructions that a prefix selects are
# told from those without it: F3 0F BD is LZCNT and not BSR.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" yaxpeax-x86 2.2.0 <<'TEXT'
use yaxpeax_x86::long_mode::InstDecoder;

fn main() {
    let code: [&[u8]; 4] = [&[0x90], &[0xF3, 0x90], &[0x0F, 0xBD, 0xC0], &[0xF3, 0x0F, 0xBD, 0xC0]];
    for bytes in code {
        let instruction = InstDecoder::default().decode_slice(bytes).unwrap();
        println!("{bytes:X?} {instruction} {:?}", instruction.opcode());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
[90] nop NOP
[F3, 90] nop NOP
[F, BD, C0] bsr eax, eax BSR
[F3, F, BD, C0] lzcnt eax, eax LZCNT
SEEN
