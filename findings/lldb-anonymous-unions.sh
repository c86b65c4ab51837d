#!/usr/bin/env bash
# LLDB 14.0.6 (Debian 12, lldb-14 1:14.0.6-12): with a PDB, what follows an anonymous union is read from wrong places.
#
# A good guess: a debugger takes the offset of a member from its record, which has it (LF_MEMBER: here 4 for `first` and
# `low`, and 8 for `tail`). Seen: the members of an anonymous union, which CodeView lists as members of the structure,
# are laid out one behind the other. `tail` has the value of the member after it, the last member is read from behind
# the variable, and the size is 32 for 24. The same program with DWARF is read right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 lldb-14=1:14.0.6-12 liblldb-14=1:14.0.6-12 \
    python3-lldb-14=1:14.0.6-12
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
    LLDB_USE_NATIVE_PDB_READER=1 llvm lldb --no-lldbinit --batch $format.exe --one-line 'target variable value.key' \
        --one-line 'target variable value.first' --one-line 'target variable value.low' \
        --one-line 'target variable value.tail' --one-line 'expression sizeof(value)' 2>/dev/null |
        grep -E '^\((int|short|(unsigned )?long long)\)'
done | tee seen
diff seen - <<'SEEN'
codeview
(int) value.key = 1
(int) value.first = 2
(short) value.low = 3
(long long) value.tail = 4
(unsigned long long) $0 = 32
dwarf
(int) value.key = 1
(int) value.first = 2
(short) value.low = 2
(long long) value.tail = 3
(unsigned long long) $0 = 24
SEEN
