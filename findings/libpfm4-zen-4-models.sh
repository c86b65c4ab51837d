#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4-dev 4.13.0-1): it has the events of Zen 4, and finds them on one model only.
#
# A good guess: with a table of Zen 4, which is for EPYC and Ryzen alike, each Zen 4 of family 19h is recognized, as
# each Zen 3 is. Seen: model 11h alone (Genoa) is a Zen 4. Storm Peak (18h), Raphael (61h), Phoenix (74h, 78h) and
# Bergamo (A0h) have no core PMU at all, so a name with or without the prefix of Zen 4 is refused there, and PAPI has
# no events. The models are those of public dumps of InstLatX64; an emulator gives them to the library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack qemu-user=1:7.2+dfsg-7+deb12u18+b3 libpfm4-dev=4.13.0-1 libcapstone4 libgnutls30 liburing2 libp11-kit0 \
    libidn2-0 libunistring2 libtasn1-6 libnettle8 libhogweed6 libgmp10 libffi8 libglib2.0-0 libpcre2-8-0 zlib1g libzstd1
cat > present.c <<'TEXT'
#include <perfmon/pfmlib.h>
#include <stdio.h>

int main(void) {
  pfm_initialize();
  int found = 0;
  for (int pmu = 0; pmu < PFM_PMU_MAX; pmu++) {
    pfm_pmu_info_t info = {.size = sizeof info};
    if (pfm_get_pmu_info(pmu, &info) == PFM_SUCCESS && info.is_present && info.type == PFM_PMU_TYPE_CORE)
      found += printf(" %s", info.name);
  }
  puts(found ? "" : " nothing");
}
TEXT
cc -static -I usr/include -o present present.c usr/lib/x86_64-linux-gnu/libpfm.a
for model in 01:Milan 21:Vermeer 44:Rembrandt 50:Cezanne 11:Genoa 18:StormPeak 61:Raphael 74:Phoenix 78:Phoenix2 \
    A0:Bergamo; do
    echo "$model$(debian qemu-x86_64 -cpu "EPYC,family=25,model=$((16#${model%:*}))" ./present 2>/dev/null)"
done | tee seen
diff seen - <<'SEEN'
01:Milan amd64_fam19h_zen3
21:Vermeer amd64_fam19h_zen3
44:Rembrandt amd64_fam19h_zen3
50:Cezanne amd64_fam19h_zen3
11:Genoa amd64_fam19h_zen4
18:StormPeak nothing
61:Raphael nothing
74:Phoenix nothing
78:Phoenix2 nothing
A0:Bergamo nothing
SEEN
