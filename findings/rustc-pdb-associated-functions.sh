#!/usr/bin/env bash
# rustc 1.95.0: in a PDB, an associated function without self loses its first argument if that is a reference.
#
# A good guess: methods of Rust are member functions, whose self is the "this" of C++, and associated functions without
# self have all their arguments, as static ones of C++ do in the PDBs of clang. Seen: the first argument of any of them
# is taken for "this" if it is a pointer, so Counter::copied(&u64, u64) is a member function of one argument, whose
# "this" is a pointer to u64, and no Counter. Microsoft's own reader of PDBs (msdia140.dll, in pyxdia 0.1.0 of PyPI)
# shows the name so. If the first argument is no pointer, all are there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > code.rs <<'RUST'
#![no_std]
#![no_main]

pub struct Counter(u64);

impl Counter {
    #[inline(never)]
    pub fn copied(source: &u64, factor: u64) -> u64 {
        *source ^ factor
    }

    #[inline(never)]
    pub fn valued(source: u64, factor: u64) -> u64 {
        source ^ factor.rotate_left(3)
    }

    #[inline(never)]
    pub fn method(&self, factor: u64) -> u64 {
        self.0 ^ factor.rotate_left(5)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn start(number: u64) -> u64 {
    Counter(number).method(3) + Counter::copied(&number, 4) + Counter::valued(number, 5)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
RUST
rustup --quiet target add x86_64-pc-windows-msvc
rustc --edition 2024 --target x86_64-pc-windows-msvc -C panic=abort -C debuginfo=2 -C opt-level=1 --emit obj=code.obj \
    code.rs
llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start /out:code.exe code.obj
python pyxdia==0.1.0 <<'SCRIPT' | tee seen
from pyxdia import PDB

names = [one.get("undecoratedName", "") for one in PDB("code.pdb").globals]
print(*sorted(name.partition("__int64 ")[2] for name in names if "Counter::" in name), sep="\n")
SCRIPT
llvm llvm-pdbutil dump -types code.pdb | grep -A 2 LF_MFUNCTION |
    sed -nE 's/.*this type = 0x0623 \(([^)]+)\).*/this: \1/p' | tee -a seen
diff seen - <<'SEEN'
code::Counter::copied(unsigned __int64)
code::Counter::method(unsigned __int64)
code::Counter::valued(unsigned __int64, unsigned __int64)
this: unsigned __int64*
SEEN
