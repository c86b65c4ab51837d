#!/usr/bin/env bash
# yaxpeax-x86 2.2.0 (a crate): the scalar forms of VFMADD213 and VFMSUB213 are shown as those of 231.
#
# A good guess: the digits say which operands are multiplied, 213 the second and the first, 231 the second and the
# third. Opcodes A9 and AB have the first, B9 and BB the second (SDM Vol. 2C), as packed A8 and AA, B8 and BA have.
# Seen: A9 and B9 have one name, and AB and BB; the packed forms have two. A loop that multiplies its sum reads as one
# that adds to it. iced-x86 1.21.0 has all of them; of the 3.9 million instructions of numpy's OpenBLAS for Windows, 94
# are shown so.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" yaxpeax-x86 2.2.0 <<'TEXT'
use yaxpeax_x86::long_mode::InstDecoder;

fn main() {
    // xmm0, xmm1, xmm2, with VEX.W 0 and 1.
    for opcode in [0xA8, 0xB8, 0xA9, 0xB9, 0xAA, 0xBA, 0xAB, 0xBB] {
        let [single, double] = [0x71, 0xF1].map(|w| {
            InstDecoder::default().decode_slice(&[0xC4, 0xE2, w, opcode, 0xC2]).unwrap().to_string()
        });
        println!("{opcode:X}: {single}; {double}");
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
A8: vfmadd213ps xmm0, xmm1, xmm2; vfmadd213pd xmm0, xmm1, xmm2
B8: vfmadd231ps xmm0, xmm1, xmm2; vfmadd231pd xmm0, xmm1, xmm2
A9: vfmadd231ss xmm0, xmm1, xmm2; vfmadd231sd xmm0, xmm1, xmm2
B9: vfmadd231ss xmm0, xmm1, xmm2; vfmadd231sd xmm0, xmm1, xmm2
AA: vfmsub213ps xmm0, xmm1, xmm2; vfmsub213pd xmm0, xmm1, xmm2
BA: vfmsub231ps xmm0, xmm1, xmm2; vfmsub231pd xmm0, xmm1, xmm2
AB: vfmsub231ss xmm0, xmm1, xmm2; vfmsub231sd xmm0, xmm1, xmm2
BB: vfmsub231ss xmm0, xmm1, xmm2; vfmsub231sd xmm0, xmm1, xmm2
SEEN
