#!/usr/bin/env bash
# dissect.etl 3.14 (PyPI): events of providers with a manifest, or of TraceLogging, have a provider that does not exist.
#
# A good guess: an event names its provider by a GUID, which the file has in the order of bytes of Windows; the package
# reads the GUID of the activity, 40 bytes further on, and those of all other kinds of events so. Seen: it reads the
# provider's in the order of networks. Microsoft-Windows-Kernel-Process comes out as another GUID, which no list of
# providers has, and no filter finds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python dissect-etl==3.14 dissect-cstruct==4.7 dissect-util==3.24 defusedxml==0.7.1 <<'SCRIPT' | tee seen
import struct
from uuid import UUID

from dissect.etl.headers.utils import select_event_header

# Microsoft-Windows-Kernel-Process, which is the activity as well. EVENT_HEADER of evntcons.h.
guid = UUID("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716").bytes_le
record = struct.pack(
    "<IHHIIQ16sHBBBBHQQ16s", 0xC013_0050, 0, 0, 7, 4321, 0, guid, 1, 0, 16, 4, 1, 1, 0x8000_0000_0000_0010, 0, guid
)
header = select_event_header(memoryview(record), None)
print("provider", header.provider_id)
print("activity", header.activity_id)
SCRIPT
diff seen - <<'SEEN'
provider d62cfb22-7b0e-2b42-a0c7-2fad1fd0e716
activity 22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716
SEEN
