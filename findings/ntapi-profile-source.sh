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
crate 'ntapi = "=0.4.3"' 'phnt = "=0.1.2"'
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
# shellcheck disable=SC2046 # numbers
printf '%x %x %x %x\n' $(seen_on_windows) | paste -d' ' <(printf '%s\n' ntapi phnt) - | tee seen
# Event, interval, name, size.
diff seen - <<'SEEN'
ntapi 4 18 1e 20
phnt 8 1c 22 24
SEEN
