#!/usr/bin/env bash
# LLDB 19.1.7 (Debian 12, lldb-19 1:19.1.7-3~deb12u1): with a PDB, all members behind an anonymous union become members
# of the union.
#
# A good guess: CodeView does not record anonymous unions, so a reader that rebuilds them (LLDB 14 did not) ends a union
# where the offsets leave it: `tail` begins at 8, and the union has the bytes from 4 to 8. Seen: the union takes in
# everything to the end of the structure, and the last anonymous structure in it holds `tail` and `last`. Values and
# offsets are right, but the layout that "type lookup" prints is of another structure, and an expression with the member
# is refused: "no member named 'tail' in 'entry'". With DWARF the same program has the layout of its source.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
unpack lldb-19=1:19.1.7-3~deb12u1 liblldb-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 \
    libclang-cpp19=1:19.1.7-3~deb12u1 python3-lldb-19=1:19.1.7-3~deb12u1
cat > code.c <<'TEXT'
struct entry {
  int key;
  union { int first; struct { short low, high; }; };
  long long tail, last;
} value = {1, {2}, 3, 4};
int start(void) { return value.key; }
TEXT
for format in codeview dwarf; do
    llvm clang --target=x86_64-pc-windows-msvc -g -g$format -c code.c -o $format.obj
    llvm lld-link /nologo "/debug$([ $format = dwarf ] && echo :dwarf)" /nodefaultlib /subsystem:console /entry:start \
        $format.obj
    echo "$format"
    # It fails if the expression does.
    LLDB_USE_NATIVE_PDB_READER=1 debian ../lib/llvm-19/bin/lldb --no-lldbinit --batch $format.exe \
        --one-line 'type lookup entry' --one-line 'target variable value.tail' --one-line 'expression value.tail' \
        > said 2>&1 || true
    grep -E '^( *[a-z}]|\(long)' said
done | tee seen
diff seen - <<'SEEN'
codeview
struct entry {
    int key;
    union  {
        int first;
        struct  {
            short low;
            short high;
            long long tail;
            long long last;
        };
    };
}
(long long) value.tail = 3
error: <user expression 0>:1:7: no member named 'tail' in 'entry'
dwarf
struct entry {
    int key;
    union  {
        int first;
        struct  {
            short low;
            short high;
        };
    };
    long long tail;
    long long last;
}
(long long) value.tail = 3
(long long) $0 = 3
SEEN
