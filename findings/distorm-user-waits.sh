#!/usr/bin/env bash
# distorm3 3.5.2 (PyPI): the user-mode waits of recent processors are shown as MFENCE, and other new instructions as old
# ones.
#
# A good guess: what a disassembler does not know is data, as SERIALIZE is here. Seen: where a prefix F2, F3 or 66 makes
# another instruction, the prefix counts for nothing. UMONITOR, UMWAIT and TPAUSE (0F AE /6 with a prefix; SDM Vol. 2B)
# become MFENCE: a thread that waits in a low-power state, where its samples fall, is a fence between stores.
# WBNOINVD becomes WBINVD, which also throws the caches away, and VMGEXIT becomes VMMCALL.
# iced-x86 1.21.0 and ndisasm 2.16.01 name the first four.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python distorm3==3.5.2 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import distorm3
import iced_x86

for code in ["F30FAEF0", "F20FAEF1", "660FAEF1", "F30F09", "F30F01D9", "0F01E8"]:
    data = bytes.fromhex(code)
    seen = [text for _, _, text, _ in distorm3.Decode(0, data, distorm3.Decode64Bits)]
    print(code, " ; ".join(seen), "instead of", iced_x86.Decoder(64, data).decode())
SCRIPT
diff seen - <<'SEEN'
F30FAEF0 MFENCE instead of umonitor rax
F20FAEF1 MFENCE instead of umwait ecx
660FAEF1 MFENCE instead of tpause ecx
F30F09 WBINVD instead of wbnoinvd
F30F01D9 VMMCALL instead of vmgexit
0F01E8 DB 0xf ; ADD EAX, EBP instead of serialize
SEEN
