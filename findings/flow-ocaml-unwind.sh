#!/usr/bin/env bash
# flow 0.280.0 for Windows (npm, flow-bin; made by OCaml): no function of OCaml has unwind information.
#
# A good guess: a native program for 64-bit Windows has unwind information for each function that calls others, since
# Windows needs it (Microsoft, x64 exception handling). Seen: 9.0 % of the code has an entry in the exception
# directory, that of the runtime and libraries in C. The code of OCaml is one gap of 10.1 MB: Windows takes each
# function there for a leaf, whose return address is on top of the stack, and so finds wrong callers or none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --force --prefix . flow-bin@0.280.0
python pefile==2024.8.26 <<'SCRIPT' | tee seen
import struct

import pefile

program = pefile.PE("node_modules/flow-bin/flow-win64-v0.280.0/flow.exe", fast_load=True)
directory = program.OPTIONAL_HEADER.DATA_DIRECTORY[3]
entries = list(struct.iter_unpack("<3I", program.get_data(directory.VirtualAddress, directory.Size)))
code = program.sections[0]
covered = sum(entry[1] - entry[0] for entry in entries)
print(f"covered: {100 * covered / code.Misc_VirtualSize:.1f} %")
gap, begin = max((after[0] - before[1], before[1]) for before, after in zip(entries, entries[1:]))
print(f"gap: {gap} of {code.Misc_VirtualSize} bytes")
# Functions of OCaml that call the collector load its state from R14, which holds it in all of them (amd64/proc.ml).
data = program.get_data(begin, gap)
print("comparisons of R15, the allocation pointer, with that state:", data.count(bytes.fromhex("4D3B3E")))
SCRIPT
diff seen - <<'SEEN'
covered: 9.0 %
gap: 10122153 of 11179936 bytes
comparisons of R15, the allocation pointer, with that state: 47775
SEEN
