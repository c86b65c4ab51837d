#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): of two records of one function in a text profile, llvm-profdata takes
# the last.
#
# A good guess: a sample profile in text is a list of functions with counts, so two records with one name are added, or
# refused. Two modules with a static function each have such names, and so have two profiles that were joined with cat.
# Seen: the samples of the first record are lost without a warning. Calls of one function that a line has twice are
# replaced as well. But two records of an inlined function, and two lines with one number, are added, and so are two
# files.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
printf '%s\n' 'work:100:1' ' 1: 100' > first
printf '%s\n' 'work:5:1' ' 1: 5' > second
cat first second > both
printf '%s\n' 'main:300:1' ' 1: 60 work:20 work:40' ' 2: 60' ' 2: 60' \
    ' 3: work:60' '  1: 60' ' 3: work:60' '  1: 60' > parts
{
    for files in both "first second" parts; do
        echo "$files"
        # shellcheck disable=SC2086
        llvm llvm-profdata merge --sample --text $files -o -
    done
} | tee seen
diff seen - <<'SEEN'
both
work:5:1
 1: 5
first second
work:105:2
 1: 105
parts
main:300:1
 1: 60 work:40
 2: 120
 3: work:120
  1: 120
SEEN
