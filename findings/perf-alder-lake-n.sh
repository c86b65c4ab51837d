#!/usr/bin/env bash
# perf 6.1 (Debian 12, linux-perf 6.1.192-3): on Alder Lake-N, which has efficient cores alone, most metrics are those
# of performance cores.
#
# A good guess: for a Core i3-N305 or N100 (family 6, model BE) perf lists metrics of cpu_atom only, as Intel has
# tables of their own for these processors. Seen: the list is that of Alder Lake with both kinds of cores, and 170 of
# its metrics have the unit cpu_core. They need events and slots that no core of the machine counts.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack linux-perf=6.1.192-3 libopencsd1 libelf1 libdw1 libunwind8 liblzma5 libslang2 libperl5.36 libpython3.11 zlib1g \
    libzstd1 libcap2 libnuma1 libbabeltrace1 libbz2-1.0 libcrypt1 libexpat1 libuuid1 libglib2.0-0 libpcre2-8-0
metrics() { PERF_CPUID=$1 debian perf list --details metric 2>/dev/null; }
metrics GenuineIntel-6-97-2 > both
metrics GenuineIntel-6-BE-0 > efficient
{
    for unit in cpu_core cpu_atom; do echo "$unit: $(grep -c "Unit: $unit " efficient)"; done
    cmp both efficient && echo "the same list as that of a Core i9-12900K"
} | tee seen
diff seen - <<'SEEN'
cpu_core: 170
cpu_atom: 81
the same list as that of a Core i9-12900K
SEEN
