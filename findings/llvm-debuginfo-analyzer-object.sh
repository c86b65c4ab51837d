#!/usr/bin/env bash
# LLVM 19.1.7 (Debian 12, llvm-19 1:19.1.7-3~deb12u1): asked about a PDB, llvm-debuginfo-analyzer describes an object
# file beside it.
#
# A good guess: llvm-debuginfo-analyzer app.pdb describes app.pdb, as its help calls the argument an input file. Seen:
# if app.obj is beside it, that one is described instead, though it may be left from an older build or another program:
# functions that the program lacks, at addresses from 0 on. Only the first line says so. In a folder of its own, the
# same PDB is read.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
compile() { llvm clang --target=x86_64-pc-windows-msvc -g -gcodeview -x c - -c -o "$1"; }
echo 'int wanted(int value) { return value + 1; }' | compile code.obj
llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:wanted /pdb:app.pdb /out:app.exe code.obj
mkdir alone beside
cp app.pdb alone
cp app.pdb beside
echo 'int other(int value) { return value - 1; }' | compile beside/app.obj
for place in alone beside; do
    echo "$place:"
    debian ../lib/llvm-19/bin/llvm-debuginfo-analyzer --print=scopes "$place/app.pdb" |
        grep -oE "\{(File|Function)\}.* '[^']+'" | sed -E "s/ extern not_inlined//; s/ -> .*//"
done | tee seen
diff seen - <<'SEEN'
alone:
{File} 'app.pdb'
{Function} 'wanted'
beside:
{File} 'app.obj'
{Function} 'other'
SEEN
