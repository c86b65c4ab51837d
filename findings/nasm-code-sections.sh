#!/usr/bin/env bash
# nasm 2.16.01 (Debian 12, nasm 2.16.01-1): with a second code section, the lines of a PDB belong to other functions.
#
# A good guess: -g -F cv8 writes a table of lines for each code section, such as .text$cold for code that seldom runs,
# as CodeView has them, and as yasm 1.3.0 does with the same source. Seen: there is one table, that of .text. The lines
# of all sections whose names begin with .text are in it, one instruction behind the other in the order of the file. A
# function of .text behind the other section has lines of that one, so that a profile shows code that did not run, and
# most of what is in the other section has none. The names are right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack nasm=2.16.01-1 yasm=1.3.0-4
cat > code.asm <<'TEXT'
bits 64
section .text
global start
start:
    call cold
    ret
section .text$cold code align=16
global cold
cold:
    mov eax, 7
    ret
section .text
global hot
hot:
    mov eax, 3
    nop
    ret
TEXT
debian nasm -f win64 -g -F cv8 code.asm -o nasm.obj
debian yasm -f win64 -g cv8 code.asm -o yasm.obj
for name in nasm yasm; do
    llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start "$name.obj"
    llvm llvm-objdump -d --no-show-raw-insn "$name.exe" | sed -nE '/int3/!s/^(14[0-9a-f]+): +/\1 /p' |
        while read -r address instruction; do
            found=$(llvm llvm-symbolizer --obj="$name.exe" "0x$address" |
                sed -nE '1p; 2s/.*:([0-9?]+):[0-9]+$/\1/p')
            echo "$name" $found "$instruction"
        done
done | tee seen
diff seen - <<'SEEN'
nasm start 5 callq	0x140001010 <.text+0x10>
nasm start 6 retq
nasm hot 10 movl	$3, %eax
nasm hot 11 nop
nasm hot 15 retq
nasm cold 15 movl	$7, %eax
nasm cold 0 retq
yasm start 5 callq	0x140001010 <.text+0x10>
yasm start 6 retq
yasm hot 15 movl	$3, %eax
yasm hot 16 nop
yasm hot 17 retq
yasm cold 10 movl	$7, %eax
yasm cold 11 retq
SEEN
