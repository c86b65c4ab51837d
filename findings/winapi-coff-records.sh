#!/usr/bin/env bash
# winapi 0.3.9 (a crate): its records of COFF symbols, relocations and line numbers are longer than those of files.
#
# A good guess: IMAGE_SYMBOL has 18 bytes, IMAGE_RELOCATION 10, and IMAGE_LINENUMBER 6, as the table of symbols of an
# image or an object file has them (Microsoft's PE format), because winnt.h packs them to two bytes; windows-sys 0.61.2
# has these sizes. Seen: 20, 12 and 8. An array of them is right for its first element only, so that a reader
# of symbols gets one name and then bytes from the middle of records. An IMAGE_AUX_SYMBOL, which takes the place of a
# symbol, has 100 bytes. Headers of sections and of the image, and RUNTIME_FUNCTION, have their sizes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'winapi = { version = "=0.3.9", features = ["winnt"] }'
cat > src/lib.rs <<'TEXT'
use winapi::um::winnt::*;

#[used]
static SEEN: [[u8; 4]; 3] = [
    *b"\xFE\xDC\xBA\x98",
    [
        size_of::<IMAGE_SYMBOL>() as u8,
        size_of::<IMAGE_AUX_SYMBOL>() as u8,
        size_of::<IMAGE_RELOCATION>() as u8,
        size_of::<IMAGE_LINENUMBER>() as u8,
    ],
    [
        size_of::<IMAGE_FILE_HEADER>() as u8,
        size_of::<IMAGE_SECTION_HEADER>() as u8,
        size_of::<IMAGE_DEBUG_DIRECTORY>() as u8,
        size_of::<RUNTIME_FUNCTION>() as u8,
    ],
];
TEXT
# shellcheck disable=SC2046 # numbers
printf '%s\n' $(seen_on_windows) |
    paste -d' ' <(printf '%s\n' symbol auxiliary relocation line 'file header' 'section header' debug function) - |
    tee seen
diff seen - <<'SEEN'
symbol 20
auxiliary 100
relocation 12
line 8
file header 20
section header 40
debug 28
function 12
SEEN
