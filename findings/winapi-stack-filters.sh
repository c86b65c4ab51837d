#!/usr/bin/env bash
# winapi 0.3.9 (a crate): the filter that chooses stacks by the names of events has the number of the one by numbers.
#
# A good guess: the three filters by which EnableTraceEx2 restricts call stacks have three numbers, 0x80001000,
# 0x80002000 and 0x80004000 (evntprov.h of the Windows SDK, and windows-sys 0.61.2). Seen: EVENT_FILTER_TYPE_STACKWALK
# and EVENT_FILTER_TYPE_STACKWALK_NAME are both 0x80001000. So an EVENT_FILTER_EVENT_NAME, which has keywords, a level
# and names, reaches Windows as an EVENT_FILTER_EVENT_ID, which has a count and numbers of events.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'winapi = "=0.3.9"'
cargo vendor --quiet > /dev/null
sed -nE 's/^pub const (EVENT_FILTER_TYPE_STACK[A-Z_]*): ULONG = (0x[0-9a-f]+);/\1 \2/p' \
    vendor/winapi/src/shared/evntprov.rs | tee seen
diff seen - <<'SEEN'
EVENT_FILTER_TYPE_STACKWALK 0x80001000
EVENT_FILTER_TYPE_STACKWALK_NAME 0x80001000
EVENT_FILTER_TYPE_STACKWALK_LEVEL_KW 0x80004000
SEEN
