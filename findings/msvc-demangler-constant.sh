#!/usr/bin/env bash
# msvc-demangler 0.11.0 (a crate): constants of more than 32 bits in template arguments lose their upper half.
#
# A good guess: f<4294967296> of `template <unsigned long long> void f()` is demangled as that, or refused. Seen: it is
# f<0>, and f<4294967295> and f<9223372036854775807> are both f<-1>. Two functions have one name, without an error.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" msvc-demangler 0.11.0 <<'TEXT'
use msvc_demangler::{DemangleFlags, demangle};

fn main() {
    // The digits of numbers are the letters from A (0) to P (15).
    for digits in ["A", "BAAAAAAAA", "PPPPPPPP", "HPPPPPPPPPPPPPPP"] {
        println!("{}", demangle(&format!("??$f@$0{digits}@@@YAXXZ"), DemangleFlags::llvm()).unwrap());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
void __cdecl f<0>(void)
void __cdecl f<0>(void)
void __cdecl f<-1>(void)
void __cdecl f<-1>(void)
SEEN
