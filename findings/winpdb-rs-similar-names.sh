#!/usr/bin/env bash
# winpdb-rs 0.1.0 (PyPI): asked for a public name of a PDB, it answers with another that differs in case or underscores.
#
# A good guess: names of C are case-sensitive, so find_symbol("work") finds work, and at most falls back to Work if that
# name is not there. Seen: it takes the first name that is equal without case, though the exact one follows; asked for
# several names at once, it leaves out leading underscores too, so that work, Work and _work are one function. Its other
# functions, which give addresses, do the same. Nothing marks a name that was not found exactly.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > code.s <<'TEXT'
    .globl start, Work, work, _work
    .text
start:
    ret
    .p2align 4
Work:
    ret
    .p2align 4
work:
    ret
    .p2align 4
_work:
    ret
TEXT
for name in start Work work _work; do echo ".def $name; .scl 2; .type 32; .endef"; done >> code.s
llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start /out:code.exe code.obj
python winpdb-rs==0.1.0 <<'SCRIPT' | tee seen
import winpdb_rs as pdb

for symbol in sorted(pdb.get_all_symbols("code.pdb").symbols, key=lambda symbol: symbol.rva):
    print(f"{symbol.name} is at {symbol.rva:#x}")
for name in ["Work", "work", "_work"]:
    one, several = pdb.find_symbol("code.pdb", name), pdb.find_symbols_batch("code.pdb", [name])[name]
    print(f"asked for {name}: {one.name} at {one.rva:#x}, among several {several.name} at {several.rva:#x}")
SCRIPT
diff seen - <<'SEEN'
start is at 0x1000
Work is at 0x1010
work is at 0x1020
_work is at 0x1030
asked for Work: Work at 0x1010, among several Work at 0x1010
asked for work: Work at 0x1010, among several Work at 0x1010
asked for _work: _work at 0x1030, among several Work at 0x1010
SEEN
