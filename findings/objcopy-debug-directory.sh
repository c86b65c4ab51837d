#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12) and binutils 2.40 for mingw-w64: no objcopy separates the debug
# information of an image of lld-link.
#
# A good guess: --only-keep-debug makes a file of symbols of any image that has DWARF, as it does of those of ld and of
# ld.lld. Seen: llvm-objcopy of the same release as lld-link, and objcopy of binutils, both refuse an image of it that
# names a PDB. Its debug directory is in .rdata. The option leaves the bytes of .rdata out, and then the program
# looks for the directory there to correct it. ld and ld.lld have the directory in .buildid, which is kept.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    ret
    .section .debug_info,"dr"
    .zero 16
TEXT
debian x86_64-w64-mingw32-as code.s -o code.o
debian x86_64-w64-mingw32-ld -e start --build-id code.o -o ld.exe
llvm ld.lld -m i386pep -e start code.o -o ld.lld.exe
llvm lld-link /nologo /nodefaultlib /subsystem:console /entry:start /debug code.o /out:lld-link.exe 2> warning
kept() { if "$@" 2> said; then echo kept; else sed -nE '1s/^.*(debug directory)/refused, \1/p' said; fi; }
for name in ld ld.lld lld-link; do
    echo "$name: $(llvm llvm-readobj --coff-debug-directory "$name.exe" | grep -c PDBGUID) identifier"
    echo "  llvm-objcopy: $(kept llvm llvm-objcopy --only-keep-debug "$name.exe" symbols)"
    echo "  objcopy: $(kept debian x86_64-w64-mingw32-objcopy --only-keep-debug "$name.exe" symbols)"
done | tee seen
diff seen - <<'SEEN'
ld: 1 identifier
  llvm-objcopy: kept
  objcopy: kept
ld.lld: 1 identifier
  llvm-objcopy: kept
  objcopy: kept
lld-link: 1 identifier
  llvm-objcopy: refused, debug directory not found
  objcopy: refused, debug directory
SEEN
