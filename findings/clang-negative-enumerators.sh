#!/usr/bin/env bash
# LLVM 14.0.6 and 19.1.7 (Debian 12, clang-14 1:14.0.6-12 and clang-19 1:19.1.7-3~deb12u1): in CodeView, negative
# enumerators are large positive numbers.
#
# A good guess: an enumerator of -1 is recorded as a number with a sign, which CodeView has in each size (cvinfo.h:
# LF_CHAR, LF_SHORT, LF_LONG and LF_QUADWORD), and which Microsoft's compiler writes. The DWARF that clang writes has a
# sign. Seen: the bits of the number are recorded as one without a sign, in the size of the enumeration: -1 is 255 with
# a base of signed char, and 4294967295 in a plain enum. So a reader that is right shows values that no variable
# has once its bits are extended with their sign, and one that compares by bits needs the base.
# rustc 1.95 writes the discriminants of an enum with repr(i8) or repr(i64) in the same way.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 \
    clang-19=1:19.1.7-3~deb12u1 libclang-cpp19=1:19.1.7-3~deb12u1
cat > code.cc <<'TEXT'
enum Plain { plain = -1 } a;
enum Small : signed char { small = -2 } b;
enum Short : short { medium = -300 } c;
enum Large : long long { large = -3000000000 } d;
TEXT
for version in 14 19; do
    for format in codeview dwarf; do
        debian "../lib/llvm-$version/bin/clang" --target=x86_64-pc-windows-msvc -g -g$format -c code.cc -o $format.obj
    done
    echo "clang $version, CodeView"
    llvm llvm-pdbutil dump -types codeview.obj | grep -oE 'LF_ENUMERATE .*'
    echo "clang $version, DWARF"
    llvm llvm-dwarfdump --debug-info dwarf.obj | sed -nE 's/.*DW_AT_const_value.*\((.*)\)/\1/p'
done | tee seen
diff seen - <<'SEEN'
clang 14, CodeView
LF_ENUMERATE [plain = 4294967295]
LF_ENUMERATE [small = 254]
LF_ENUMERATE [medium = 65236]
LF_ENUMERATE [large = 18446744070709551616]
clang 14, DWARF
-1
-2
-300
-3000000000
clang 19, CodeView
LF_ENUMERATE [plain = 4294967295]
LF_ENUMERATE [small = 254]
LF_ENUMERATE [medium = 65236]
LF_ENUMERATE [large = 18446744070709551616]
clang 19, DWARF
-1
-2
-300
-3000000000
SEEN
