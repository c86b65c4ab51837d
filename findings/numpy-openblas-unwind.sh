#!/usr/bin/env bash
# numpy 2.1.3 for Windows (PyPI, cp312-win_amd64): its OpenBLAS has almost no unwind information.
#
# A good guess: 64-bit Windows needs unwind information for each function that calls others or moves the stack pointer,
# so compilers write it for all. Seen: of 19.6 MB of code in libscipy_openblas64, 0.25 MB have an entry in the exception
# directory, and one gap has 19.3 MB. A stack that is walked from within a matrix multiplication ends or goes wrong
# there, exceptions cannot pass, and no tool can tell where a function without an export begins.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python3 -m pip download --quiet --no-deps --only-binary=:all: --platform win_amd64 --python-version 312 numpy==2.1.3
python3 - <<'SCRIPT' | tee seen
import glob, struct, zipfile
wheel = zipfile.ZipFile(glob.glob("numpy-*.whl")[0])
data = wheel.read(next(name for name in wheel.namelist() if "libscipy_openblas64_" in name))
header = struct.unpack_from("<I", data, 0x3C)[0]
number, size = struct.unpack_from("<H12xH", data, header + 6)
sections = []
for index in range(number):
    at = header + 24 + size + 40 * index
    name = data[at:at + 8].rstrip(b"\0").decode()
    sections.append((name, *struct.unpack_from("<IIII", data, at + 8)))
def offset(address):
    for _, _, begin, length, place in sections:
        if begin <= address < begin + length:
            return place + address - begin
table, length = struct.unpack_from("<II", data, header + 24 + 112 + 3 * 8)
parts = [struct.unpack_from("<II", data, offset(table) + 12 * index) for index in range(length // 12)]
code = next(size for name, size, *_ in sections if name == ".text")
covered = sum(end - begin for begin, end in parts)
gap = max(after[0] - before[1] for before, after in zip(parts, parts[1:]))
print(len(parts), "entries", f"{code / 1e6:.1f} MB code", f"{covered / 1e6:.2f} MB covered", f"{gap / 1e6:.1f} MB gap")
SCRIPT
diff seen - <<'SEEN'
761 entries 19.6 MB code 0.25 MB covered 19.3 MB gap
SEEN
