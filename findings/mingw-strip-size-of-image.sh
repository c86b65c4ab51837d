#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): strip changes the identity of an
# image.
#
# A good guess: strip removes what is behind the last section that is loaded, so the image in memory stays as it is.
# Windows, symbol servers and profilers know an image by its time stamp and SizeOfImage. Seen: debug sections count as
# loaded, and SizeOfImage shrinks with them. The program that ran is then not the one with the symbols, though both have
# one time stamp and the same code. The file that only keeps debug information has the size of the unstripped one.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    ret
    .section .debug_info,"dr"
    .zero 0x8000
TEXT
tool() { debian "x86_64-w64-mingw32-$1" "${@:2}"; }
tool as code.s -o code.o
tool ld -e start code.o -o full.exe
tool objcopy --only-keep-debug full.exe full.debug
cp full.exe stripped.exe
tool strip stripped.exe
for file in full.exe full.debug stripped.exe; do
    tool objdump -p "$file" | awk -v file="$file" '/^SizeOfImage/ {print file, "size", $2}'
done | tee seen
test "$(tool objdump -p full.exe | grep Time/Date)" = "$(tool objdump -p stripped.exe | grep Time/Date)"
diff seen - <<'SEEN'
full.exe size 0000b000
full.debug size 0000b000
stripped.exe size 00003000
SEEN
