#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, lld-14 1:14.0.6-12): an image that lld-link makes with /debug:dwarf has a record of a PDB that
# is all zeros.
#
# A good guess: without a PDB the image has no debug directory, as without /debug, or the directory has an identifier of
# the image, as with /debug, and as MinGW's ld.lld writes it. Seen: there is an entry of type CodeView, and its 25 bytes
# are zero. Such a record begins with RSDS or NB10 (Microsoft's PE format, debug type), so the type alone does not say
# that there is an identifier. goblin 0.10.7, LIEF 1.0.0 and pefile 2024.8.26 look at the signature and find none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    ret
TEXT
llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
for option in /debug:none /debug /debug:dwarf; do
    llvm lld-link /nologo /nodefaultlib /subsystem:console /entry:start code.obj "$option" \
        /pdbaltpath:%_PDB% /out:code.exe
    echo "$option:" $(llvm llvm-readobj --coff-debug-directory code.exe |
        sed -nE 's/^ *((Type|SizeOfData|PDBSignature): .*)/\1/p')
done | tee seen
diff seen - <<'SEEN'
/debug:none:
/debug: Type: CodeView (0x2) SizeOfData: 0x21 PDBSignature: 0x53445352
/debug:dwarf: Type: CodeView (0x2) SizeOfData: 0x19 PDBSignature: 0x0
SEEN
