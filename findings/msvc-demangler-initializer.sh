#!/usr/bin/env bash
# msvc-demangler 0.11.0 (a crate): the initializer of a variable becomes a function of a namespace with its name.
#
# A good guess: ??__Ex@@YAXXZ, the code that initializes the variable x before main, is `dynamic initializer for 'x'',
# as undname and llvm-undname have it. Seen: x::`dynamic initializer', so that reports by namespace count the start of
# each variable as a namespace of its own.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" msvc-demangler 0.11.0 <<'TEXT'
use msvc_demangler::{DemangleFlags, demangle};

fn main() {
    for name in ["??__Ex@@YAXXZ", "??__Ex@ns@@YAXXZ", "??__Fx@@YAXXZ"] {
        println!("{}", demangle(name, DemangleFlags::llvm()).unwrap());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
void __cdecl x::`dynamic initializer'(void)
void __cdecl ns::x::`dynamic initializer'(void)
void __cdecl x::`dynamic atexit destructor'(void)
SEEN
