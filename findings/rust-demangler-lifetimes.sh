#!/usr/bin/env bash
# rust-demangler 1.0 (PyPI): names with the lifetimes of a function type are errors, and closures and ABIs have a
# spelling of their own.
#
# A good guess: the names that rustc writes with -C symbol-mangling-version=v0 become what rustc-demangle, the demangler
# of Rust's standard library, makes of them. Seen: at for<'a> the package prints the name so far and raises an error, so
# that a function that takes a callback with a reference has no name. A closure is {closure:#3} and not {closure#3}, and
# the space behind extern "C" becomes a hyphen within the quotes. A report that joins its names with those of another
# program has each closure twice.
set -euo pipefail
# app::g<T>, where T is a closure, an unsafe function of C, and functions with one and with two lifetimes.
names="_RINvC3app1gNCNvB2_3alls1_0EB2_ _RINvC3app1gFUKCPhEuEB2_ _RINvC3app1gFG_RL0_hEuEB2_
    _RINvC3app1gFG0_RL1_hRL0_hEuEB2_"
wanted=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" rustc-demangle 0.1.28 <<TEXT
fn main() {
    for name in "$names".split_whitespace() {
        println!("{:#}", rustc_demangle::demangle(name));
    }
}
TEXT
)
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
export names
{
    echo "$wanted"
    python rust-demangler==1.0 <<'SCRIPT'
import os

from rust_demangler import demangle
from rust_demangler.rust_v0 import UnableTov0Demangle

for name in os.environ["names"].split():
    try:
        print(demangle(name))
    except UnableTov0Demangle:
        print("is refused")
SCRIPT
} | tee seen
diff seen - <<'SEEN'
app::g::<app::all::{closure#3}>
app::g::<unsafe extern "C" fn(*const u8)>
app::g::<for<'a> fn(&'a u8)>
app::g::<for<'a, 'b> fn(&'a u8, &'b u8)>
app::g::<app::all::{closure:#3}>
app::g::<unsafe extern "C-"fn(*const u8)>
app::g::<for<'?
is refused
app::g::<for<'?
is refused
SEEN
