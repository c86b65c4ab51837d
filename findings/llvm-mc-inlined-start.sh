#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): a function that begins with inlined code has no line there in its PDB.
#
# A good guess: while inlined code runs, the function around it has the line of the call, which the assembler knows from
# .cv_inline_site_id, and writes between two lines of the function itself. Seen: at the start of the function it
# does not. The table of lines begins at the first instruction that is no inlined one. As nothing else in a PDB says
# where the call is, one reader shows the function without a line there (pdb-addr2line 0.12.1) and another one
# takes the next one (llvm-symbolizer). Small functions are often inlined code alone up to their RET. LLVM 16.0.6 does
# the same, and LLVM 19.1.7 writes the line (both in Debian 12).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
# A function that calls an inlined one in line 13, and in the second case does something before that.
for before in '' '.cv_loc 0 1 12; nop'; do
    cat > code.s <<TEXT
    .globl start
    .def start; .scl 2; .type 32; .endef
    .text
    .cv_file 1 "app.c"
    .cv_func_id 0
    .cv_inline_site_id 1 within 0 inlined_at 1 13 0
start:
    $before
    .cv_loc 1 1 4
    nop
    .cv_loc 0 1 14
    ret
end:
    .section .debug\$S,"dr"
    .long 4
    .cv_linetable 0, start, end
    .cv_filechecksums
    .cv_stringtable
TEXT
    llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
    llvm llvm-readobj --codeview code.obj |
        sed -nE 's/^ *(\+0x[0-9A-F]+) \[/offset \1/p; s/^ *LineNumberStart:/line/p' | xargs
done | tee seen
diff seen - <<'SEEN'
offset +0x1 line 14
offset +0x0 line 12 offset +0x1 line 13 offset +0x2 line 14
SEEN
