#!/usr/bin/env bash
# symbolic-cfi 12.18.3 (a crate; it makes the STACK CFI of Sentry's symbols): for images of Windows, the rules of a
# function hold in its body only, and are written for its prolog and epilog too.
#
# A good guess: the unwind codes of a function have the place of each instruction of the prolog, so its STACK CFI
# begins with the rule of a call, and has a record for each change, as the crate writes it for the same code in ELF
# (Breakpad's symbol files: "STACK CFI address" for what changes behind the "STACK CFI INIT"). Seen: one record, from
# the first byte on, with the frame that the whole prolog has made. For a sample at the first instruction, the return
# address is looked for 48 bytes too far up the stack.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
cat > windows.s <<'TEXT'
    .globl work
    .text
work:
    .seh_proc work
    push %rbx
    .seh_pushreg %rbx
    sub $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
    nop
    add $40, %rsp
    pop %rbx
    ret
    .seh_endproc
TEXT
cat > linux.s <<'TEXT'
    .globl work
    .text
work:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset %rbx, -16
    sub $40, %rsp
    .cfi_def_cfa_offset 56
    nop
    add $40, %rsp
    .cfi_def_cfa_offset 16
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
TEXT
debian x86_64-w64-mingw32-as windows.s -o windows.o
debian x86_64-w64-mingw32-ld -e work windows.o -o windows.exe
cc -shared -nostdlib linux.s -o linux.so
crate 'symbolic-cfi = "=12.18.3"' 'symbolic-debuginfo = "=12.18.3"'
cat > src/main.rs <<'TEXT'
fn main() {
    for file in ["windows.exe", "linux.so"] {
        let data = std::fs::read(file).unwrap();
        let object = symbolic_debuginfo::Object::parse(&data).unwrap();
        let rules = symbolic_cfi::CfiCache::from_object(&object).unwrap();
        print!("{file}\n{}", String::from_utf8_lossy(rules.as_slice()));
    }
}
TEXT
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | grep -vE '^(MODULE|INFO)' | tee seen
diff seen - <<'SEEN'
windows.exe
STACK CFI INIT 1000 c .cfa: $rsp 56 + $rbx: .cfa 16 - ^ .ra: .cfa 8 - ^
linux.so
STACK CFI INIT 1000 c .cfa: $rsp 8 + .ra: .cfa -8 + ^
STACK CFI 1001 .cfa: $rsp 16 + $rbx: .cfa -16 + ^
STACK CFI 1005 .cfa: $rsp 56 +
STACK CFI 100a .cfa: $rsp 16 +
STACK CFI 100b .cfa: $rsp 8 +
SEEN
