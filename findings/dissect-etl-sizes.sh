#!/usr/bin/env bash
# dissect.etl 3.14 (PyPI): in traces of 64-bit Windows, sizes have four bytes, so the fields behind them are others.
#
# A good guess: the type win:SizeT of a manifest has the size of a pointer, which the package gets right for
# win:Pointer by the header of the event. Seen: SizeT has four bytes always. Of VirtualAlloc of the kernel's page fault
# provider, of 0x123000000 bytes, the upper half of the size becomes the process, and the process the flags. Nothing
# says that bytes are left over.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python dissect-etl==3.14 dissect-cstruct==4.7 dissect-util==3.24 defusedxml==0.7.1 <<'SCRIPT' | tee seen
import struct

from dissect.etl.etl import parse_payload
from dissect.etl.headers.utils import select_event_header

# PageFault/VirtualAlloc, version 2, by process 4321: BaseAddress, RegionSize, ProcessId, Flags (MEM_COMMIT).
payload = struct.pack("<QQII", 0x1A0000000000, 0x1_2300_0000, 4321, 0x1000)
record = struct.pack("<IHBBIIQQ", 0xC002_0002, 32 + len(payload), 98, 2, 7, 4321, 0, 0) + payload
header = select_event_header(memoryview(record), None)
event = parse_payload(header)
print(event.symbol(), "64 bits" if header.is_64bit else "32 bits", "by process", header.process_id)
print(f"{int(event.BaseAddress):#x} {event.RegionSize:#x} process {event.ProcessId} flags {event.Flags:#x}")
SCRIPT
diff seen - <<'SEEN'
PageFault/VirtualAlloc 64 bits by process 4321
0x1a0000000000 0x23000000 process 1 flags 0x10e1
SEEN
