#!/usr/bin/env bash
# valgrind 3.19 (Debian 12, valgrind 1:3.19.0-1): callgrind_annotate takes costs in hexadecimal for nothing.
#
# A good guess: 0x64 is 100 wherever a profile has a number, because the grammar in the manual of the same release has
# one kind of number for positions and for costs: HexNumber or digits (Callgrind format specification, Grammar). Seen:
# as an address it is read. As a cost it is 0 without a word, a function with such costs alone is left out, and the sum
# is that of the rest, so that another function has 100 %.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack valgrind=1:3.19.0-1
for cost in 100 0x64; do
    printf '%s\n' '# callgrind format' 'positions: instr line' 'events: Cycles Misses' \
        fl=app.c fn=main "0x401000 10 $cost 7" '+4 +1 20 1' fn=work "0x402000 20 0x3e8 5" > profile
    echo "$cost"
    perl usr/bin/callgrind_annotate --auto=no profile | grep -E 'PROGRAM|app.c:'
done | tee seen
diff seen - <<'SEEN'
100
120 (100.0%) 13 (100.0%)  PROGRAM TOTALS (calculated)
120 (100.0%) 8 (61.54%)  app.c:main
0x64
20 (100.0%) 13 (100.0%)  PROGRAM TOTALS (calculated)
20 (100.0%) 8 (61.54%)  app.c:main
SEEN
