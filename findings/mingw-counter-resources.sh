#!/usr/bin/env bash
# mingw-w64 10.0.0 (Debian 12, mingw-w64-x86-64-dev 10.0.0-3): a list of counters to reserve has another layout than
# that of Windows.
#
# A good guess: PHYSICAL_COUNTER_RESOURCE_LIST, with which a driver asks HalAllocateHardwareCounters for some of the
# counters only, has in this ntddk.h the layout of Microsoft's, since the function and the names of the types are the
# same. Seen: the union of a descriptor lacks the handler of an overflow and the configuration of a buffer of events,
# which have pointers (Microsoft's metadata, in the crate windows-sys 0.61.2). There, descriptors begin at 8 instead of
# 4 and have 24 bytes instead of 16, so the flags of the first descriptor are where its type should be. The kinds for a
# buffer and for a tag are missing too: ResourceTypeMax is 4 instead of 6.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate '[dependencies.windows-sys]' 'version = "=0.61.2"' 'features = ["Wdk_System_SystemServices"]'
cat > src/lib.rs <<'TEXT'
use core::mem::offset_of;
use windows_sys::Wdk::System::SystemServices::{
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR as D, PHYSICAL_COUNTER_RESOURCE_LIST as L, ResourceTypeMax,
};

#[used]
static SEEN: [[u8; 4]; 3] = [
    *b"\xFE\xDC\xBA\x98",
    [offset_of!(L, Descriptors) as u8, offset_of!(D, u) as u8, size_of::<D>() as u8, ResourceTypeMax as u8],
    [0; 4],
];
TEXT
read -r first union size kinds _ < <(seen_on_windows)
unpack mingw-w64-common=10.0.0-3 mingw-w64-x86-64-dev=10.0.0-3 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 \
    libllvm14=1:14.0.6-12 libclang-common-14-dev=1:14.0.6-12
cat > code.c <<'TEXT'
#include <stddef.h>
#include <ntddk.h>
unsigned seen[] = {
    offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors), offsetof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u),
    sizeof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR), ResourceTypeMax};
TEXT
{
    echo "crate: $first $union $size $kinds"
    debian ../lib/llvm-14/bin/clang --target=x86_64-w64-windows-gnu -w \
        -D_WIN32_WINNT=0x0A00 -DNTDDI_VERSION=0x0A00000B -isystem usr/x86_64-w64-mingw32/include \
        -isystem usr/x86_64-w64-mingw32/include/ddk -S code.c -o - |
        sed -nE 's/^\s+\.long\s+([0-9]+).*/\1/p' | paste -sd' ' | sed 's/^/header: /'
} | tee seen
# First descriptor, its union, size of a descriptor, number of kinds.
diff seen - <<'SEEN'
crate: 8 8 24 6
header: 4 8 16 4
SEEN
