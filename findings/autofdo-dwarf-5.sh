#!/usr/bin/env bash
# autofdo 0.19 (Debian 12, autofdo 0.19-2.2+b1): of a program with DWARF 5, create_llvm_prof makes an empty profile, and
# exits with 0.
#
# A good guess: a profile is made for any program that clang 14 of the same Debian compiles, or is refused with the
# reason. Seen: DWARF 5, which clang 14 writes by default, is not read. The profile has no function, and nothing says
# so. With -gdwarf-4, the same ranges of the same code are the profile that they should be.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack autofdo=0.19-2.2+b1 libgflags2.2=2.2.2-2 libgoogle-glog0v6=0.6.0-2 libllvm13=1:13.0.1-11+b2 libprotobuf32 \
    libunwind8 libssl3 libelf1 clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12
cat > code.c <<'TEXT'
int helper(int value) {
  return value * 3;
}
TEXT
for format in -gdwarf-4 -gdwarf-5 -g; do
    llvm clang --target=x86_64-linux-gnu "$format" -O1 -fdebug-info-for-profiling -c code.c -o code.o
    llvm ld.lld --image-base=0 --entry=helper code.o -o code
    start=$(llvm llvm-nm code | sed -n 's/ T helper//p')
    # Ranges of addresses, addresses and branches, each behind their number: one range that ran 1000 times.
    printf '1\n%x-%x:1000\n0\n0\n' "0x$start" "$((0x$start + 3))" > ranges.txt
    debian create_llvm_prof --profiler=text --profile=ranges.txt --binary=code --format=text --out=profile.txt
    echo "$format: exit code $?, profile '$(tr '\n' ' ' < profile.txt)'"
done | tee seen
diff seen - <<'SEEN'
-gdwarf-4: exit code 0, profile 'helper:4000:0  1: 1000 '
-gdwarf-5: exit code 0, profile ''
-g: exit code 0, profile ''
SEEN
