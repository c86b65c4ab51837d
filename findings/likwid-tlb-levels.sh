#!/usr/bin/env bash
# likwid 5.2.2 (Debian 12, likwid 5.2.2+dfsg1-1): its "L1 DTLB misses" are those of the first level on AMD, and of all
# levels on Intel.
#
# A good guess: "L1 DTLB load miss rate" counts what the first data TLB does not have. So it is on Zen, where the hits
# and the misses of the second level are added up. Seen: on Intel, from Sandy Bridge to Cascade Lake, the metric is
# MISS_CAUSES_A_WALK alone, in Intel's words "load misses in all DTLB levels that cause page walks". A program whose
# pages fit into the second TLB has a rate of 0 there, and a high one on AMD. The hits of the second level have an event
# (STLB_HIT) in the tables of likwid, which the group does not use.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack likwid=5.2.2+dfsg1-1
for group in zen2/TLB zen3/TLB sandybridge/TLB_DATA haswell/TLB_DATA skylake/TLB_DATA CLX/TLB_DATA; do
    sed -nE "s,^(L1 DTLB (load )?miss rate) = (.*[A-Z)]) ?/ ?(INSTR_RETIRED_ANY|RETIRED_INSTRUCTIONS)$,\1 \3,p" \
        usr/share/likwid/perfgroups/$group.txt | sed "s,^,$group: ,"
done | tee seen
diff seen - <<'SEEN'
zen2/TLB: L1 DTLB miss rate (L1_DTLB_MISS_ANY_L2_HIT+L1_DTLB_MISS_ANY_L2_MISS)
zen3/TLB: L1 DTLB miss rate (L1_DTLB_MISS_ANY_L2_HIT+L1_DTLB_MISS_ANY_L2_MISS)
sandybridge/TLB_DATA: L1 DTLB load miss rate DTLB_LOAD_MISSES_CAUSES_A_WALK
haswell/TLB_DATA: L1 DTLB load miss rate DTLB_LOAD_MISSES_CAUSES_A_WALK
skylake/TLB_DATA: L1 DTLB load miss rate DTLB_LOAD_MISSES_CAUSES_A_WALK
CLX/TLB_DATA: L1 DTLB load miss rate DTLB_LOAD_MISSES_CAUSES_A_WALK
SEEN
