#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): on Ivy Bridge-EP, loads from local DRAM have half of a unit mask, those
# from remote DRAM a whole one.
#
# A good guess: local and remote DRAM are counted alike, as everywhere else: with one bit each on Sandy Bridge-EP and
# Haswell-EP (01 and 04), with two each on Ivy Bridge-EP (03 and 0C), as in Intel's event files and in perf 6.1. Seen:
# Ivy Bridge-EP has 01 and 0C. So the share of remote loads that a program computes from the two names is that of all
# remote loads in them and a part of the local ones.
set -euo pipefail
findings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$findings/packages.sh"
unpack linux-perf=6.1.192-3
{
    for processor in snb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED ivb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED \
        hsw_ep::MEM_LOAD_UOPS_L3_MISS_RETIRED; do
        python3 "$findings/libpfm4.py" $processor:LOCAL_DRAM $processor:REMOTE_DRAM
    done
    # Of the tables with these names, that of Ivy Bridge-EP has the second ones.
    python3 -c 'import re
table = open("usr/bin/perf", "rb").read()
for name in "local_dram", "remote_dram":
    found = re.findall(rb"\0mem_load_uops_llc_miss_retired\.%s\0[^=]*\0event=0xd3,[^\0]*" % name.encode(), table)
    print("perf", name, *sorted({re.search(rb"umask=(\w+)", one)[1].decode() for one in found}))'
} | tee seen
diff seen - <<'SEEN'
snb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED:LOCAL_DRAM d3/01
snb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED:REMOTE_DRAM d3/04
ivb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED:LOCAL_DRAM d3/01
ivb_ep::MEM_LOAD_UOPS_LLC_MISS_RETIRED:REMOTE_DRAM d3/0c
hsw_ep::MEM_LOAD_UOPS_L3_MISS_RETIRED:LOCAL_DRAM d3/01
hsw_ep::MEM_LOAD_UOPS_L3_MISS_RETIRED:REMOTE_DRAM d3/04
perf local_dram 0x1 0x3
perf remote_dram 0x4 0xc
SEEN
