#!/usr/bin/env bash
# ntapi 0.4.3 (a crate): the request for a new profile source has another layout than that of Windows.
#
# A good guess: EVENT_TRACE_PROFILE_ADD_INFORMATION, by which NtSetSystemInformation gives Windows a profile source of
# any event, is as in System Informer's phnt, from which the crate is translated. There a version (2 or 3) is at 4, the
# event and its unit mask are at 8 and 9, the first interval is at 1C, and the name at 22; types taken from the debug
# information of Windows 10 2004 and Windows 11 are the same (sdkgen, profile_add_information_t). Seen: the crate has
# no version. The event is at 4, where Windows expects the version; the interval is at 18, among the numbers that choose
# processors; and the name begins four bytes early. phnt 0.1.2 (a crate) has the right layout.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
mkdir src
cat > Cargo.toml <<'TEXT'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
ntapi = "=0.4.3"
phnt = "=0.1.2"
TEXT
cat > src/lib.rs <<'TEXT'
use ntapi::ntexapi::EVENT_TRACE_PROFILE_ADD_INFORMATION as N;
use phnt::ffi::EVENT_TRACE_PROFILE_ADD_INFORMATION as P;
use std::mem::offset_of;

#[used]
static SEEN: [[u8; 4]; 3] = [
    *b"\xFE\xDC\xBA\x98",
    [
        offset_of!(N, PerfEvtEventSelect) as u8,
        offset_of!(N, InitialInterval) as u8,
        offset_of!(N, ProfileSourceDescription) as u8,
        size_of::<N>() as u8,
    ],
    [
        offset_of!(P, __bindgen_anon_1) as u8,
        offset_of!(P, InitialInterval) as u8,
        offset_of!(P, ProfileSourceDescription) as u8,
        size_of::<P>() as u8,
    ],
];
TEXT
rustup --quiet target add x86_64-pc-windows-gnu
CARGO_TARGET_DIR="$folder/target" cargo rustc --quiet --target x86_64-pc-windows-gnu -- --emit "obj=$folder/code.o"
python3 - <<'SCRIPT' | tee seen
data = open("code.o", "rb").read()
place = data.index(b"\xFE\xDC\xBA\x98")
for index, name in enumerate(["ntapi", "phnt"]):
    event, interval, text, size = data[place + 4 + 4 * index:][:4]
    print(f"{name}: event {event:x}, interval {interval:x}, name {text:x}, size {size:x}")
SCRIPT
diff seen - <<'SEEN'
ntapi: event 4, interval 18, name 1e, size 20
phnt: event 8, interval 1c, name 22, size 24
SEEN
