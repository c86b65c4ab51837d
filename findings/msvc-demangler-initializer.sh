#!/usr/bin/env bash
# msvc-demangler 0.11.0 (crates.io): the initializer of a variable becomes a function of a namespace with its name.
#
# A good guess: ??__Ex@@YAXXZ, the code that initializes the variable x before main, is `dynamic initializer for 'x'',
# as undname and llvm-undname have it. Seen: x::`dynamic initializer', so that reports by namespace count the start of
# each variable as a namespace of its own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TEXT'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
msvc-demangler = "=0.11.0"
TEXT
cat > src/main.rs <<'TEXT'
use msvc_demangler::{DemangleFlags, demangle};

fn main() {
    for name in ["??__Ex@@YAXXZ", "??__Ex@ns@@YAXXZ", "??__Fx@@YAXXZ"] {
        println!("{}", demangle(name, DemangleFlags::llvm()).unwrap());
    }
}
TEXT
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | tee seen
diff seen - <<'SEEN'
void __cdecl x::`dynamic initializer'(void)
void __cdecl ns::x::`dynamic initializer'(void)
void __cdecl x::`dynamic atexit destructor'(void)
SEEN
