#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): on Ice Lake, the loads of uncacheable memory are asked of the event of
# branches.
#
# A good guess: MEM_LOAD_MISC_RETIRED:UC is D4/04 on every processor that has it, as in Intel's event files for Ice Lake
# and Sapphire Rapids, beside the D0 to D3 of other loads. Seen: the tables of Ice Lake's clients and servers have C4,
# which is BR_INST_RETIRED, with a unit mask that Intel lists for no branch there. Sapphire Rapids' table has D4. A zero
# looks like a program without uncacheable loads.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" \
    icl::MEM_LOAD_MISC_RETIRED:UC icl::BR_INST_RETIRED:COND_TAKEN icl::MEM_LOAD_RETIRED:L3_MISS \
    icx::MEM_LOAD_MISC_RETIRED:UC spr::MEM_LOAD_MISC_RETIRED:UC)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
icl::MEM_LOAD_MISC_RETIRED:UC c4/04
icl::BR_INST_RETIRED:COND_TAKEN c4/01
icl::MEM_LOAD_RETIRED:L3_MISS d1/20
icx::MEM_LOAD_MISC_RETIRED:UC c4/04
spr::MEM_LOAD_MISC_RETIRED:UC d4/04
SEEN
