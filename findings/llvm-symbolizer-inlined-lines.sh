#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): llvm-symbolizer gives inlined code of a PDB the line of what follows.
#
# A good guess: an address belongs to the last line that begins at or before it, for inlined functions as for others;
# so it is for the same program with DWARF. Seen: in a PDB, the first instruction of each line of inlined code has the
# right line, and the others have the line that comes next. A profile by lines, whose samples fall on any instruction,
# has most samples of inlined code one line too far. Since LLVM 16 at the latest (Debian 12, llvm-16) it is right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
cat > code.c <<'TEXT'
static inline __attribute__((always_inline)) unsigned long long mix(unsigned long long x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x += x >> 7;
  return x;
}
unsigned long long start(unsigned long long x) {
  return mix(x);
}
TEXT
for format in codeview dwarf; do
    llvm clang --target=x86_64-pc-windows-msvc -O2 -g -g$format -c code.c -o $format.obj
done
llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start codeview.obj
llvm lld-link /nologo /debug:dwarf /nodefaultlib /subsystem:console /entry:start dwarf.obj
line() { llvm llvm-symbolizer --obj="$1.exe" "0x$2" | sed -nE '2s/.*:([0-9]+):[0-9]+$/\1/p'; }
code() { llvm llvm-objdump -d --no-show-raw-insn "$1.exe" | sed -nE 's/^(14[0-9a-f]+): +/\1 /p'; }
diff <(code codeview) <(code dwarf)
code dwarf |
    while read -r address instruction; do
        echo "$(line codeview "$address") $(line dwarf "$address") $address $instruction"
    done | tee seen
diff seen - <<'SEEN'
2 2 140001000 movq	%rcx, %rax
3 2 140001003 shrq	$33, %rax
3 2 140001007 xorq	%rcx, %rax
3 0 14000100a movabsq	$-49064778989728563, %rcx # imm = 0xFF51AFD7ED558CCD
3 3 140001014 imulq	%rax, %rcx
4 4 140001018 movq	%rcx, %rax
4 4 14000101b shrq	$7, %rax
4 4 14000101f addq	%rcx, %rax
8 8 140001022 retq
SEEN
