#!/usr/bin/env bash
# PAPI 7.0.0 (Debian 12, libpapi7.0 7.0.0-2): its vector instructions contain the scalar ones, or are operations.
#
# A good guess: PAPI_VEC_DP, "double precision vector/SIMD instructions", is a sum of packed instructions, and
# PAPI_VEC_SP too; so PAPI_VEC_DP is 0 for code that was not vectorized. Seen: from Broadwell to Ice Lake the sum has
# FP_ARITH:SCALAR_DOUBLE as a term of its own, and PAPI_VEC_SP the scalar event of its precision. On Sandy Bridge and
# Ivy Bridge the terms are packed, but multiplied by their elements: those are operations, two or four for an
# instruction. The share of vector instructions in all has no meaning on either.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack libpapi7.0=7.0.0-2
awk -F, '
    # Lines of CPU without another between them share what follows.
    $1 == "CPU" { cpus = last == "CPU" ? cpus " " $2 : $2 }
    $2 == "PAPI_VEC_DP" && cpus ~ /^(snb|bdw|skl|icx)/ {
        terms = ""
        for (field = 5; field <= NF; field++) {
            sub("FP_ARITH:", "", $field)
            terms = terms " " $field
        }
        print cpus ": " $4 " of" terms
    }
    NF { last = $1 }' usr/share/papi/7.0/papi_events.csv | tee seen
diff seen - <<'SEEN'
snb snb_ep ivb ivb_ep: N0|2|*|N1|4|*|+| of FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE SIMD_FP_256:PACKED_DOUBLE
bdw bdw_ep: N0|N1|N2|+|+| of SCALAR_DOUBLE 128B_PACKED_DOUBLE 256B_PACKED_DOUBLE
skl skx clx: N0|N1|N2|N3|+|+|+| of SCALAR_DOUBLE 128B_PACKED_DOUBLE 256B_PACKED_DOUBLE 512B_PACKED_DOUBLE
icx: N0|N1|N2|N3|+|+|+| of SCALAR_DOUBLE 128B_PACKED_DOUBLE 256B_PACKED_DOUBLE 512B_PACKED_DOUBLE
SEEN
