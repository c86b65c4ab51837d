#!/usr/bin/env bash
# msr-tools 1.3 (Debian 12, msr-tools 1.3-5): rdmsr reads a negative value as sign and magnitude.
#
# A good guess: of a 48-bit counter that a sampler preset to overflow after 256 events, rdmsr -d -f 47:0 prints -256.
# -d is signed decimal (its manual page), and registers are two's complement. Seen: -140737488355072. The top bit is
# taken off and the rest is negated, so that the value nearest to zero has the most digits. It is the same without -f,
# with all 64 bits.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack msr-tools=1.3-5
# A file for the registers of the processor: 8 bytes at the number of a register.
cat > redirect.c <<'TEXT'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int open64(const char *path, int flags, ...) {
  int (*next)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "open64");
  return next(strstr(path, "/msr") ? "registers" : path, flags);
}
TEXT
cc -shared -fPIC -o redirect.so redirect.c
for value in 0x7FFFFFFFFF00 0xFFFFFFFFFF00 0xFFFFFFFFFFFF 0xFFFFFFFFFFFFFF00; do
    python3 -c "open('registers', 'wb').write(bytes(0xC1) + ($value).to_bytes(8, 'little'))"
    field=$((${#value} * 4 - 9)):0
    echo "$value $field $(LD_PRELOAD=$folder/redirect.so usr/sbin/rdmsr -d -f "$field" 0xC1)"
done | tee seen
diff seen - <<'SEEN'
0x7FFFFFFFFF00 47:0 140737488355072
0xFFFFFFFFFF00 47:0 -140737488355072
0xFFFFFFFFFFFF 47:0 -140737488355327
0xFFFFFFFFFFFFFF00 63:0 -9223372036854775552
SEEN
