#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): the micro-operations of Sapphire Rapids' microcode sequencer get the
# value of another register as their unit mask.
#
# A good guess: UOPS_RETIRED:MS is C2/04 with the value 8 in MSR_PEBS_FRONTEND (0x3F7), as in Intel's event file, so
# that libpfm4 returns two words, as it does for FRONTEND_RETIRED:MS_FLOWS (C6/01 and 8). Seen: one word, C2/08. The
# 8 of the front end has become the unit mask, and nothing tells the caller that a register is missing.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" \
    spr::FRONTEND_RETIRED:MS_FLOWS spr::UOPS_RETIRED:MS)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
spr::FRONTEND_RETIRED:MS_FLOWS c6/01 8
spr::UOPS_RETIRED:MS c2/08
SEEN
