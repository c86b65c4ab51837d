#!/usr/bin/env bash
# dissect.etl 3.14 (PyPI): a call stack of the kernel has exactly 32 frames, or is an error, or is cut off.
#
# A good guess: the event StackWalk/Stack has as many addresses as fit into it, as documented for
# StackWalk_Event ("Stack1" to "Stack192", of which an event has as many as the stack has frames). Seen: the package
# reads 32, always. A shorter stack, as most are, ends as EOFError in the access to the event, so a loop over a trace
# with stacks ends at the first of them; of a longer one the outer frames are lost without a word.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python dissect-etl==3.14 dissect-cstruct==4.7 dissect-util==3.24 defusedxml==0.7.1 <<'SCRIPT' | tee seen
import struct

from dissect.etl.etl import parse_payload
from dissect.etl.headers.utils import select_event_header

for frames in [3, 31, 32, 40]:
    # PERFINFO_TRACE_HEADER for 64 bits, then EventTimeStamp, StackProcess, StackThread and the addresses.
    payload = struct.pack(f"<QII{frames}Q", 5, 4321, 77, *(0x7FF600001000 + frame for frame in range(frames)))
    record = struct.pack("<HBBHBBQ", 2, 0x11, 0xC0, 16 + len(payload), 32, 0x18, 0) + payload
    try:
        event = parse_payload(select_event_header(memoryview(record), None))
        found = [getattr(event, f"Stack{number}", None) for number in range(1, 193)]
        print(frames, "frames:", event.symbol(), "with", sum(address is not None for address in found))
    except EOFError as error:
        print(frames, "frames: EOFError,", error)
SCRIPT
diff seen - <<'SEEN'
3 frames: EOFError, Read 0 bytes, but expected 8
31 frames: EOFError, Read 0 bytes, but expected 8
32 frames: StackWalk/Stack with 32
40 frames: StackWalk/Stack with 32
SEEN
