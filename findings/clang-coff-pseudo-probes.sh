#!/usr/bin/env bash
# LLVM 14.0.6 and 19.1.7 (Debian 12, clang-14 1:14.0.6-12 and clang-19 1:19.1.7-3~deb12u1): object files for Windows
# have no pseudo probes, without a word.
#
# A good guess: -fpseudo-probe-for-profiling, with which a profile finds its code without line numbers, works as for
# Linux, or is refused: the option is accepted, the compiler puts the probes into the code, and its assembly text has a
# .pseudoprobe line for each. Seen: the object file for Windows has no section of probes. So llvm-profgen has nothing to
# read in the image, a profile by probes stays empty, and the code still pays for the optimizations that probes forbid.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 \
    clang-19=1:19.1.7-3~deb12u1 libclang-cpp19=1:19.1.7-3~deb12u1
echo 'int work(int n, int *to) { return n > 5 ? (*to = 1) : (to[n] = 2); }' > code.c
for version in 14 19; do
    for target in x86_64-pc-linux-gnu x86_64-pc-windows-msvc x86_64-pc-windows-gnu; do
        compile() {
            debian "../lib/llvm-$version/bin/clang" --target=$target -O2 -g -fpseudo-probe-for-profiling code.c "$@"
        }
        compile -c -Werror -o code.o
        lines=$(compile -S -o - | grep --count --word-regexp '\.pseudoprobe' || true)
        sections=$(llvm llvm-readobj --sections code.o | grep --count 'Name: \.pseudo_probe ' || true)
        echo "clang $version, $target: $lines lines, $sections sections"
    done
done | tee seen
diff seen - <<'SEEN'
clang 14, x86_64-pc-linux-gnu: 5 lines, 1 sections
clang 14, x86_64-pc-windows-msvc: 5 lines, 0 sections
clang 14, x86_64-pc-windows-gnu: 5 lines, 0 sections
clang 19, x86_64-pc-linux-gnu: 5 lines, 1 sections
clang 19, x86_64-pc-windows-msvc: 5 lines, 0 sections
clang 19, x86_64-pc-windows-gnu: 5 lines, 0 sections
SEEN
