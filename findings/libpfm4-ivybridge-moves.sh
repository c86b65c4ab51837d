#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): Ivy Bridge's eliminated moves are Haswell's moves that were not.
#
# A good guess: the unit masks of MOVE_ELIMINATION (event 58) are the same on Ivy Bridge and on Haswell, as in
# Intel's event files: 01 counts eliminated integer moves, 04 those that were not eliminated. Seen: in libpfm4's
# table of Ivy Bridge the two integer names are exchanged, those of SIMD moves are not. A rate of elimination that a
# program computes from its names is one minus the true rate for integers, and right for SIMD.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" \
    hsw::MOVE_ELIMINATION:INT_ELIMINATED hsw::MOVE_ELIMINATION:INT_NOT_ELIMINATED \
    hsw::MOVE_ELIMINATION:SIMD_ELIMINATED \
    ivb::MOVE_ELIMINATION:INT_ELIMINATED ivb::MOVE_ELIMINATION:INT_NOT_ELIMINATED \
    ivb::MOVE_ELIMINATION:SIMD_ELIMINATED)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
hsw::MOVE_ELIMINATION:INT_ELIMINATED 58/01
hsw::MOVE_ELIMINATION:INT_NOT_ELIMINATED 58/04
hsw::MOVE_ELIMINATION:SIMD_ELIMINATED 58/02
ivb::MOVE_ELIMINATION:INT_ELIMINATED 58/04
ivb::MOVE_ELIMINATION:INT_NOT_ELIMINATED 58/01
ivb::MOVE_ELIMINATION:SIMD_ELIMINATED 58/02
SEEN
