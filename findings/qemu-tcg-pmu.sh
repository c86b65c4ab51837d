#!/usr/bin/env bash
# QEMU 7.2 (Debian 12, qemu-user 1:7.2+dfsg-7+deb12u18+b3): its emulator takes pmu=on without a warning, and has no PMU.
#
# A good guess: where the emulator (TCG) lacks a feature that -cpu asks for, it warns, as it does for parts of a PMU:
# perfctr-core of AMD, and pdcm, which says that IA32_PERF_CAPABILITIES exists. Seen: pmu=on, which asks for all of it, is
# taken silently, and leaf 0xA stays 0. An emulated processor of Intel has no counters by CPUID then. Those of AMD have
# four by their manuals, without any bit of CPUID, so that only the name of the hypervisor tells that there are none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack qemu-user=1:7.2+dfsg-7+deb12u18+b3 libcapstone4 libglib2.0-0 \
    libgnutls30 libnuma1 liburing2 libpcre2-8-0 libp11-kit0 libidn2-0 libunistring2 libtasn1-6 libnettle8 libhogweed6 \
    libgmp10 libffi8 zlib1g
cat > leaves.c <<'TEXT'
#include <cpuid.h>
#include <stdio.h>

int main(void) {
  unsigned eax, ebx, ecx, edx, counters;
  __cpuid_count(0xA, 0, counters, ebx, ecx, edx);
  __cpuid_count(0x80000001, 0, eax, ebx, ecx, edx);
  printf("leaf 0xA %x, perfctr-core %u, ", counters, ecx >> 23 & 1);
  __cpuid_count(0x40000000, 0, eax, ebx, ecx, edx);
  printf("hypervisor %.4s%.4s%.4s\n", (char *)&ebx, (char *)&ecx, (char *)&edx);
}
TEXT
cc -static -o leaves leaves.c
libraries="$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu"
for cpu in Skylake-Client,pmu=on EPYC-Milan,pmu=on,+perfctr-core Skylake-Client,+pdcm; do
    echo "$cpu"
    LD_LIBRARY_PATH=$libraries usr/bin/qemu-x86_64 -cpu "$cpu" ./leaves 2>&1 |
        sed 's/^qemu-x86_64: //' | grep -E '^leaf|pmu|perfctr|pdcm'
done | tee seen
diff seen - <<'SEEN'
Skylake-Client,pmu=on
leaf 0xA 0, perfctr-core 0, hypervisor TCGTCGTCGTCG
EPYC-Milan,pmu=on,+perfctr-core
warning: TCG doesn't support requested feature: CPUID.80000001H:ECX.perfctr-core [bit 23]
leaf 0xA 0, perfctr-core 0, hypervisor TCGTCGTCGTCG
Skylake-Client,+pdcm
warning: TCG doesn't support requested feature: CPUID.01H:ECX.pdcm [bit 15]
leaf 0xA 0, perfctr-core 0, hypervisor TCGTCGTCGTCG
SEEN
