#!/usr/bin/env bash
# PAPI 7.0.0 (Debian 12, libpapi7.0 7.0.0-2) with libpfm4 4.13.0: on Skylake and its successors, the writes to the L2
# cache are its hits, twice.
#
# A good guess: PAPI_L2_DCW is the sum of the stores that hit L2 and of those that miss, as on Haswell, where one event
# counts both. Seen: it adds DEMAND_RFO_HIT and RFO_HIT. libpfm4 has both names for one encoding (24/C2), so that the
# sum is twice the number of hits, and a store that misses counts nothing. PAPI_L2_TCW is the same. The event of all of
# them would be 24/E2, which PAPI has as the misses of L1.
set -euo pipefail
findings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$findings/packages.sh"
unpack libpapi7.0=7.0.0-2
# The presets behind the last list of processors with Skylake.
awk '/^CPU,/ { if (!listed) wanted = 0; listed = 1; wanted += $0 == "CPU,skl" } !/^CPU,/ { listed = 0 } wanted' \
    usr/share/papi/7.0/papi_events.csv | grep -E '^PRESET,PAPI_(L2_DCW|L2_TCW|L1_STM),' > presets
{
    cat presets
    for processor in skl skx; do
        sed 's/^[^,]*,[^,]*,[^,]*,//; s/,/\n/g' presets | sort -u | sed "s/^/$processor::/"
    done | xargs python3 "$findings/libpfm4.py"
} | tee seen
diff seen - <<'SEEN'
PRESET,PAPI_L1_STM,NOT_DERIVED,L2_RQSTS:ALL_RFO
PRESET,PAPI_L2_DCW,DERIVED_ADD,L2_RQSTS:DEMAND_RFO_HIT,L2_RQSTS:RFO_HIT
PRESET,PAPI_L2_TCW,DERIVED_ADD,L2_RQSTS:DEMAND_RFO_HIT,L2_RQSTS:RFO_HIT
skl::L2_RQSTS:ALL_RFO 24/e2
skl::L2_RQSTS:DEMAND_RFO_HIT 24/c2
skl::L2_RQSTS:RFO_HIT 24/c2
skx::L2_RQSTS:ALL_RFO 24/e2
skx::L2_RQSTS:DEMAND_RFO_HIT 24/c2
skx::L2_RQSTS:RFO_HIT 24/c2
SEEN
