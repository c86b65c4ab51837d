#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): objcopy and strip remove a section
# that has no bytes in the file.
#
# A good guess: a copy has the sections of its original. A section with uninitialized variables alone has a size in
# memory and SizeOfRawData 0 (Microsoft's PE format), which is how lld-link writes .data then, with the flag of
# initialized data. Seen: the copy has no such section and no error is printed. Its variables are at addresses that
# the image does not have any more, and there is a hole between two sections, which have to be adjacent. SizeOfImage and
# the time stamp stay the same. llvm-strip 14 keeps the section.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    incl counter(%rip)
    ret
    .bss
counter:
    .zero 4
    .section .tail,"dr"
    .long 0
TEXT
llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
llvm lld-link /nologo /nodefaultlib /subsystem:console /entry:start code.obj /out:lld.exe
debian x86_64-w64-mingw32-objcopy lld.exe objcopy.exe
debian x86_64-w64-mingw32-strip -o strip.exe lld.exe
llvm llvm-strip -o llvm-strip.exe lld.exe
for name in lld objcopy strip llvm-strip; do
    echo "$name:" $(llvm llvm-readobj --file-headers --sections "$name.exe" |
        sed -nE 's/^ *Name: (\.[a-z]+) .*/\1/p; s/^ *(SizeOfImage:)/\1/p; s/^ *VirtualAddress: //p')
done | tee seen
diff seen - <<'SEEN'
lld: SizeOfImage: 16384 .text 0x1000 .data 0x2000 .tail 0x3000
objcopy: SizeOfImage: 16384 .text 0x1000 .tail 0x3000
strip: SizeOfImage: 16384 .text 0x1000 .tail 0x3000
llvm-strip: SizeOfImage: 16384 .text 0x1000 .data 0x2000 .tail 0x3000
SEEN
