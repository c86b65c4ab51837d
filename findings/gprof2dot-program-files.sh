#!/usr/bin/env bash
# gprof2dot 2025.4.14 (PyPI): in a script of perf, an image below "Program Files (x86)" makes a function of each
# address.
#
# A good guess: of a line "7ff6a0001010 work+0x10 (C:\Program Files (x86)\app.exe)", what stands before the first " ("
# is the symbol with its offset, which the program takes off, so that all samples of a function are one node. Seen: the
# image begins at the last "(" instead. The symbol keeps its offset and the beginning of the path, so each instruction
# is a function of its own, in an image named "x86)\app.exe". In C:\Windows the same lines are one function.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages \
    gprof2dot==2025.4.14
functions() {
    for address in 10 14 18; do
        printf 'app 7/7 [000] 1.000: 1000 cycles: \n\t    10%s work+0x%s (%s)\n\n' "$address" "$address" "$1"
    done | PYTHONPATH="$folder/packages" python3 -m gprof2dot --format perf --node-thres 0 |
        sed -nE 's/^\t"(.*)" \[.*label=".*/\1/p' | sort
}
{
    functions 'C:\Windows\app.exe'
    functions 'C:\Program Files (x86)\app.exe'
} | tee seen
diff seen - <<'SEEN'
work:C:\\Windows\\app.exe
work+0x10 (C:\\Program Files:x86)\\app.exe
work+0x14 (C:\\Program Files:x86)\\app.exe
work+0x18 (C:\\Program Files:x86)\\app.exe
SEEN
