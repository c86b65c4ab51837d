#!/usr/bin/env bash
# capstone 5.0.9 (PyPI): UD1 ends before its operands, which become instructions.
#
# A good guess: UD1 has a ModRM byte, and what that asks for, behind its opcode 0F B9 (SDM Vol. 2B, UD). clang writes it
# for the checks of -fsanitize-trap and tells their kind by the displacement: 67 0F B9 40 02. Seen: it has two bytes,
# three with the prefix. The operands are decoded as code together with what is behind them, so that an LEA and a RET
# become an ADD and an OR, and samples fall in the middle of instructions. iced-x86 1.21.0 has all
# five bytes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python capstone==5.0.9 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import capstone
from iced_x86 import Decoder

# ud1 eax, [eax+2]; lea rax, [rcx+8]; ret
CODE = bytes.fromhex("670fb94002 488d4108 c3")
for step in capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(CODE, 0):
    print("capstone", step.address, step.mnemonic, step.op_str)
for step in Decoder(64, CODE):
    print("iced-x86", step.ip, step)
SCRIPT
diff seen - <<'SEEN'
capstone 0 ud1 
capstone 3 add cl, byte ptr [rax - 0x73]
capstone 7 or r11b, al
iced-x86 0 ud1 eax,[eax+2]
iced-x86 5 lea rax,[rcx+8]
iced-x86 9 ret
SEEN
