#!/usr/bin/env bash
# windows-sys 0.61.2 (a crate): for drivers on x64, it has the interrupt levels and addresses of 32-bit Windows.
#
# A good guess: constants that depend on the processor are right for the target, as the layouts of CONTEXT and others
# are, or are left out. On x64 HIGH_LEVEL and PROFILE_LEVEL are 15, IPI_LEVEL is 14 and CLOCK_LEVEL is 13 (wdm.h; the
# copy in mingw-w64's headers 10.0.0 has both sets), and an IRQL has four bits, since it is CR8. Seen: the module of
# the WDK has 31, 27, 29 and 28 for every target, so that KfRaiseIrql(HIGH_LEVEL) writes a value that CR8 refuses, and
# the shared page of user and kernel, whose address has 64 bits, is a number of 32.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack mingw-w64-common=10.0.0-3
crate 'windows-sys = { version = "=0.61.2", features = ["Wdk_System_SystemServices"] }'
cargo vendor --quiet > /dev/null
services=vendor/windows-sys/src/Windows/Wdk/System/SystemServices/mod.rs
for name in CLOCK_LEVEL IPI_LEVEL PROFILE_LEVEL HIGH_LEVEL KI_USER_SHARED_DATA; do
    # Nothing before it restricts it to one processor.
    crate=$(grep -B1 "^pub const $name:" "$services" |
        sed -nE "s/^#.*/only \0/p; s/^pub const $name: u32 = (.*)u32;/\1/p")
    header=$(sed -nE "/^#elif defined.(_M_AMD64)/,/^#elif defined.(_M_IA64)/s/^#define $name +([0-9]+|0x.*)\$/\1/p" \
        usr/share/mingw-w64/include/ddk/wdm.h)
    echo "$name: crate $crate, header $header"
done | tee seen
diff seen - <<'SEEN'
CLOCK_LEVEL: crate 28, header 13
IPI_LEVEL: crate 29, header 14
PROFILE_LEVEL: crate 27, header 15
HIGH_LEVEL: crate 31, header 15
KI_USER_SHARED_DATA: crate 4292804608, header 0xFFFFF78000000000ULL
SEEN
