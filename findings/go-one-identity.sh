#!/usr/bin/env bash
# esbuild 0.25.8 to 0.25.10 for Windows (npm, @esbuild/win32-x64; made by Go): three releases have one identity.
#
# A good guess: programs that differ have another time stamp or another SizeOfImage, by which Windows, symbol servers
# and profilers know an image. Go writes 0 as the time stamp, so only the size is left, and it counts in pages of 4 KB.
# Seen: 0.25.8, 0.25.9 and 0.25.10 have the same pair, though their code differs in length. They name no PDB that could
# tell them from each other. After an update, names taken from the new file for samples of the old one are wrong, and
# no check of the pair notices.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
for version in 0.25.7 0.25.8 0.25.9 0.25.10 0.25.11; do
    npm install --silent --no-fund --no-audit --force --prefix "$version" "@esbuild/win32-x64@$version"
done
python3 - <<'SCRIPT' | tee seen
import struct

for version in ["0.25.7", "0.25.8", "0.25.9", "0.25.10", "0.25.11"]:
    data = open(f"{version}/node_modules/@esbuild/win32-x64/esbuild.exe", "rb").read()
    header, = struct.unpack_from("<I", data, 0x3C)
    stamp, = struct.unpack_from("<I", data, header + 8)
    code, = struct.unpack_from("<I", data, header + 24 + 4)
    size, = struct.unpack_from("<I", data, header + 24 + 56)
    debug = struct.unpack_from("<II", data, header + 24 + 112 + 6 * 8)
    print(f"{version} time stamp {stamp:X} SizeOfImage {size:X} SizeOfCode {code:X} debug directory {debug[1]}")
SCRIPT
diff seen - <<'SEEN'
0.25.7 time stamp 0 SizeOfImage A6D000 SizeOfCode 545000 debug directory 0
0.25.8 time stamp 0 SizeOfImage A6E000 SizeOfCode 545200 debug directory 0
0.25.9 time stamp 0 SizeOfImage A6E000 SizeOfCode 545A00 debug directory 0
0.25.10 time stamp 0 SizeOfImage A6E000 SizeOfCode 545C00 debug directory 0
0.25.11 time stamp 0 SizeOfImage A7C000 SizeOfCode 54CE00 debug directory 0
SEEN
