#!/usr/bin/env bash
# msvc-demangler 0.11.0 (a crate): the address of a function as a template argument becomes a type.
#
# A good guess: f<&g> of `template <void (*)()> void f()`, which Visual C++ decorates as $1 with the decorated name of g
# behind it, is demangled as f<&g>, as undname and llvm-undname do, or refused. Seen: it is f<void (g::*)(void)>, a
# pointer to a function that is a member of a class g, without an error. For a member &S::m, the class is named S::m,
# and the access specifier Q becomes a reference to the result.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" msvc-demangler 0.11.0 <<'TEXT'
use msvc_demangler::{DemangleFlags, demangle};

fn main() {
    for name in ["??$f@$1?g@@YAXXZ@@YAXXZ", "??$f@$1?m@S@@QEAAXXZ@@YAXXZ"] {
        println!("{name} {}", demangle(name, DemangleFlags::NAME_ONLY | DemangleFlags::NO_MS_KEYWORDS).unwrap());
    }
    println!("{}", demangle("??$f@$1?g@@YAXXZ@@YAXXZ", DemangleFlags::llvm()).unwrap());
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
??$f@$1?g@@YAXXZ@@YAXXZ f<void (g::*)(void)>
??$f@$1?m@S@@QEAAXXZ@@YAXXZ f<void & (S::m::*)(void)>
void __cdecl f<void (__cdecl g::*)(void)>(void)
SEEN
