#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): names of the top-down method share the encodings of other events.
#
# A good guess: TOPDOWN:BACKEND_BOUND_SLOTS of Ice Lake and TOPDOWN:BAD_SPEC_SLOTS of Sapphire Rapids are events of
# general counters (A4/02 and A4/04 in Intel's event files), as TOPDOWN:SLOTS_P (A4/01) is. Seen: both have event
# select 00, whose unit mask is how Intel's files and Linux write a fixed counter. Ice Lake's back-end slots are then
# 00/02, core cycles, and Sapphire Rapids' bad speculation is 00/04: to the bit the encoding of all slots, so that
# its share is always 100 %.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" \
    icl::TOPDOWN:SLOTS_P icl::TOPDOWN:BACKEND_BOUND_SLOTS \
    spr::TOPDOWN:SLOTS_P spr::TOPDOWN:SLOTS spr::TOPDOWN:BAD_SPEC_SLOTS)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
icl::TOPDOWN:SLOTS_P a4/01
icl::TOPDOWN:BACKEND_BOUND_SLOTS 00/02
spr::TOPDOWN:SLOTS_P a4/01
spr::TOPDOWN:SLOTS 00/04
spr::TOPDOWN:BAD_SPEC_SLOTS 00/04
SEEN
