#!/usr/bin/env bash
# distorm3 3.5.2 (PyPI): ENDBR64, with which functions begin, becomes three bytes of data and a CLI.
#
# A good guess: ENDBR64 (F3 0F 1E FA) is in the range of hint NOPs, 0F 18 to 0F 1F (SDM Vol. 2B, NOP, and Vol. 2A,
# ENDBR64), so a disassembler that does not know it shows a NOP of four bytes, as older processors execute it. Seen: it
# is three bytes of data, then CLI, a privileged instruction. In code with control-flow enforcement that is the start of
# each function that is called through a pointer, and RDSSP, which reads the shadow stack, ends as data too.
# ndisasm 2.16.01 and iced-x86 1.21.0 name both.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python distorm3==3.5.2 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import distorm3
import iced_x86

for code in ["F30F1EFA", "F3480F1EC8", "0F1F00"]:
    data = bytes.fromhex(code)
    seen = [text for _, _, text, _ in distorm3.Decode(0, data, distorm3.Decode64Bits)]
    print(code, " ; ".join(seen), "instead of", iced_x86.Decoder(64, data).decode())
SCRIPT
diff seen - <<'SEEN'
F30F1EFA DB 0xf3 ; DB 0xf ; DB 0x1e ; CLI instead of endbr64
F3480F1EC8 DB 0xf3 ; DB 0x48 ; DB 0xf ; DB 0x1e ; DB 0xc8 instead of rdsspq rax
0F1F00 NOP DWORD [RAX] instead of nop dword ptr [rax]
SEEN
