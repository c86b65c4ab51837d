#!/usr/bin/env bash
# LLVM 14.0.6 and 19.1.7 (Debian 12, clang-14 1:14.0.6-12 and clang-19 1:19.1.7-3~deb12u1): in CodeView, code without a
# line belongs to the line before it.
#
# A good guess: code that the compiler merged from several lines has no line. DWARF has line 0 for it, CodeView the
# numbers F00F00 and FEEFEE, which debuggers take for no line. Seen: clang writes 0 into DWARF, and nothing into
# CodeView, where a line holds until the next one. In this function the common end of two failed checks, at offset F
# behind the return, has the line of the return (5). Samples of the slow path are counted for it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 \
    clang-19=1:19.1.7-3~deb12u1 libclang-cpp19=1:19.1.7-3~deb12u1
cat > code.c <<'TEXT'
volatile int failures;
int checked(int first, int second) {
  if (first > 100) { failures = 5; __builtin_trap(); }
  if (second > 100) { failures = 5; __builtin_trap(); }
  return first + second;
}
TEXT
for version in 14 19; do
    for format in codeview dwarf; do
        debian "../lib/llvm-$version/bin/clang" --target=x86_64-pc-windows-msvc -O2 -g -g$format -c code.c \
            -o $format.obj
    done
    # shellcheck disable=SC2046
    echo "clang $version, DWARF:" $(llvm llvm-dwarfdump --debug-line dwarf.obj |
        sed -nE 's/^0x0*([0-9a-f]+) +([0-9]+) .*/\1=\2/p')
    # shellcheck disable=SC2046
    echo "clang $version, CodeView:" $(llvm llvm-pdbutil dump -l codeview.obj |
        sed -nE '/^ +[0-9]+ [0-9A-F]{8}/{s/([0-9]+) 0*([0-9A-F]+) !/\2=\1/g;p}')
done | tee seen
diff seen - <<'SEEN'
clang 14, DWARF: 0=2 0=3 3=3 5=4 8=4 a=5 c=5 f=0 1b=0
clang 14, CodeView: 0=3 5=4 A=5
clang 19, DWARF: 0=3 3=3 5=4 8=4 a=5 c=5 f=0 1b=0
clang 19, CodeView: 0=3 5=4 A=5
SEEN
