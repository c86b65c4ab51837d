#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): llvm-symbolizer takes names from the PDB of another build.
#
# A good guess: an image has the identifier of its PDB, so a program that opens the PDB beside an image compares the
# two, as debuggers do, and shows addresses without names if they differ. Seen: any PDB with the right file name is
# taken. After a build that moved a function, the names of the old image are wrong without a warning: here `wanted` is
# shown for code 32 bytes before it, which is of `start`.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
program old 64
program new 32
identifier() { llvm llvm-readobj --coff-debug-directory "$1" | grep -o 'PDBGUID: .*'; }
test "$(identifier old/code.exe)" != "$(identifier new/code.exe)"
names() { llvm llvm-symbolizer --obj=old/code.exe 0x140001020 0x140001040 | grep -v -F '??:' | sed '/^$/d' | paste -sd' '; }
{
    echo "its own PDB: $(names)"
    cp new/code.pdb old/code.pdb
    echo "another one: $(names)"
} 2>&1 | tee seen
diff seen - <<'SEEN'
its own PDB: start wanted
another one: wanted wanted
SEEN
