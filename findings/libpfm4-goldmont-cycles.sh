#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): on Goldmont, two names of general counters have encodings that no
# general counter counts.
#
# A good guess: CPU_CLK_UNHALTED:CORE_P is the form of "core cycles" for general counters, so its encoding is 3C/00,
# as the architectural event is on every Intel processor since Core, and as libpfm4 says of Silvermont and Tremont.
# Seen: event select 00, unit mask 00. CPU_CLK_UNHALTED:REF, the reference cycles of a general counter (3C/01), gets
# 00/01, which is how Intel's files write fixed counter 0: instructions, not cycles.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/libpfm4.py" \
    slm::CPU_CLK_UNHALTED:CORE_P tmt::CPU_CLK_UNHALTED:CORE_P \
    glm::CPU_CLK_UNHALTED:CORE_P glm::CPU_CLK_UNHALTED:REF)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
slm::CPU_CLK_UNHALTED:CORE_P 3c/00
tmt::CPU_CLK_UNHALTED:CORE_P 3c/00
glm::CPU_CLK_UNHALTED:CORE_P 00/00
glm::CPU_CLK_UNHALTED:REF 00/01
SEEN
