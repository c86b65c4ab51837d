#!/usr/bin/env bash
# cpuid 20230120 (Debian 12, cpuid 20230120-1): of the processors before Ice Lake it says that they support no fixed
# counter.
#
# A good guess: "fixed counter 0 supported" is true on Skylake, which counts instructions with it. A fixed counter
# exists if its bit in ECX of leaf 0xA is set, or if its number is below EDX[4:0] (SDM Vol. 3B, the definition of
# fixed-function counters of version 5). Before version 5, ECX is 0. Seen: the program looks at ECX alone, and prints
# "false" for each counter beside the right number of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack cpuid=20230120-1
# The leaf of a processor before version 5 of the monitoring, and of one with it, which have three fixed counters.
for values in "eax=0x07300404 ebx=0x00000000 ecx=0x00000000 edx=0x00000603" \
    "eax=0x07300605 ebx=0x00000000 ecx=0x00000007 edx=0x00008603"; do
    cat > leaves <<TEXT
CPU 0:
   0x00000000 0x00: eax=0x00000016 ebx=0x756e6547 ecx=0x6c65746e edx=0x49656e69
   0x0000000a 0x00: $values
TEXT
    debian cpuid -f leaves | grep -E 'version ID|fixed counter +[0-3] |number of .*fixed' | sed -E 's/ +/ /g'
done | tee seen
diff seen - <<'SEEN'
 version ID = 0x4 (4)
 fixed counter 0 supported = false
 fixed counter 1 supported = false
 fixed counter 2 supported = false
 fixed counter 3 supported = false
 number of contiguous fixed counters = 0x3 (3)
 version ID = 0x5 (5)
 fixed counter 0 supported = true
 fixed counter 1 supported = true
 fixed counter 2 supported = true
 fixed counter 3 supported = false
 number of contiguous fixed counters = 0x3 (3)
SEEN
