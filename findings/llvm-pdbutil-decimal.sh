#!/usr/bin/env bash
# LLVM 14.0.6 (Debian 12, llvm-14 1:14.0.6-12): llvm-pdbutil prints the addresses of public names in decimal.
#
# A good guess: `addr = 0001:0032` is offset 0x32 in section 1, because section:offset with leading zeros is how maps of
# linkers, dumpbin and debuggers write it, in hexadecimal, and because the same program prints the addresses of sections
# in hexadecimal. Seen: it is decimal, 0x20. As digits alone cannot tell, the mistake is not noticed. A name that
# is looked up with such an address belongs to another function, most often to a later one.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
program full 32
{
    llvm llvm-pdbutil dump --publics full/code.pdb | grep -A1 -F '`wanted`' | tail -n 1
    llvm llvm-pdbutil dump --section-headers full/code.pdb | grep -m 1 'virtual address'
    # The section begins at 0x1000 of an image at 0x140000000.
    for address in 14000101f 140001020; do
        echo "$address $(llvm llvm-symbolizer --obj=full/code.exe 0x$address | head -n 1)"
    done
} | sed 's/^ *//' | tee seen
diff seen - <<'SEEN'
flags = function, addr = 0001:0032
1000 virtual address
14000101f start
140001020 wanted
SEEN
