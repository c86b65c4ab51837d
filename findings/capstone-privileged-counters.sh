#!/usr/bin/env bash
# capstone 5.0.9 (PyPI): RDTSCP and RDPMC count as privileged, RDMSR does not.
#
# A good guess: the group of privileged instructions has those that fault outside ring 0 whatever the settings: RDMSR,
# WRMSR, HLT. RDPMC and RDTSCP fault only if the kernel forbids them (CR4.PCE, CR4.TSD; SDM Vol. 3A, privileged
# instructions), as RDTSC does. Seen: RDMSR is in no group, though WRMSR is privileged; RDTSCP is privileged and RDTSC
# is not. A search for code of the kernel finds every program that measures time with RDTSCP, and misses the readers of
# registers. iced-x86 1.21.0 has the groups as one expects.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python capstone==5.0.9 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import capstone
import iced_x86

capstone_decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
capstone_decoder.detail = True
print("instruction: privileged by capstone, by iced-x86")
for code in ["0F32", "0F30", "0F33", "0F31", "0F01F9"]:
    data = bytes.fromhex(code)
    (instruction,) = capstone_decoder.disasm(data, 0)
    other = iced_x86.Decoder(64, data).decode()
    print(f"{instruction.mnemonic}: {instruction.group(capstone.x86.X86_GRP_PRIVILEGE)}, {other.is_privileged}")
SCRIPT
diff seen - <<'SEEN'
instruction: privileged by capstone, by iced-x86
rdmsr: False, True
wrmsr: True, True
rdpmc: True, False
rdtsc: False, False
rdtscp: True, False
SEEN
