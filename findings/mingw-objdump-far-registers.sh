#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): objdump shows the far places of
# vector registers 16 times as far.
#
# A good guess: the assembler and objdump of one release agree on .seh_savexmm. Places from 1 MB on have a code with
# all 32 bits of the offset, unscaled (Microsoft's x64 exception handling, UWOP_SAVE_XMM128_FAR), unlike the code for
# nearer ones, which counts in 16 bytes. Seen: the assembler writes both rightly, and objdump multiplies both by 16, so
# that xmm7 is beyond the frame. Of general registers it shows both forms rightly. llvm-readobj, pefile and LIEF show
# what was written.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
    .seh_proc start
start:
    sub $0x200000, %rsp
    .seh_stackalloc 0x200000
    movaps %xmm6, 0xFFFF0(%rsp)
    .seh_savexmm %xmm6, 0xFFFF0
    movaps %xmm7, 0x100000(%rsp)
    .seh_savexmm %xmm7, 0x100000
    mov %rbx, 0x100010(%rsp)
    .seh_savereg %rbx, 0x100010
    .seh_endprologue
    ud2
    .seh_endproc
TEXT
debian x86_64-w64-mingw32-as code.s -o code.o
debian x86_64-w64-mingw32-ld -e start code.o -o code.exe
debian x86_64-w64-mingw32-objdump -p code.exe | sed -nE 's/^.*pc.*: ((save|alloc).*0x[0-9a-f]+).*/\1/p' | tee seen
diff seen - <<'SEEN'
save rbx at rsp + 0x100010
save xmm7 at rsp + 0x1000000
save xmm6 at rsp + 0xffff0
alloc large area: rsp = rsp - 0x200000
SEEN
