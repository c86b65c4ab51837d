#!/usr/bin/env bash
# hwloc 2.9.0 (Debian 12, hwloc-nox 2.9.0-1): by CPUID, a Threadripper 2990WX has 8 cores of 8 threads, and not 32 of 2.
#
# A good guess: the numbers of node and core in leaf 8000001EH together make a core. An EPYC 7551P, with four dies of
# the same kind, numbers its cores from one node to the next, and hwloc finds each of them. Seen: in the 2990WX each
# of the four nodes begins with core 0, and hwloc makes one core of the four that have one number. The L2 caches stay
# apart, four in each "core". The leaves below are from the public dump of InstLatX64: both threads of the first cores
# of nodes 0 and 2.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack hwloc-nox=2.9.0-1 libhwloc15=2.9.0-1 libltdl7 libudev1 libtinfo6

# cores NAME NUMBER...: what hwloc finds if the second pair of processors has this in 8000001EH: EBX and ECX.
cores() {
    mkdir machine
    echo 'Architecture: x86' > machine/hwloc-cpuid-info
    for processor in 0 1 2 3; do
        number=$(printf %02x $((processor < 2 ? processor : processor + 14)))
        core='100 300'
        if [ $processor -ge 2 ]; then core="$1 $2"; fi
        cat > machine/pu$processor <<TEXT
1 0 0 0 0 => d 68747541 444d4163 69746e65
1 1 0 0 0 => 800f82 ${number}400800 7ed8320b 178bfbff
1 80000000 0 0 0 => 8000001f 68747541 444d4163 69746e65
1 80000001 0 0 0 => 800f82 70000000 35c233ff 2fd3fbff
1 80000008 0 0 0 => 3030 1007 603f 0
1 8000001e 0 0 0 => $number $core 0
5 8000001d 0 0 0 => 0 0 0 0
TEXT
    done
    export HWLOC_COMPONENTS=-linux,x86 HWLOC_CPUID_PATH=$PWD/machine
    debian lstopo-no-graphics --of console --no-io 2>/dev/null | grep -oE '(Core|PU) L#' | sort | uniq -c
    rm -r machine
}
{
    echo 'core 0 of node 2 (a 2990WX):'
    cores 100 302
    echo 'core 8 of node 2 (as in an EPYC):'
    cores 108 302
} | tee seen
diff seen - <<'SEEN'
core 0 of node 2 (a 2990WX):
      1 Core L#
      4 PU L#
core 8 of node 2 (as in an EPYC):
      2 Core L#
      4 PU L#
SEEN
