#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): --gc-sections keeps every function
# that has unwind information.
#
# A good guess: with a section for each function, as -ffunction-sections makes them, --gc-sections removes those that
# nothing refers to, with their entries in .pdata (ld(1): "enable garbage collection of unused input sections").
# Seen: the entries are kept, and so are the functions, because an entry refers to its function. A function without an
# entry is removed. On 64-bit Windows compilers write one for nearly every function, so that the option changes nothing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .section .text$unused,"x"
    .globl unused
    .seh_proc unused
unused:
    sub $0x28, %rsp
    .seh_stackalloc 0x28
    .seh_endprologue
    add $0x28, %rsp
    ret
    .seh_endproc
    .section .text$leaf,"x"
    .globl leaf
leaf:
    ret
    .section .text$start,"x"
    .globl start
start:
    ret
TEXT
debian x86_64-w64-mingw32-as code.s -o code.o
for option in --no-gc-sections --gc-sections; do
    debian x86_64-w64-mingw32-ld -e start "$option" code.o -o code.exe
    functions=$(debian x86_64-w64-mingw32-nm code.exe | grep -oP ' T \K(unused|leaf|start)$' | xargs)
    entries=$(debian x86_64-w64-mingw32-objdump -h code.exe | awk '$2 == ".pdata" {print "0x" $3}')
    echo "$option: $functions, $((entries / 12)) entry"
done | tee seen
diff seen - <<'SEEN'
--no-gc-sections: leaf start unused, 1 entry
--gc-sections: start unused, 1 entry
SEEN
