#!/usr/bin/env bash
# cpp_demangle 0.5.1 (a crate): in the expansion of a pack, most references and pointers vanish.
#
# A good guess: template<class... T> void f(T&&...) with int, a class and a string is f(int&&, a&&, std::string&&), as
# in c++filt and llvm-cxxfilt. Seen: f(int, a, std::string&&), and the same of & and *. Overloads by reference, by
# pointer and by value differ in one parameter at most, and a report that adds up by name can merge two functions.
# Where no pack is expanded, the reference stays.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" cpp_demangle 0.5.1 <<'TEXT'
use cpp_demangle::Symbol;

fn main() {
    println!("{}", Symbol::new("_Z1fIiEvOT_").unwrap().demangle().unwrap());
    for pattern in ["Dp", "DpO", "DpR", "DpP"] {
        let name = format!("_Z1fIJi1aSsEEv{pattern}T_");
        println!("{name} {}", Symbol::new(&name).unwrap().demangle().unwrap());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
void f<int>(int&&)
_Z1fIJi1aSsEEvDpT_ void f<int, a, std::string>(int, a, std::string)
_Z1fIJi1aSsEEvDpOT_ void f<int, a, std::string>(int, a, std::string&&)
_Z1fIJi1aSsEEvDpRT_ void f<int, a, std::string>(int, a, std::string&)
_Z1fIJi1aSsEEvDpPT_ void f<int, a, std::string>(int, a, std::string*)
SEEN
