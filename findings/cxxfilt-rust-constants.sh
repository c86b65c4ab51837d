#!/usr/bin/env bash
# binutils 2.40 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): c++filt takes the first digit off constants of Rust
# that have more than 64 bits.
#
# A good guess: U<0x10000000000000000>, a type with a constant of type u128, is demangled with all its digits, as
# rustc-demangle and llvm-cxxfilt do. In Rust's v0 names a constant is hexadecimal digits that end with an underscore
# (RFC 2603, const-data). Seen: from 17 digits on, the underscore is shown as the last digit and the first digit is
# gone. Two functions whose constants differ in that digit have one name, and a report by name adds them up. Up to 64
# bits the constant is right, in decimal.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
# <app::U<CONSTANT>>::f, of `impl<const N: u128> U<N> { fn f() {} }`.
for digits in ffffffffffffffff 10000000000000001 20000000000000001 123456789abcdef01; do
    name="_RNvMC3appINtB2_1UKo${digits}_E1fB2_"
    echo "$(debian x86_64-w64-mingw32-c++filt "$name") $(llvm llvm-cxxfilt "$name")"
done | tee seen
diff seen - <<'SEEN'
<app[0]::U<18446744073709551615: u128>>::f <app::U<18446744073709551615>>::f
<app[0]::U<0x0000000000000001_: u128>>::f <app::U<0x10000000000000001>>::f
<app[0]::U<0x0000000000000001_: u128>>::f <app::U<0x20000000000000001>>::f
<app[0]::U<0x23456789abcdef01_: u128>>::f <app::U<0x123456789abcdef01>>::f
SEEN
