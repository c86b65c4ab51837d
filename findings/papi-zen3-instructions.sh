#!/usr/bin/env bash
# PAPI 7.0.0 (Debian 12, libpapi7.0 7.0.0-2) with libpfm4 4.13.0: on Zen 3, floating-point instructions, vector
# instructions and floating-point operations are one count.
#
# A good guess: PAPI_FP_INS and PAPI_VEC_INS count instructions, as their descriptions say and as on Zen 2, where
# PAPI_FP_INS is the event for retired MMX and FP instructions (CB). Seen: both are RETIRED_SSE_AVX_FLOPS:ANY (03/0F),
# to the bit PAPI_FP_OPS. A multiplication and addition of four doubles counts eight for one instruction, moves and
# integer vectors count nothing, and operations per instruction are always 1. PAPI_FML_INS, PAPI_FAD_INS, PAPI_FDV_INS
# and PAPI_FSQ_INS are unit masks of the same event, the last two of them one.
set -euo pipefail
findings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$findings/packages.sh"
unpack libpapi7.0=7.0.0-2
{
    for processor in amd64_fam17h_zen2 amd64_fam19h_zen3; do
        awk -v line="CPU,$processor" '/^CPU,/ { wanted = $0 == line } wanted' usr/share/papi/7.0/papi_events.csv |
            grep -E '^PRESET,PAPI_(FP_OPS|FP_INS|VEC_INS|F.._INS),NOT_DERIVED,' | cut -d, -f2,4 > presets
        paste -d' ' <(cut -d, -f1 presets) \
            <(cut -d, -f2 presets | sed "s/^/$processor::/" | xargs python3 "$findings/libpfm4.py")
    done
} | tee seen
diff seen - <<'SEEN'
PAPI_FP_OPS amd64_fam17h_zen2::RETIRED_SSE_AVX_FLOPS:ANY 03/0f
PAPI_FP_INS amd64_fam17h_zen2::RETIRED_MMX_FP_INSTRUCTIONS:SSE_INSTR:MMX_INSTR:X87_INSTR cb/07
PAPI_VEC_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY 03/0f
PAPI_FP_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY 03/0f
PAPI_FP_OPS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY 03/0f
PAPI_FML_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:MULT_FLOPS 03/02
PAPI_FAD_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ADD_SUB_FLOPS 03/01
PAPI_FDV_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:DIV_FLOPS 03/04
PAPI_FSQ_INS amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:DIV_FLOPS 03/04
SEEN
