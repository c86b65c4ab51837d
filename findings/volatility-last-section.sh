#!/usr/bin/env bash
# volatility3 2.28.2 (PyPI), with LLVM 14.0.6 (Debian 12): the public symbols of the last section are missing.
#
# A good guess: pdbconv, which makes a table of symbols from a PDB, has each of its public symbols. Sections are
# numbered from 1, so the last of three has number 3. Seen: it takes symbols of sections below the number of sections
# only. In an image that needs no relocations, .data is the last, and all its variables are missing, without a word.
# With relocations they are there, since .reloc is the last then.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
cat > code.c <<'TEXT'
const int limit = 3;
int counter = 1, other = 2;
#ifdef RELOCATED
int *pointer = &counter;
#endif
int start(void) { return counter + other + limit; }
TEXT
for name in plain relocated; do
    llvm clang --target=x86_64-pc-windows-msvc -g -gcodeview "-D${name^^}" -c code.c -o $name.obj
    llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start $name.obj
    # shellcheck disable=SC2016 # quotes of llvm-pdbutil
    llvm llvm-pdbutil dump -publics $name.pdb | sed -nE 's/.*S_PUB32.*`(.*)`/\1/p' | sort > $name.expected
done
python volatility3==2.28.2 pefile==2024.8.26 <<'SCRIPT' | tee seen
import contextlib, io, json, runpy, sys

for name in "plain", "relocated":
    sys.argv = ["pdbconv", "--file", name + ".pdb", "--output", name + ".json"]
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_module("volatility3.framework.symbols.windows.pdbconv", run_name="__main__")
    symbols = json.load(open(name + ".json"))["symbols"]
    print(name, "PDB:", *open(name + ".expected").read().split())
    print(name, "table:", *sorted(symbols))
SCRIPT
diff seen - <<'SEEN'
plain PDB: counter limit other start
plain table: limit start
relocated PDB: counter limit other pointer start
relocated table: counter limit other pointer start
SEEN
