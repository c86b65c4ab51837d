#!/usr/bin/env bash
# rustc 1.95.0, with LLVM 14.0.6 (Debian 12) and pyxdia 0.1.0 (PyPI): in a PDB with line tables alone, every function
# takes nothing and returns nothing.
#
# A good guess: with -C debuginfo=1 functions have no type, or their own as in PDBs of clang with -gline-tables-only.
# Seen: all have the type void (). Microsoft's own reader of PDBs (msdia140.dll, in pyxdia) shows "static void
# code::twice()" for a function that takes and returns a number, and nothing tells it from one that is so. With -C
# debuginfo=2 it is right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > code.rs <<'RUST'
#![no_std]
#![no_main]

#[inline(never)]
fn twice(number: u32) -> u32 {
    number.rotate_left(3)
}

#[unsafe(no_mangle)]
pub extern "C" fn start(number: u32) -> u32 {
    twice(number) + 1
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
RUST
rustup --quiet target add x86_64-pc-windows-msvc
for level in 1 2; do
    rustc --edition 2024 --target x86_64-pc-windows-msvc -C panic=abort -C "debuginfo=$level" -C opt-level=1 \
        --emit obj=code.obj code.rs
    llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start "/pdb:level-$level.pdb" /out:code.exe \
        code.obj
done
python pyxdia==0.1.0 <<'SCRIPT' | tee seen
from pyxdia import PDB

for level in 1, 2:
    names = [one["undecoratedName"] for one in PDB(f"level-{level}.pdb").globals if one["symTag"] == "Function"]
    print(level, *sorted(name for name in names if "panic" not in name), sep="\n    ")
SCRIPT
diff seen - <<'SEEN'
1
    static void code::twice()
    void code::start()
2
    static unsigned int code::twice(unsigned int)
    unsigned int code::start(unsigned int)
SEEN
