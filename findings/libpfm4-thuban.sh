#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4-dev 4.13.0-1): the last processors of K10 have the events of the first.
#
# A good guess: a Phenom II X6 (Thuban, family 10h, model 0Ah, of 2010) has the events of Istanbul (model 08h), its
# predecessor with six cores, or at least those of Shanghai (model 04h) and of every Phenom II with four cores. Seen: it
# counts as Barcelona, the first of the family, of 2007, as every model does that is not in the list. Names that came
# with Shanghai are unknown on it, and so in PAPI.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack qemu-user=1:7.2+dfsg-7+deb12u18+b3 libpfm4-dev=4.13.0-1 libcapstone4 libglib2.0-0 \
    libgnutls30 libnuma1 liburing2 libpcre2-8-0 libp11-kit0 libidn2-0 libunistring2 libtasn1-6 libnettle8 libhogweed6 \
    libgmp10 libffi8 zlib1g
cat > present.c <<'TEXT'
#include <perfmon/pfmlib.h>
#include <stdio.h>

int main(void) {
  pfm_initialize();
  for (int pmu = 0; pmu < PFM_PMU_MAX; pmu++) {
    pfm_pmu_info_t info = {.size = sizeof info};
    if (pfm_get_pmu_info(pmu, &info) == PFM_SUCCESS && info.is_present && info.type == PFM_PMU_TYPE_CORE &&
        info.pmu != PFM_PMU_PERF_EVENT_RAW)
      printf("%s, %d events", info.name, info.nevents);
  }
  printf(", RETIRED_X87_OPS is %s\n", pfm_find_event("RETIRED_X87_OPS") < 0 ? "unknown" : "known");
}
TEXT
cc -static -I usr/include -o present present.c usr/lib/x86_64-linux-gnu/libpfm.a
libraries="$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu"
for model in 2 4 8 10; do
    echo "model $model: $(LD_LIBRARY_PATH=$libraries usr/bin/qemu-x86_64 -cpu "phenom,family=16,model=$model" \
        ./present 2>/dev/null)"
done | tee seen
diff seen - <<'SEEN'
model 2: amd64_fam10h_barcelona, 116 events, RETIRED_X87_OPS is unknown
model 4: amd64_fam10h_shanghai, 122 events, RETIRED_X87_OPS is known
model 8: amd64_fam10h_istanbul, 123 events, RETIRED_X87_OPS is known
model 10: amd64_fam10h_barcelona, 116 events, RETIRED_X87_OPS is unknown
SEEN
