#!/usr/bin/env bash
# purelypdb 1.0.0 (PyPI): variables that are neither structures nor numbers have the size 0.
#
# A good guess: get_type_size, "get type size in bytes", gives the size of the type of any variable, as its records have
# it or that of the type below. Seen: it knows structures and basic types. Pointers, arrays, enumerations, unions, and
# anything const have the size 0, which is also what it says of types that it does not know. Addresses of data, as of
# sampled loads, fall into none of these variables then.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
cat > code.c <<'TEXT'
int _fltused;
struct { int x, y; } structure;
long long number;
int *pointer;
int array[6];
enum { RED } enumeration;
union { int one; double other; } choice;
const int constant = 7;
int start(void) { return structure.x + (int)number + *pointer + array[1] + enumeration + choice.one + constant; }
TEXT
llvm clang --target=x86_64-pc-windows-msvc -g -gcodeview -c code.c -o code.obj
llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start /out:code.exe code.obj
python purelypdb==1.0.0 <<'SCRIPT' | tee seen
import purelypdb

pdb = purelypdb.parse("code.pdb")
sizes = {
    one.name: purelypdb.get_type_size(pdb.STREAM_TPI.types, one.symtype)
    for one in pdb.STREAM_GSYM.globals
    if one.leaf_type == 0x110D  # S_GDATA32
}
print(*(f"{name}: {size}" for name, size in sorted(sizes.items())), sep="\n")
SCRIPT
diff seen - <<'SEEN'
_fltused: 4
array: 0
choice: 0
constant: 0
enumeration: 0
number: 8
pointer: 0
structure: 8
SEEN
