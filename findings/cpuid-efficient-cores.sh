#!/usr/bin/env bash
# cpuid 20230120 (Debian 12, cpuid 20230120-1): the efficient cores of Alder Lake are Golden Cove.
#
# A good guess: a program that reads the type of a core, and names the microarchitecture of Lakefield's efficient cores,
# names that of Alder Lake's, Gracemont, which was a year old; or it names none. Seen: they are Golden Cove, as the
# performance cores are, in the line below "Intel Atom". So are all cores of Alder Lake-N, which has no others. The
# registers are those of public dumps of InstLatX64: of Lakefield, Alder Lake-P and Alder Lake-N (an N95).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack cpuid=20230120-1

# cores SIGNATURE FEATURES TYPE: what it says of an efficient core with this signature, EDX of leaf 7 and leaf 1AH.
cores() {
    cat > dump.txt <<TEXT
CPU 0:
   0x00000000 0x00: eax=0x00000020 ebx=0x756e6547 ecx=0x6c65746e edx=0x49656e69
   0x00000001 0x00: eax=0x$1 ebx=0x00800800 ecx=0x7ffafbbf edx=0xbfebfbff
   0x00000007 0x00: eax=0x00000002 ebx=0x239c27eb ecx=0x98c007bc edx=0x$2
   0x0000001a 0x00: eax=0x$3 ebx=0x00000000 ecx=0x00000000 edx=0x00000000
TEXT
    debian cpuid --file=dump.txt | grep -E 'uarch synth|core type' | sed 's/^ *//'
}
for processor in '000806a1 bc008400 20000000' '000906a2 fc18c410 20000001' '000b06e0 fc184410 20000001'; do
    # shellcheck disable=SC2086
    cores $processor
done | tee seen
diff seen - <<'SEEN'
core type               = Intel Atom
(uarch synth) = Intel Tremont, 10nm
core type               = Intel Atom
(uarch synth) = Intel Golden Cove, Intel 7
core type               = Intel Atom
(uarch synth) = Intel Golden Cove, Intel 7
SEEN
