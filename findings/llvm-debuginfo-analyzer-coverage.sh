#!/usr/bin/env bash
# LLVM 19.1.7 (Debian 12, llvm-19 1:19.1.7-3~deb12u1): by llvm-debuginfo-analyzer, a variable covers more than its
# function.
#
# A good guess: the coverage of a variable is the part of its scope in which a debugger can show it, so at most 100 %.
# Seen: for CodeView, the byte behind a range counts as covered, and the one behind the scope does not. An argument that
# is in its register throughout a function of two bytes has a coverage of 150 %, and of ten bytes 110 %. Reports of how
# well optimized code can be debugged, for which the tool is made, get better the smaller the functions are.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 \
    libllvm14=1:14.0.6-12 libedit2 libbsd0 libmd0 libtinfo6 libxml2 libicu72 libffi8 libz3-4 libzstd1 zlib1g liblzma5
cat > code.c <<'TEXT'
long same(long value) { return value; }
long next(long value) { return value + 1; }
long polynomial(long value) { return value * value * value + value; }
TEXT
debian ../lib/llvm-14/bin/clang --target=x86_64-pc-windows-msvc -g -gcodeview -O1 -c code.c -o code.obj
debian ../lib/llvm-19/bin/llvm-debuginfo-analyzer --attribute=all --print=scopes,symbols code.obj |
    grep -oE "\{Function\}.* '[a-z]+' |\{Coverage\}.*" | sed -E 's/ extern not_inlined//' | tee seen
diff seen - <<'SEEN'
{Function} 'next' 
{Coverage} 133.33% (4/3)
{Function} 'polynomial' 
{Coverage} 110.00% (11/10)
{Function} 'same' 
{Coverage} 150.00% (3/2)
SEEN
