#!/usr/bin/env bash
# LIEF 1.0.0 (PyPI): the places of epilogs in unwind information of version 2 are lost, or become sizes.
#
# A good guess: a library that knows EPILOG codes returns where each epilog is. The first code of a function has the
# size of all epilogs and a bit for the one at the end of the function; each further code has the distance of one from
# the end (the same layout is read by objdump of binutils 2.40). Seen: LIEF takes the codes in pairs and reads each pair
# as a first one. Of a function with four epilogs, at the end and 0x126, 0x40 and 0x80 bytes before it, two remain,
# and the size of the second is 0x40. An unwinder that uses them takes the other epilogs for the body.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    push %rsi
    push %rdi
    .irp bytes, 0x30, 0xa3, 0x3d, 0x3a
    .fill \bytes, 1, 0x90
    pop %rdi
    pop %rsi
    ret
    .endr
end:
    .section .xdata,"dr"
codes:
    .byte 2, 2, 6, 0
    .byte 3, 0x16, 0x26, 0x16, 0x40, 0x06, 0x80, 0x06
    .byte 2, 0x60, 1, 0x70
    .section .pdata,"dr"
    .rva start, end, codes
TEXT
debian x86_64-w64-mingw32-as code.s -o code.o
debian x86_64-w64-mingw32-ld -e start code.o -o code.exe
python lief==1.0.0 <<'SCRIPT' > said
import lief

wanted = lief.PE.ParserConfig()
wanted.parse_exceptions = True
program = lief.PE.parse("code.exe", wanted)
(function,) = program.exceptions
for code in function.unwind_info.opcodes:
    print(code)
SCRIPT
{
    debian x86_64-w64-mingw32-objdump -p code.exe | sed -n 's/^.*v2 //p'
    grep EPILOG said
} | tee seen
diff seen - <<'SEEN'
epilog (length: 03) at pc+: 0x155 0x32 0x118 0xd8
EPILOG flags=1, size=3
EPILOG flags=0, size=64
SEEN
