#!/usr/bin/env bash
# LLVM 14.0.6 and 19.1.7 (Debian 12, llvm-14 1:14.0.6-12 and llvm-19 1:19.1.7-3~deb12u1): of two processes of a program,
# llvm-profgen counts the one that was mapped last.
#
# A good guess: perf script prints the mappings of each process, so the samples of both go into the profile of the
# program. Seen: the program has one address, that of the latest mapping. In 19 it holds from its line on, so it works
# if the first process has all of its samples before the second is mapped; in 14 not even then. If the processes run
# side by side, with other addresses as every PIE, the samples of the first are outside of the program. They are missing
# in the profile, and nothing says so.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack clang-14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 libclang-common-14-dev=1:14.0.6-12
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1
cat > code.c <<'TEXT'
void _start(void) {
  int left = 1000;
  __asm__ volatile("target: dec %0\nbranch: jnz target" : "+r"(left));
}
TEXT
llvm clang -O1 -g -gdwarf-4 -fPIE -c code.c -o code.o
llvm ld.lld -pie --no-dynamic-linker code.o -o code
address() { echo $((16#$(llvm llvm-nm code | sed -nE "s/^0*([0-9a-f]+) . $1$/\1/p"))); }
branch=$(address branch) target=$(address target)
mapping() {
    printf "PERF_RECORD_MMAP2 $1/$1: [0x%x(0x1000) @ 0 fe:00 1 0]: r-xp $PWD/code\n" $(((16#$1 << 32) + 4096))
}
samples() {
    local base=$((16#$1 << 32))
    for _ in 1 2 3 4; do
        printf ' %x' $((base + branch))
        printf ' 0x%x/0x%x/P/-/-/0' $((base + branch)) $((base + target)) $((base + branch)) $((base + target))
        echo
    done
}
{ mapping 5501; samples 5501; mapping 5602; samples 5602; } > successive.txt
{ mapping 5501; mapping 5602; samples 5501; samples 5602; } > together.txt
for version in 14 19; do
    for run in successive together; do
        debian "../lib/llvm-$version/bin/llvm-profgen" --format=text --binary=code --output=profile.txt \
            --perfscript=$run.txt 2>log
        echo "$version $run: $(grep _start profile.txt)"
    done
done | tee seen
diff seen - <<'SEEN'
14 successive: _start:16:0
14 together: _start:16:0
19 successive: _start:32:0
19 together: _start:16:0
SEEN
