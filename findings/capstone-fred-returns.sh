#!/usr/bin/env bash
# capstone 5.0.9 (PyPI): the returns of FRED are shown as CLAC, and other new instructions as old ones.
#
# A good guess: an instruction that a disassembler does not know is not decoded, as SERIALIZE (0F 01 E8) is not. Then
# the reader of an annotated profile sees that something is missing. Seen: where the prefix F2 or F3 makes another
# instruction, capstone ignores the prefix. ERETU and ERETS, which leave the kernel on processors with FRED (SDM
# Vol. 2A, ERETS and ERETU), become CLAC, so that a hot return from an interrupt is a cleared flag in the middle of a
# function. AMD's VMGEXIT becomes VMMCALL, and MCOMMIT becomes MONITORX (APM Vol. 3, appendix A).
# iced-x86 1.21.0 names all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python capstone==5.0.9 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import capstone
import iced_x86

capstone_decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
for code in ["0F01E8", "F30F01CA", "F20F01CA", "F30F01D9", "F30F01FA"]:
    data = bytes.fromhex(code)
    seen = [instruction.mnemonic for instruction in capstone_decoder.disasm(data, 0)]
    print(code, *(seen or ["nothing"]), "instead of", iced_x86.Decoder(64, data).decode())
SCRIPT
diff seen - <<'SEEN'
0F01E8 nothing instead of serialize
F30F01CA clac instead of eretu
F20F01CA clac instead of erets
F30F01D9 vmmcall instead of vmgexit
F30F01FA monitorx instead of mcommit
SEEN
