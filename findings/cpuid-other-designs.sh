#!/usr/bin/env bash
# cpuid 20230120 (Debian 12, cpuid 20230120-1): a K5 is a K6, a Pentium Pro a Pentium II, and an Isaiah a C7.
#
# A good guess: the microarchitecture that it derives from a signature is that of the processor, or an earlier one of
# the same design. Seen: all processors of a family of CPUID share one name. AMD's K5 was AMD's own design, the K6 came
# from NexGen. VIA's Isaiah (Nano) was VIA's first core with out-of-order execution and 64 bits, the C7 was the last
# without them; the name of the product, beside it, is right. The signatures are those of public dumps of InstLatX64.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack cpuid=20230120-1

# names EBX ECX EDX SIGNATURE: what it says of the vendor in these registers, and this EAX of leaf 1.
names() {
    cat > dump.txt <<TEXT
CPU 0:
   0x00000000 0x00: eax=0x00000001 ebx=0x$1 ecx=0x$2 edx=0x$3
   0x00000001 0x00: eax=0x$4 ebx=0x00000000 ecx=0x00000000 edx=0x00000000
TEXT
    debian cpuid --file=dump.txt | sed -nE 's/^ *\((uarch )?synth\) *= //p' | paste -sd'|'
}
{
    names 68747541 444d4163 69746e65 00000501
    names 68747541 444d4163 69746e65 00000562
    names 756e6547 6c65746e 49656e69 00000619
    names 746e6543 736c7561 48727561 000006a9
    names 746e6543 736c7561 48727561 000006f2
} | tee seen
diff seen - <<'SEEN'
AMD K6|AMD SSA5 (PR75, PR90, PR100) [K6]
AMD K6, .30um|AMD K6 [K6], .30um
Intel {P6 Pentium II}|Intel Pentium Pro (sB1), .35um {P6 Pentium II}
VIA C7, 90nm|VIA C7 / C7-M / C7-D / Eden (Esther C5J Model A) [C7], 90nm
VIA C7|VIA Nano 1000/2000 (Isaiah CNA A2) [C7]
SEEN
