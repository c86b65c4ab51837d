#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): an image with a build ID names a PDB
# without a name.
#
# A good guess: --build-id writes a note section, as on Linux, or names the file of the image with .pdb. Seen: it writes
# the record by which images name their PDB, with an identifier and an empty path. A program that joins the path to a
# folder gets the folder itself, and one that asks a symbol server asks for "//ID/".
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
printf '.globl start\n.text\nstart:\n    ret\n' > code.s
debian x86_64-w64-mingw32-as code.s -o code.o
debian x86_64-w64-mingw32-ld -e start --build-id code.o -o code.exe
python3 - <<'SCRIPT' | tee seen
data = open("code.exe", "rb").read()
at = data.index(b"RSDS")
age = int.from_bytes(data[at + 20:at + 24], "little")
path = data[at + 24:data.index(0, at + 24)].decode()
print("age", age, "path", repr(path), "note", b"GNU\0" in data[at - 16:at])
SCRIPT
diff seen - <<'SEEN'
age 1 path '' note False
SEEN
