#!/usr/bin/env bash
# windows-sys 0.61.2 (a crate): the list of a device's hardware resources has another layout than that of Windows.
#
# A good guess: structures of the WDK have the packing of its headers. wdm.h packs CM_PARTIAL_RESOURCE_DESCRIPTOR to
# four bytes, so it has 20 bytes on x64, and the physical address in it begins at 4 (mingw-w64's headers 10.0.0 agree).
# Seen: the crate packs some members of its union, and neither the union nor the structure: 24 bytes, and the address
# at 8.
# A driver that walks the list of IRP_MN_START_DEVICE with it finds an address of half a start and half a length, and
# each further descriptor four bytes later than it is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate '[dependencies.windows-sys]' 'version = "=0.61.2"' 'features = ["Wdk_System_SystemServices"]'
cat > src/lib.rs <<'TEXT'
use core::mem::offset_of;
use windows_sys::Wdk::System::SystemServices::{CM_PARTIAL_RESOURCE_DESCRIPTOR as D, CM_PARTIAL_RESOURCE_LIST as L};

#[used]
static SEEN: [[u8; 4]; 3] =
    [*b"\xFE\xDC\xBA\x98", [offset_of!(D, u) as u8, size_of::<D>() as u8, size_of::<L>() as u8, 0], [0; 4]];
TEXT
read -r place one list _ < <(seen_on_windows)
unpack mingw-w64-common=10.0.0-3 mingw-w64-x86-64-dev=10.0.0-3 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 \
    libllvm14=1:14.0.6-12 libclang-common-14-dev=1:14.0.6-12
cat > code.c <<'TEXT'
#include <stddef.h>
#include <ntddk.h>
unsigned seen[] = {
    offsetof(CM_PARTIAL_RESOURCE_DESCRIPTOR, u),
    sizeof(CM_PARTIAL_RESOURCE_DESCRIPTOR),
    sizeof(CM_PARTIAL_RESOURCE_LIST),
};
TEXT
{
    echo "crate: address at $place, size $one, list of one $list"
    debian ../lib/llvm-14/bin/clang --target=x86_64-w64-windows-gnu -w -isystem usr/x86_64-w64-mingw32/include \
        -isystem usr/x86_64-w64-mingw32/include/ddk -S code.c -o - |
        sed -nE 's/^\s+\.long\s+([0-9]+).*/\1/p' | paste -sd' ' |
        sed -E 's/(.*) (.*) (.*)/header: address at \1, size \2, list of one \3/'
} | tee seen
diff seen - <<'SEEN'
crate: address at 8, size 24, list of one 32
header: address at 4, size 20, list of one 28
SEEN
