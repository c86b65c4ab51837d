#!/usr/bin/env bash
# cpp_demangle 0.5.1 (a crate): an empty parameter pack leaves a comma in the name.
#
# A good guess: f<int>() is void f<int>(), whether the template has one parameter or a pack behind it, as in c++filt and
# llvm-cxxfilt, and as it is written in the source. Seen: void f<int, >(). Of the names that libLLVM and libclang 14
# export, 1,925 have such a comma; AnalysisManager<Function> is in most of them. A profile with these names and one
# whose names another program made have no such function in common, and a search for the name as written fails.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" cpp_demangle 0.5.1 <<'TEXT'
use cpp_demangle::Symbol;

fn main() {
    // One parameter; a parameter and an empty pack; an empty pack alone.
    for name in ["_Z1fIiEvv", "_Z1fIiJEEvv", "_Z1fIJEEvv"] {
        println!("{name} {}", Symbol::new(name).unwrap().demangle().unwrap());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
_Z1fIiEvv void f<int>()
_Z1fIiJEEvv void f<int, >()
_Z1fIJEEvv void f<>()
SEEN
