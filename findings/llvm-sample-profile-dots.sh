#!/usr/bin/env bash
# LLVM 14.0.6 and 19.1.7 (Debian 12, llvm-14 1:14.0.6-12 and llvm-19 1:19.1.7-3~deb12u1): a function whose name has a
# dot gets no sample profile, or that of another function.
#
# A good guess: the compiler looks a function up by its linkage name; only the suffixes of LLVM's own clones (".llvm.",
# ".part." and ".__uniq.") are left out, as the list of them in SampleProf.h suggests, and llvm-profdata keeps names as
# they are. Seen: without an attribute that only clang sets, everything behind the first dot is left out. Zig's
# functions are file.function, so each of main.zig gets the profile of a function "main", and its own is never read.
# Rust's legacy names of implementations and generics have "..": rustc 1.95 with -Zprofile-sample-use passes over them
# too. Nothing warns.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
unpack llvm-19=1:19.1.7-3~deb12u1 libllvm19=1:19.1.7-3~deb12u1
entries() {
    cat > code.ll <<TEXT
target triple = "x86_64-pc-windows-msvc"
define void @"$1"() #0 !dbg !4 {
  ret void, !dbg !5
}
attributes #0 = { "use-sample-profile" }
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "code", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !{})
!4 = distinct !DISubprogram(name: "name", scope: !1, file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 2, scope: !4)
TEXT
    printf '%s:1000:7\n 1: 1000\n' "$2" > profile.txt
    llvm llvm-profdata merge --sample --text profile.txt | grep --quiet --fixed-strings "$2:1000:7"
    for version in 14 19; do
        debian "../lib/llvm-$version/bin/opt" -passes=sample-profile -sample-profile-file=profile.txt -S code.ll |
            sed -nE "s/.*entry_count\", i64 (-?[0-9]+).*/$version: \1/p"
    done | paste -sd' '
}
PLAIN=_ZN4code5Plain4work17heb88f58217023e62E
# shellcheck disable=SC2016 # dollars in a name
RUST='_ZN44_$LT$$u5b$i64$u5d$$u20$as$u20$code..Work$GT$4work17h7840ec0ebd762f07E'
{
    echo "C's work: $(entries work work)"
    echo "Rust's without dots: $(entries "$PLAIN" "$PLAIN")"
    echo "Rust's with dots: $(entries "$RUST" "$RUST")"
    echo "Zig's main.work: $(entries main.work main.work)"
    echo "Zig's main.work, profile of main: $(entries main.work main)"
} | tee seen
# The count of entries is one more than that of the profile, and -1 without a profile.
diff seen - <<'SEEN'
C's work: 14: 8 19: 8
Rust's without dots: 14: 8 19: 8
Rust's with dots: 14: -1 19: -1
Zig's main.work: 14: -1 19: -1
Zig's main.work, profile of main: 14: 8 19: 8
SEEN
