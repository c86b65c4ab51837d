#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): on Skylake, cycles without retirement are those of a unit mask that
# Skylake lost.
#
# A good guess: UOPS_RETIRED:STALL_CYCLES is the event of retirement slots with a counter mask of 1, inverted, so it has
# its unit mask. On Haswell, that is 01 (ALL). From Skylake on, Intel's event files have 02 (RETIRE_SLOTS, later SLOTS)
# and no 01, and so has Linux 6.1 for STALL_CYCLES and TOTAL_CYCLES. Seen: libpfm4 keeps Haswell's ALL, and takes 01 for
# both counts of cycles, on Skylake and Skylake-X; from Ice Lake on they have 02. An inverted mask counts each cycle in
# which the unit mask counts less, so it shows stalls also if 01 counts nothing.
set -euo pipefail
names=(ALL STALL_CYCLES TOTAL_CYCLES)
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" "${names[@]/#/hsw::UOPS_RETIRED:}" \
    "${names[@]/#/skl::UOPS_RETIRED:}" skl::UOPS_RETIRED:RETIRE_SLOTS skx::UOPS_RETIRED:STALL_CYCLES \
    icl::UOPS_RETIRED:SLOTS icl::UOPS_RETIRED:STALL_CYCLES icl::UOPS_RETIRED:TOTAL_CYCLES)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
hsw::UOPS_RETIRED:ALL c2/01
hsw::UOPS_RETIRED:STALL_CYCLES c2/01
hsw::UOPS_RETIRED:TOTAL_CYCLES c2/01
skl::UOPS_RETIRED:ALL c2/01
skl::UOPS_RETIRED:STALL_CYCLES c2/01
skl::UOPS_RETIRED:TOTAL_CYCLES c2/01
skl::UOPS_RETIRED:RETIRE_SLOTS c2/02
skx::UOPS_RETIRED:STALL_CYCLES c2/01
icl::UOPS_RETIRED:SLOTS c2/02
icl::UOPS_RETIRED:STALL_CYCLES c2/02
icl::UOPS_RETIRED:TOTAL_CYCLES c2/02
SEEN
