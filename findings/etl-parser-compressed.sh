#!/usr/bin/env bash
# etl-parser 1.0.1 (PyPI): a compressed trace is a trace without events, and no error.
#
# A good guess: a trace of a session with EVENT_TRACE_COMPRESSED_MODE is refused, if its buffers (LZ77 of [MS-XCA], flag
# 40h in their headers) cannot be read. Seen: the header of the file is read, and the observer is never called. The rest
# of the file ends where a buffer cannot be read: in compressed ones the length of the events is larger than the buffer.
# dissect.etl 3.14 reads the same events with and without compression. In Microsoft's own test files of TraceEvent, the
# trace of a self-describing event is one of these.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python etl-parser==1.0.1 construct==2.10.70 dissect-etl==3.14 dissect-cstruct==4.7 dissect-util==3.24 \
    defusedxml==0.7.1 <<'SCRIPT' | tee seen
import io
import struct
from unittest.mock import Mock
from uuid import UUID

from dissect.etl import ETL
from etl.etl import build_from_stream

SIZE, GUID = 0x400, UUID("1e73bb95-d033-5693-4748-a63e860b83c2").bytes_le


def compressed(record):
    """Three equal records of 80 bytes: 80 literals, and a match of 160 bytes at a distance of 80."""
    flags = struct.pack("<I", 0), struct.pack("<I", 0), struct.pack("<I", 0x0000FFFF)
    words = b"".join(flag + record[at : at + 32] for flag, at in zip(flags, (0, 32, 64)))
    return words + struct.pack("<HBB", 79 << 3 | 7, 15, 160 - 3 - 7 - 15)


def buffer(records, number, flags, kind, compress=False):
    """WMI_BUFFER_HEADER and what follows. Where compressed, the buffer ends with its bytes."""
    data = compressed(records[:80]) if compress else records
    size = 72 + len(data) if compress else SIZE
    header = struct.pack("<IIIiQqQHHIIHHIIII", size, 72 + len(records), 72 + len(records), 0, 0, number, 0, 0, 1, 0,
                         72 + len(records), flags | (0x40 if compress else 0), kind, 0, 0, 0, 0)
    return (header + data).ljust(size, b"\xff")


def file(compress):
    logfile = struct.pack("<IIIIQIIIIIIII", SIZE, 0x0501000A, 19045, 1, 0, 156250, 0, 1, 2, 1, 8, 0, 3000)
    logfile += bytes(16 + 176) + struct.pack("<QQQII", 0, 10_000_000, 0, 1, 0) + "a\0".encode("utf-16-le") * 2
    system = struct.pack("<IHHIIQII", 0xC0020002, 32 + len(logfile), 0, 1, 4, 0, 0, 0) + logfile
    event = struct.pack("<IHHIIQ16sHBBBBHQQ16s", 0xC0130050, 0, 0, 7, 4321, 0, GUID, 1, 1, 11, 4, 0, 0, 1, 0, bytes(16))
    return buffer(system, 0, 1, 4) + buffer(event * 3, 1, 0, 0, compress)


for name, data in ("plain", file(False)), ("compressed", file(True)):
    observer = Mock()
    build_from_stream(data).parse(observer)
    events = [event for event in ETL(io.BytesIO(data)) if type(event.header).__name__ == "EventHeader"]
    print(f"{name}: etl-parser {observer.on_event_record.call_count}, dissect.etl {len(events)}")
SCRIPT
diff seen - <<'SEEN'
plain: etl-parser 3, dissect.etl 3
compressed: etl-parser 0, dissect.etl 3
SEEN
