#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4-dev 4.13.0-1): an Ice Lake-D server has the offcore responses of a laptop.
#
# A good guess: the Xeon D-1700 and D-2700 (family 6, model 6Ch) have the table of Ice Lake servers, as in Intel's
# mapfile.csv and in Linux, where model 6Ch is with 6Ah. Seen: libpfm4 takes 6Ch for a client. Most names are the same,
# so nothing is refused: a demand read from local DRAM writes 184000001 to the register of offcore responses and not
# 104000001, and an L3 miss 3FFFC00001 and not 3FBFC00001. Names that the server's table alone has are errors. The model
# is that of a public dump of InstLatX64; an emulator gives it to the library.
set -euo pipefail
findings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$findings/packages.sh"
unpack qemu-user=1:7.2+dfsg-7+deb12u18+b3 libpfm4-dev=4.13.0-1 libcapstone4 libgnutls30 liburing2 libp11-kit0 \
    libidn2-0 libunistring2 libtasn1-6 libnettle8 libhogweed6 libgmp10 libffi8 libglib2.0-0 libpcre2-8-0 zlib1g libzstd1
cat > words.c <<'TEXT'
#include <perfmon/pfmlib.h>
#include <stdio.h>

int main(int count, char **names) {
  pfm_initialize();
  for (int at = 1; at < count; at++) {
    pfm_pmu_encode_arg_t raw = {.size = sizeof raw};
    int error = pfm_get_os_event_encoding(names[at], PFM_PLM3, PFM_OS_NONE, &raw);
    if (error) printf("%s: %s\n", names[at], pfm_strerror(error));
    else printf("%s: %llx\n", names[at], (unsigned long long)raw.codes[1]);
  }
}
TEXT
cc -static -I usr/include -o words words.c usr/lib/x86_64-linux-gnu/libpfm.a
for model in 6A 6C 7E; do
    echo "model ${model}h"
    debian qemu-x86_64 -cpu "qemu64,vendor=GenuineIntel,family=6,model=$((16#$model))" ./words \
        OCR:DEMAND_DATA_RD_LOCAL_DRAM OCR:DEMAND_DATA_RD_L3_MISS OCR:DEMAND_DATA_RD_REMOTE_DRAM 2>/dev/null
done | tee seen
diff seen - <<'SEEN'
model 6Ah
OCR:DEMAND_DATA_RD_LOCAL_DRAM: 104000001
OCR:DEMAND_DATA_RD_L3_MISS: 3fbfc00001
OCR:DEMAND_DATA_RD_REMOTE_DRAM: 730000001
model 6Ch
OCR:DEMAND_DATA_RD_LOCAL_DRAM: 184000001
OCR:DEMAND_DATA_RD_L3_MISS: 3fffc00001
OCR:DEMAND_DATA_RD_REMOTE_DRAM: invalid event attribute
model 7Eh
OCR:DEMAND_DATA_RD_LOCAL_DRAM: 184000001
OCR:DEMAND_DATA_RD_L3_MISS: 3fffc00001
OCR:DEMAND_DATA_RD_REMOTE_DRAM: invalid event attribute
SEEN
