#!/usr/bin/env bash
# etl-parser 1.0.1 (PyPI): of TraceLogging's fields, addresses are refused and counted strings get a character in
# front.
#
# A good guess: a parser that lists the type HEXINT64 reads it, as it reads HEXINT32 and UINT64; and a counted string
# has a count of 16 bits in front, in bytes (TraceLoggingProvider.h, TlgInHEXINT64 and TlgInCOUNTEDANSISTRING). Seen:
# an event with an address as a hexadecimal number is an error, which the caller has to handle by leaving the event
# out. The count is read as one byte, and its other half becomes the first character: "app" is "\0app", so that a
# comparison fails though both look the same when printed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python etl-parser==1.0.1 construct==2.10.70 <<'SCRIPT' | tee seen
import struct

from etl.error import TlUnhandledTag
from etl.parsers.tracelogging import TraceLogging

ADDRESS = struct.pack("<Q", 0x7FF600001000)
for name, kind, data in [
    ("uint64", 10, ADDRESS), ("hexint32", 20, ADDRESS[:4]), ("hexint64", 21, ADDRESS),
    ("string", 2, b"app\0"), ("counted string", 23, struct.pack("<H", 3) + b"app"),
]:
    fields = b"\0event\0" + name.encode() + b"\0" + bytes([kind])
    description = struct.pack("<H", len(fields) + 2) + fields
    try:
        print(name, repr(TraceLogging().load(description, data)[name]))
    except TlUnhandledTag:
        print(name, "is unhandled")
SCRIPT
diff seen - <<'SEEN'
uint64 140694538686464
hexint32 4096
hexint64 is unhandled
string 'app'
counted string '\x00app'
SEEN
