#!/usr/bin/env bash
# elm 0.19.1 for Windows (npm, @elm_binaries/win32_x64 0.19.1-0; made by GHC): its function table has entries that are
# no functions, and lacks almost all of its code.
#
# A good guess: an exception directory is a sorted list of functions in the code, each with unwind information
# (Microsoft, PE format, .pdata), and every function that calls others has one. Seen: the directory is sorted, and 9 of
# its 1,803 entries have places outside the code, or end before they begin. One of them stands among the others: it
# begins at 0x1454349 and ends at 0x91d5d260, so that a search finds it for 468,247 bytes up to the next function. What
# GHC compiled has no entries: 2.8 % of the code is in a function, and Windows takes the rest for leaves.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --force --prefix . @elm_binaries/win32_x64@0.19.1-0
python pefile==2024.8.26 <<'SCRIPT' | tee seen
import struct

import pefile

program = pefile.PE("node_modules/@elm_binaries/win32_x64/elm.exe", fast_load=True)
directory = program.OPTIONAL_HEADER.DATA_DIRECTORY[3]
entries = list(struct.iter_unpack("<3I", program.get_data(directory.VirtualAddress, directory.Size)))
code = program.sections[0]
end = code.VirtualAddress + code.Misc_VirtualSize
functions = [entry for entry in entries if code.VirtualAddress <= entry[0] < entry[1] <= end]
print("sorted:", entries == sorted(entries))
print(len(entries), "entries,", len(functions), "in the code")
covered = sum(entry[1] - entry[0] for entry in functions)
print(f"covered: {100 * covered / code.Misc_VirtualSize:.1f} %")
for before, entry, after in zip(entries, entries[1:], entries[2:]):
    if entry not in functions and after in functions:
        print(*map(hex, entry), "before", hex(after[0]))
SCRIPT
diff seen - <<'SEEN'
sorted: True
1803 entries, 1794 in the code
covered: 2.8 %
0x1454349 0x91d5d260 0x9237e6b0 before 0x14c6860
SEEN
