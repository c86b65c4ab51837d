#!/usr/bin/env bash
# perf 6.1 (Debian 12, linux-perf 6.1.192-3): on Zen, its metric of ITLB misses leaves out those of the second level.
#
# A good guess: l1_itlb_misses adds up the misses that the second level has and those that it does not have, so it is at
# least l2_itlb_misses. Seen: its second term, bp_l1_tlb_miss_l2_miss, is event 85 without a unit mask. The event of Zen
# has three, for pages of 4 KiB, 2 MiB and 1 GiB, so the term selects none of them; l2_itlb_misses, of the same table,
# has all (07), and libpfm4 has them one by one. A program that misses both levels looks as if it missed none.
set -euo pipefail
findings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$findings/packages.sh"
unpack linux-perf=6.1.192-3 libopencsd1 libelf1 libdw1 libunwind8 liblzma5 libslang2 libperl5.36 libpython3.11 zlib1g \
    libzstd1 libcap2 libnuma1 libbabeltrace1 libbz2-1.0 libcrypt1 libexpat1 libuuid1 libglib2.0-0 libpcre2-8-0
{
    PERF_CPUID=AuthenticAMD-23-1-0 debian perf list --details metric 2>/dev/null | grep -A2 l1_itlb_misses | grep '+'
    # The program has no event to list on a machine with another PMU, so this reads its tables.
    python3 -c 'import re, sys
table = open("usr/bin/perf", "rb").read()
for name in "bp_l1_tlb_miss_l2_miss", "l2_itlb_misses":
    print(name, *{text.decode() for text in re.findall(rb"\0%s\0[^=]*\0(event=[^\0]*)" % name.encode(), table)})'
    python3 "$findings/libpfm4.py" amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF4K \
        amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF2M amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF1G
} | tee seen
diff seen - <<'SEEN'
       [bp_l1_tlb_miss_l2_hit + bp_l1_tlb_miss_l2_miss]
bp_l1_tlb_miss_l2_miss event=0x85
l2_itlb_misses event=0x85,umask=0x07
amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF4K 85/01
amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF2M 85/02
amd64_fam17h_zen1::L1_ITLB_MISS_L2_ITLB_MISS:IF1G 85/04
SEEN
