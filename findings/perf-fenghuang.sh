#!/usr/bin/env bash
# perf 6.1 (Debian 12, linux-perf 6.1.192-3) and libpfm4 4.13.0 (Debian 12, libpfm4-dev 4.13.0-1): a processor with Zen
# cores has the events of Zen 2.
#
# A good guess: family 17h, models 50h to 5Fh, counts as Zen, as in Linux itself (arch/x86/kernel/cpu/amd.c), which
# lists them with models 00h to 2Fh. Model 50h is the processor of the Subor Z+ console of 2018, "custom AMD Zen" in
# InstLatX64's list. Seen: both programs take every model from 30h on for Zen 2. perf has the metrics of Zen 2, of which
# one needs bp_l1_tlb_miss_l2_tlb_miss, which is bp_l1_tlb_miss_l2_miss on Zen; libpfm4, and so PAPI, have its names.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack linux-perf=6.1.192-3 libopencsd1 libelf1 libdw1 libunwind8 liblzma5 libslang2 libperl5.36 libpython3.11 zlib1g \
    libzstd1 libcap2 libnuma1 libbabeltrace1 libbz2-1.0 libcrypt1 libexpat1 libuuid1 libglib2.0-0 libpcre2-8-0 \
    qemu-user=1:7.2+dfsg-7+deb12u18+b3 libpfm4-dev=4.13.0-1 libcapstone4 libgnutls30 liburing2 libp11-kit0 libidn2-0 \
    libunistring2 libtasn1-6 libnettle8 libhogweed6 libgmp10 libffi8
cat > present.c <<'TEXT'
#include <perfmon/pfmlib.h>
#include <stdio.h>

int main(void) {
  pfm_initialize();
  for (int pmu = 0; pmu < PFM_PMU_MAX; pmu++) {
    pfm_pmu_info_t info = {.size = sizeof info};
    if (pfm_get_pmu_info(pmu, &info) == PFM_SUCCESS && info.is_present && info.type == PFM_PMU_TYPE_CORE)
      printf("%s\n", info.name);
  }
}
TEXT
cc -static -I usr/include -o present present.c usr/lib/x86_64-linux-gnu/libpfm.a
libraries="$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu"
for model in 18 31 50; do
    decimal=$((16#$model))
    echo "model ${model}h: perf $(PERF_CPUID=AuthenticAMD-23-$model-0 debian perf list --details metric 2>/dev/null |
        grep -oE 'bp_l1_tlb_miss_l2_(tlb_)?miss' | sort -u), libpfm4 $(LD_LIBRARY_PATH=$libraries usr/bin/qemu-x86_64 \
        -cpu "EPYC,model=$decimal" ./present 2>/dev/null | grep -E '_zen[0-9]')"
done | tee seen
diff seen - <<'SEEN'
model 18h: perf bp_l1_tlb_miss_l2_miss, libpfm4 amd64_fam17h_zen1
model 31h: perf bp_l1_tlb_miss_l2_tlb_miss, libpfm4 amd64_fam17h_zen2
model 50h: perf bp_l1_tlb_miss_l2_tlb_miss, libpfm4 amd64_fam17h_zen2
SEEN
